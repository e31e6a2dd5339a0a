//! Long sentences on a narrow terminal.

/// `text` in lines of at most `width` columns, all but the first indented by `indent` blanks; the first begins
/// behind `indent` columns that are taken. Without a width it stays one line.
pub fn wrap(text: &str, indent: usize, width: Option<usize>) -> String {
    let Some(room) = width.map(|width| width.saturating_sub(indent).max(20)) else {
        return text.to_owned();
    };
    let mut wrapped = String::new();
    let mut column = 0;
    for word in text.split(' ') {
        let length = word.chars().count();
        if column > 0 && column + 1 + length > room {
            wrapped.push('\n');
            wrapped.push_str(&" ".repeat(indent));
            column = 0;
        } else if column > 0 {
            wrapped.push(' ');
            column += 1;
        }
        wrapped.push_str(word);
        column += length;
    }
    wrapped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_move_to_the_next_line_as_a_whole() {
        let text = "one two three four five six seven";
        assert_eq!(
            wrap(text, 4, Some(28)),
            "one two three four five\n    six seven"
        );
        assert_eq!(wrap(text, 4, None), text);
        assert_eq!(wrap("", 4, Some(28)), "");
    }
}
