//! One line of terminal output: its text, cut where the style changes.

/// A line, as pieces of one style each.
pub(super) type Row = Vec<Piece>;

/// Text of one style.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) text: String,
    pub(super) style: Style,
}

/// The attributes of a select-graphic-rendition sequence (ECMA-48, `ESC [ ... m`) that are drawn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Style {
    pub(super) bold: bool,
    pub(super) faint: bool,
    /// 0 to 7: black, red, green, yellow, blue, magenta, cyan, white; the bright ones are the same.
    pub(super) colour: Option<u8>,
}

/// Cuts a line into pieces; sequences that are not styles are dropped.
pub(super) fn row(line: &str) -> Row {
    let mut pieces = Vec::new();
    let mut style = Style::default();
    for (index, part) in line.split('\u{1b}').enumerate() {
        let mut text = part;
        if index > 0 {
            let Some((codes, rest)) = sequence(part) else {
                continue;
            };
            text = rest;
            style = codes.map_or(style, |codes| style.with(codes));
        }
        if !text.is_empty() {
            let text = text.to_owned();
            pieces.push(Piece { text, style });
        }
    }
    pieces
}

/// Splits `[1;32mrest` into its codes (none if it is no style) and the rest.
fn sequence(part: &str) -> Option<(Option<&str>, &str)> {
    let body = part.strip_prefix('[')?;
    let end = body.find(|c: char| c.is_ascii_alphabetic())?;
    let (codes, rest) = body.split_at_checked(end)?;
    let kind = rest.chars().next()?;
    Some(((kind == 'm').then_some(codes), rest.get(1..)?))
}

impl Style {
    fn with(mut self, codes: &str) -> Self {
        for code in codes.split(';') {
            // An empty code is 0.
            match code.parse::<u8>().unwrap_or(0) {
                0 => self = Self::default(),
                1 => self.bold = true,
                2 => self.faint = true,
                22 => (self.bold, self.faint) = (false, false),
                39 => self.colour = None,
                code @ 30..=37 => self.colour = Some(code - 30),
                code @ 90..=97 => self.colour = Some(code - 90),
                _ => {}
            }
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(text: &str, bold: bool, colour: Option<u8>) -> Piece {
        let style = Style {
            bold,
            colour,
            ..Style::default()
        };
        Piece {
            text: text.into(),
            style,
        }
    }

    #[test]
    fn styles_hold_until_they_are_reset() {
        let pieces = row("a \u{1b}[1;32mgreen\u{1b}[22m still\u{1b}[0m end");
        let expected = vec![
            piece("a ", false, None),
            piece("green", true, Some(2)),
            piece(" still", false, Some(2)),
            piece(" end", false, None),
        ];
        assert_eq!(pieces, expected);
    }

    #[test]
    fn cursor_movements_leave_no_trace() {
        assert_eq!(
            row("\u{1b}[2K\u{1b}[1Gdone"),
            vec![piece("done", false, None)]
        );
        assert_eq!(row(""), Vec::new());
    }
}
