//! Makes text from objects and files safe to print: one line, no hidden characters, bounded length.
//!
//! A user who can write an `EndpointSlice` chooses its `zone`, and the API server does not validate it. Printed as it
//! is, such a text could control the terminal, forge a log line, or change the order in which a line reads.

use std::borrow::Cow;
use std::fmt::{self, Write as _};

/// Longest text, in bytes, that a message repeats in full.
const LONGEST: usize = 1000;

/// Longest name of a Kubernetes object, in bytes (RFC 1123 subdomain).
const LONGEST_NAME: usize = 253;

/// Whether a character moves, hides or reorders the characters around it.
///
/// True for control characters (Unicode Cc); for the marks, embeddings and isolates that change the direction of text;
/// for characters without a width; for line and paragraph separators; and for tags (Unicode 16, section 23).
pub const fn is_hidden(character: char) -> bool {
    matches!(character,
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e007f}')
}

/// Whether a text can be an object's name or a label: at most 253 bytes, no hidden characters.
pub fn is_name(text: &str) -> bool {
    text.len() <= LONGEST_NAME && !text.contains(is_hidden)
}

/// Text with each hidden character escaped in Rust syntax: `a\nb`, `\u{1b}[31m`.
#[derive(Debug, Clone, Copy)]
pub struct OneLine<'a>(pub &'a str);

impl fmt::Display for OneLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in self.0.chars() {
            if is_hidden(character) {
                write!(f, "{}", character.escape_default())?;
            } else {
                f.write_char(character)?;
            }
        }
        Ok(())
    }
}

/// Returns [`OneLine`] as text; borrowed if the text has no hidden characters.
pub fn one_line(text: &str) -> Cow<'_, str> {
    if text.contains(is_hidden) {
        Cow::Owned(OneLine(text).to_string())
    } else {
        Cow::Borrowed(text)
    }
}

/// Shortens a text of more than 1,000 bytes to its two ends and its length; returns a shorter text unchanged.
pub fn shorten(text: impl Into<Box<str>>) -> Box<str> {
    let text = text.into();
    if text.len() <= LONGEST {
        return text;
    }
    let bounds = |from: usize| (from..from + 4).find(|at| text.is_char_boundary(*at));
    let head = bounds(LONGEST / 2).and_then(|at| text.get(..at));
    let tail = bounds(text.len() - LONGEST / 4).and_then(|at| text.get(at..));
    let (head, tail) = (head.unwrap_or_default(), tail.unwrap_or_default());
    format!("{head} ... ({} bytes) ... {tail}", text.len()).into()
}

/// Escapes hidden characters in JSON, except the line breaks between values.
///
/// JSON allows most hidden characters inside strings (RFC 8259, section 7), and nowhere else.
pub fn safe_json(json: &str) -> Cow<'_, str> {
    escape_json(json, |character| character == '\n')
}

/// Replaces the hidden characters of `text` by `\uXXXX`, except those for which `kept` is true.
pub fn escape_json(text: &str, kept: impl Fn(char) -> bool) -> Cow<'_, str> {
    let hides = |character: char| is_hidden(character) && !kept(character);
    if !text.contains(hides) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        if hides(character) {
            for unit in character.encode_utf16(&mut [0; 2]) {
                // Writing to a String cannot fail.
                let _written = write!(safe, "\\u{unit:04x}");
            }
        } else {
            safe.push(character);
        }
    }
    Cow::Owned(safe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_commands_a_terminal_or_forges_a_line_is_shown_and_not_done() {
        let attack =
            "a\u{1b}]0;title\u{7}\nforged\r\u{202e}cba\u{2028}\u{2029}\u{9b}2J\u{200b}\u{e0041}";
        let shown = one_line(attack);
        assert_eq!(
            shown,
            r"a\u{1b}]0;title\u{7}\nforged\r\u{202e}cba\u{2028}\u{2029}\u{9b}2J\u{200b}\u{e0041}"
        );
        for honest in ["shop/cart", "Zürich-1", "区域", "a b"] {
            assert!(matches!(one_line(honest), Cow::Borrowed(_)), "{honest}");
            assert!(is_name(honest));
        }
        assert!(!is_name(attack) && !is_name(&"a".repeat(254)));
    }

    #[test]
    fn json_stays_the_same_value_and_hides_nothing() {
        let value =
            serde_json::json!({ "zone": "a\u{202e}b\u{9b}\u{2028}\u{e0041}\n", "list": [1] });
        let text = serde_json::to_string_pretty(&value).unwrap();
        let safe = safe_json(&text);
        assert!(
            !safe.contains(|one: char| is_hidden(one) && one != '\n'),
            "{safe}"
        );
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&safe).unwrap(),
            value
        );
    }

    #[test]
    fn a_long_text_keeps_its_ends_and_says_its_length() {
        let long = format!("{}ä and the end", "ä".repeat(26_000_000));
        let short = shorten(long);
        assert!(short.len() < 1000, "{}", short.len());
        assert!(short.starts_with("ää") && short.ends_with("and the end"));
        assert!(short.contains("(52000014 bytes)"), "{short}");
        assert_eq!(&*shorten("fine"), "fine");
    }
}
