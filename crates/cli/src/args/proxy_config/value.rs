//! The values of kube-proxy's settings, and their limits as kube-proxy has them.

use std::fmt;

use topology_core::model::{IpNetwork, NodePortEntry};

use crate::args::{go_duration, values};

/// A value from the file or from a flag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GivenValue {
    /// Where it is, for messages: `FILE:3: ipvs.scheduler`, or `--ipvs-scheduler`.
    pub place: String,
    /// The path of the field; of an item of a list with its index.
    pub field: String,
    /// Trimmed.
    pub text: String,
    pub is_flag: bool,
}

/// The values that a setting may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueKind {
    Text,
    Switch,
    /// A whole number within both limits.
    Integer(i64, i64),
    Number,
    /// At least zero.
    Duration,
    /// More than zero.
    Period,
    Address,
    /// `IP:PORT`, or `IP` alone.
    Bind,
    Range,
    /// One range, or one of each family.
    Ranges,
    Words(&'static [&'static str]),
}

impl GivenValue {
    pub(super) fn new(place: String, field: String, text: &str, is_flag: bool) -> Self {
        Self {
            place,
            field,
            text: text.trim().to_owned(),
            is_flag,
        }
    }

    /// The value of a switch.
    pub(super) fn switch(&self) -> Result<bool, String> {
        if self.is_flag {
            values::boolean(&self.text)
        } else {
            values::yaml_boolean(&self.text)
        }
    }
}

impl ValueKind {
    /// Whether kube-proxy accepts a flag with an empty value. An empty address of a server turns the
    /// server off.
    pub(super) const fn may_be_empty(self) -> bool {
        match self {
            Self::Text | Self::Address | Self::Range | Self::Ranges | Self::Words(_) => true,
            Self::Switch
            | Self::Integer(..)
            | Self::Number
            | Self::Duration
            | Self::Period
            | Self::Bind => false,
        }
    }

    /// Whether the text is the value that a field without one has in Go.
    pub(super) fn is_zero(self, given: &GivenValue) -> bool {
        let text = &given.text;
        match self {
            Self::Switch => given.switch() == Ok(false),
            Self::Integer(..) | Self::Number => text.parse().is_ok_and(|number: f64| number == 0.0),
            Self::Duration | Self::Period => {
                go_duration::parse(text).is_some_and(|length| length.is_zero())
            }
            Self::Text
            | Self::Address
            | Self::Bind
            | Self::Range
            | Self::Ranges
            | Self::Words(_) => false,
        }
    }

    /// The values, for messages.
    pub(super) fn described(self) -> String {
        match self {
            Self::Words(_) => format!("one of {self}"),
            other => other.to_string(),
        }
    }

    /// # Errors
    /// kube-proxy does not accept this value either; the message shows a correct one.
    pub(super) fn check(self, given: &GivenValue) -> Result<(), String> {
        let text = given.text.as_str();
        match self {
            // The setting parses an address of a server itself, because it has the default port.
            Self::Text | Self::Bind => Ok(()),
            Self::Switch => given.switch().map(drop),
            Self::Integer(least, most) => {
                let number = text.parse::<i64>();
                let fits = number.is_ok_and(|number| (least..=most).contains(&number));
                expect(fits, text, self)
            }
            Self::Number => expect(text.parse::<f64>().is_ok_and(f64::is_finite), text, self),
            Self::Duration => {
                let length = go_duration::parse(text);
                expect(length.is_some_and(|it| !it.is_negative()), text, self)
            }
            Self::Period => text.parse::<values::Period>().map(drop),
            Self::Address => values::node_ip(text).map(drop),
            Self::Range => values::cidr(text).map(drop),
            Self::Ranges => ranges(text).map(drop),
            Self::Words(words) => expect(words.contains(&text), text, self),
        }
    }
}

impl fmt::Display for ValueKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text => f.write_str("text"),
            Self::Switch => f.write_str("true or false"),
            Self::Integer(least, i64::MAX) => write!(f, "a whole number, at least {least}"),
            Self::Integer(least, most) => write!(f, "a whole number from {least} to {most}"),
            Self::Number => f.write_str("a number"),
            Self::Duration => f.write_str("a duration, such as 30s or 1m30s, at least 0s"),
            Self::Period => f.write_str("a duration, such as 30s or 1m30s, more than 0s"),
            Self::Address => f.write_str("an IP address"),
            Self::Bind => f.write_str("IP:PORT"),
            Self::Range => f.write_str("a range, such as 10.0.0.0/8"),
            Self::Ranges => f.write_str("a range, or one of each IP family with a comma between"),
            Self::Words(words) => f.write_str(&words.join(", ")),
        }
    }
}

fn expect(fits: bool, text: &str, kind: ValueKind) -> Result<(), String> {
    if fits {
        return Ok(());
    }
    Err(format!("{text:?} is not {}", kind.described()))
}

/// One range, or one of each family, as kube-proxy reads `clusterCIDR`.
pub(super) fn ranges(text: &str) -> Result<Vec<IpNetwork>, String> {
    let parsed: Result<Vec<IpNetwork>, String> = text.split(',').map(values::cidr).collect();
    let parsed = parsed?;
    one_of_each_family(&parsed)?;
    Ok(parsed)
}

/// # Errors
/// There are two ranges of one family, or more than two.
pub(super) fn one_of_each_family(ranges: &[IpNetwork]) -> Result<(), String> {
    let fits = match ranges {
        [] | [_] => true,
        [first, second] => first.is_ipv4() != second.is_ipv4(),
        _ => false,
    };
    let texts: Vec<String> = ranges.iter().map(ToString::to_string).collect();
    expect(fits, &texts.join(","), ValueKind::Ranges)
}

/// # Errors
/// A word, such as `primary`, appears twice.
pub(super) fn no_word_twice(entries: &[NodePortEntry]) -> Result<(), String> {
    let words = [
        NodePortEntry::All,
        NodePortEntry::Primary,
        NodePortEntry::Localhost,
    ];
    let count = |word: &NodePortEntry| entries.iter().filter(|entry| *entry == word).count();
    match words.iter().find(|word| count(word) > 1) {
        Some(word) => Err(format!("\"{word}\" appears twice; remove one")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(kind: ValueKind, text: &str, is_flag: bool) -> Result<(), String> {
        kind.check(&GivenValue::new(
            String::new(),
            String::new(),
            text,
            is_flag,
        ))
    }

    #[test]
    fn a_value_outside_of_its_limits_is_refused_with_the_limits() {
        let wrong = |kind: ValueKind, text: &str| checked(kind, text, false).unwrap_err();
        assert_eq!(
            wrong(ValueKind::Integer(0, 31), "32"),
            "\"32\" is not a whole number from 0 to 31"
        );
        assert_eq!(
            wrong(ValueKind::Integer(0, i64::MAX), "-1"),
            "\"-1\" is not a whole number, at least 0"
        );
        assert_eq!(
            wrong(ValueKind::Words(&["a", "b"]), "c"),
            "\"c\" is not one of a, b"
        );
        for (kind, texts) in [
            (ValueKind::Duration, ["-1s", "5"]),
            (ValueKind::Period, ["-1s", "0s"]),
            (ValueKind::Number, ["five", "inf"]),
            (ValueKind::Ranges, ["10.0.0.0/8,10.1.0.0/16", "10.0.0.0"]),
            (ValueKind::Range, ["10.0.0.0/33", "all"]),
            (ValueKind::Address, ["node", "10.0.0.0/8"]),
        ] {
            for text in texts {
                assert!(checked(kind, text, false).is_err(), "{kind:?} {text}");
            }
        }
    }

    /// Flags have the words of `strconv.ParseBool`, the file those of go-yaml 2.
    #[test]
    fn a_switch_has_other_words_in_the_file() {
        for (words, in_flags, in_file) in [
            ("true True TRUE false False FALSE", true, true),
            ("1 t T 0 f F", true, false),
            (
                "y Y yes Yes YES on On ON n N no No NO off Off OFF",
                false,
                true,
            ),
            ("tRUE yEs 2 maybe", false, false),
        ] {
            for word in words.split(' ') {
                let is_read = |is_flag| checked(ValueKind::Switch, word, is_flag).is_ok();
                assert_eq!(
                    (is_read(true), is_read(false)),
                    (in_flags, in_file),
                    "{word}"
                );
            }
        }
    }

    #[test]
    fn durations_are_written_as_in_go() {
        for text in ["15m0s", "24h0m0s", "1h", "500ms", "0s", "1.5s"] {
            assert_eq!(checked(ValueKind::Duration, text, true), Ok(()), "{text}");
        }
    }
}
