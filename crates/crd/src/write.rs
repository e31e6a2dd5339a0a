//! Writes YAML in block style, with keys in the given order.

/// Longer texts are folded over several lines.
const WIDTH: usize = 100;

#[derive(Debug)]
pub(super) enum Yaml {
    /// A text, quoted if necessary.
    Text(String),
    /// A number or a boolean.
    Plain(String),
    List(Vec<Yaml>),
    Map(Vec<(&'static str, Yaml)>),
}

impl Yaml {
    pub(super) fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    pub(super) fn plain(value: impl std::fmt::Display + Copy) -> Self {
        Self::Plain(value.to_string())
    }

    pub(super) fn document(&self) -> String {
        let mut text = String::new();
        self.block(&mut text, 0);
        text
    }

    /// Writes the value at the start of a line, or as the rest of a line.
    fn block(&self, text: &mut String, indent: usize) {
        let margin = " ".repeat(indent);
        match self {
            Self::List(items) => {
                for item in items {
                    let mut inner = String::new();
                    item.block(&mut inner, indent + 2);
                    // The first line of the element follows the dash.
                    text.push_str(&margin);
                    text.push_str("- ");
                    text.push_str(inner.trim_start_matches(' '));
                }
            }
            Self::Map(entries) => {
                for (key, value) in entries {
                    value.entry(key, text, indent);
                }
            }
            Self::Text(_) | Self::Plain(_) => {
                text.push_str(&margin);
                text.push_str(&self.inline());
                text.push('\n');
            }
        }
    }

    fn entry(&self, key: &str, text: &mut String, indent: usize) {
        let margin = " ".repeat(indent);
        match self {
            Self::Text(value) if value.len() > WIDTH && is_foldable(value) => {
                text.extend([format!("{margin}{key}: >-\n")]);
                for line in fold(value) {
                    text.extend([format!("{margin}  {line}\n")]);
                }
            }
            Self::Text(_) | Self::Plain(_) => {
                text.extend([format!("{margin}{key}: {}\n", self.inline())]);
            }
            Self::List(items) if items.is_empty() => text.extend([format!("{margin}{key}: []\n")]),
            Self::Map(entries) if entries.is_empty() => {
                text.extend([format!("{margin}{key}: {{}}\n")]);
            }
            Self::List(_) | Self::Map(_) => {
                text.extend([format!("{margin}{key}:\n")]);
                let deeper = if matches!(self, Self::List(_)) { 0 } else { 2 };
                self.block(text, indent + deeper);
            }
        }
    }

    fn inline(&self) -> String {
        match self {
            Self::Text(text) => scalar(text),
            Self::Plain(text) => text.clone(),
            Self::List(_) | Self::Map(_) => String::new(),
        }
    }
}

/// Whether folding keeps the text: no line breaks, no double spaces.
fn is_foldable(text: &str) -> bool {
    !text.contains(['\n', '\t']) && !text.contains("  ") && text.trim() == text
}

fn fold(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if line.len() + 1 + word.len() <= WIDTH => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// The text as it is if it is unambiguous, otherwise in double quotes.
fn scalar(text: &str) -> String {
    let first = text.chars().next().is_some_and(|c| c.is_ascii_alphabetic());
    let harmless = |c: char| c.is_ascii_alphanumeric() || " -_./,()'=".contains(c);
    let words = ["true", "false", "yes", "no", "on", "off", "null", "y", "n"];
    let is_word = words.iter().any(|word| text.eq_ignore_ascii_case(word));
    if first && !is_word && text.chars().all(harmless) && !text.ends_with(' ') {
        return text.to_owned();
    }
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}
