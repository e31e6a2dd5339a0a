//! Durations as Go's `time.ParseDuration` reads them, such as `1h30m`, `1.5s` and `-1s`.

use jiff::SignedDuration;

/// A fraction has at most this number of digits that count.
const FRACTION_DIGITS: usize = 18;

/// Returns `None` for a text that Go refuses, also if it is longer than 292 years.
pub(super) fn parse(text: &str) -> Option<SignedDuration> {
    let sign = if text.starts_with('-') { -1 } else { 1 };
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let nanoseconds = match unsigned {
        "" => None,
        "0" => Some(0),
        parts => sum(parts),
    };
    let nanoseconds = i64::try_from(sign * nanoseconds?);
    Some(SignedDuration::from_nanos(nanoseconds.ok()?))
}

/// The nanoseconds of numbers with a unit each.
fn sum(mut rest: &str) -> Option<i128> {
    let mut sum: i128 = 0;
    while !rest.is_empty() {
        let (whole, after) = digits(rest);
        let (fraction, after) = after.strip_prefix('.').map_or(("", after), digits);
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let is_number = |next: char| next == '.' || next.is_ascii_digit();
        let (name, after) = after.split_at(after.find(is_number).unwrap_or(after.len()));
        let unit = unit(name)?;
        sum = sum.checked_add(i128::from(number(whole)?) * unit)?;
        sum = sum.checked_add(part(fraction, unit)?)?;
        rest = after;
    }
    Some(sum)
}

fn unit(name: &str) -> Option<i128> {
    Some(match name {
        "ns" => 1,
        // Both letters: the micro sign and the Greek one.
        "us" | "\u{b5}s" | "\u{3bc}s" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    })
}

/// The nanoseconds of a fraction of a unit. Less than a nanosecond is cut off.
fn part(fraction: &str, unit: i128) -> Option<i128> {
    let fraction = fraction.get(..FRACTION_DIGITS).unwrap_or(fraction);
    let scale = fraction.bytes().fold(1, |scale, _| scale * 10);
    Some(i128::from(number(fraction)?) * unit / scale)
}

fn number(digits: &str) -> Option<u64> {
    match digits {
        "" => Some(0),
        digits => digits.parse().ok(),
    }
}

/// The digits at the beginning, and the text after them.
fn digits(text: &str) -> (&str, &str) {
    let end = text.find(|next: char| !next.is_ascii_digit());
    text.split_at(end.unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_go_accepts_has_the_same_length() {
        for (text, nanoseconds) in [
            ("0", 0),
            ("+0", 0),
            ("-0", 0),
            ("0s", 0),
            ("5s", 5_000_000_000),
            ("+5s", 5_000_000_000),
            ("-5s", -5_000_000_000),
            ("1478s", 1_478_000_000_000),
            ("5.s", 5_000_000_000),
            (".5s", 500_000_000),
            ("-.5s", -500_000_000),
            ("1.004s", 1_004_000_000),
            ("1.00400s", 1_004_000_000),
            ("100.00100s", 100_001_000_000),
            ("10ns", 10),
            ("11us", 11_000),
            ("12\u{b5}s", 12_000),
            ("12\u{3bc}s", 12_000),
            ("13ms", 13_000_000),
            ("15m", 900_000_000_000),
            ("16h", 57_600_000_000_000),
            ("30s1m", 90_000_000_000),
            ("1h1h", 7_200_000_000_000),
            ("1.5m30s", 120_000_000_000),
            ("1.5h30m", 7_200_000_000_000),
            ("10.5s4m", 250_500_000_000),
            ("-2m3.4s", -123_400_000_000),
            ("39h9m14.425s", 140_954_425_000_000),
            ("52763797000ns", 52_763_797_000),
            ("9007199254740993ns", (1 << 53) + 1),
            ("9223372036854775807ns", i64::MAX),
            ("9223372036854775.807us", i64::MAX),
            ("9223372036s854ms775us807ns", i64::MAX),
            ("-9223372036854775808ns", i64::MIN),
            ("0.100000000000000000000h", 360_000_000_000),
            ("0.830103483285477580700h", 2_988_372_539_827),
        ] {
            let expected = Some(SignedDuration::from_nanos(nanoseconds));
            assert_eq!(parse(text), expected, "{text}");
        }
    }

    #[test]
    fn what_go_refuses_is_refused() {
        for text in [
            "",
            "3",
            "-",
            "+",
            "s",
            ".",
            "-.",
            ".s",
            "+.s",
            "--1s",
            "1d",
            "1S",
            "PT30S",
            "30 seconds",
            "30 s",
            "5m 3s",
            "5m3",
            " 5s",
            "5s ",
            "1e3s",
            "1,5s",
            "1..5s",
            "00:00:30",
            "\u{85}\u{85}",
            "\u{ffff}",
            "9223372036854775810ns",
            "9223372036854775808ns",
            "-9223372036854775809ns",
            "9223372036854776us",
            "3000000h",
            "2562048h",
            "2562047h47m16s854ms775us808ns",
            "99999999999999999999s",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
