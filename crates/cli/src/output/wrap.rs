//! Wraps long sentences on a narrow terminal.

use super::plain::Plain;

/// Wraps `text` to lines of at most `width` columns, indenting all but the first by `indent`. The
/// first line starts after `indent` used columns. Without a width it stays one line.
pub fn wrap(text: impl Into<Plain>, indent: usize, width: Option<usize>) -> Plain {
    let text = text.into();
    let Some(room) = width.map(|width| width.saturating_sub(indent).max(20)) else {
        return text;
    };
    let mut lines = Vec::new();
    let mut line = String::new();
    let mut column = 0;
    for word in text.as_str().split(' ') {
        let length = word.chars().count();
        if column > 0 && column + 1 + length > room {
            lines.push(Plain::from(std::mem::take(&mut line)));
            column = 0;
        } else if column > 0 {
            line.push(' ');
            column += 1;
        }
        line.push_str(word);
        column += length;
    }
    lines.push(line.into());
    Plain::lines(&lines, &format!("\n{}", " ".repeat(indent)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_move_to_the_next_line_as_a_whole() {
        let text = "one two three four five six seven";
        assert_eq!(
            wrap(text, 4, Some(28)).as_str(),
            "one two three four five\n    six seven"
        );
        assert_eq!(wrap(text, 4, None).as_str(), text);
        assert_eq!(wrap("", 4, Some(28)).as_str(), "");
    }
}
