//! Aligns columns without lines, and leaves out empty columns and those that do not fit.
//!
//! A [`Grid`] measures all rows first, to align several blocks under one heading.

use owo_colors::OwoColorize as _;

use super::plain::Plain;
use super::wrap::wrap;

/// Spaces between two columns.
const GAP: usize = 2;

/// A column.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    /// The heading, in capitals.
    pub title: &'static str,
    pub side: Side,
    /// What happens on a narrow terminal.
    pub narrow: Narrow,
}

/// The alignment of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Left, for words.
    Left,
    /// Right, for numbers.
    Right,
}

/// What happens to a column on a narrow terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Narrow {
    /// It stays unchanged.
    Keep,
    /// It is cut to at least so many characters.
    Shrink(usize),
    /// It is left out, lowest number first, after all cuts.
    Drop(u8),
}

/// The style of a cell on a terminal with colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CellStyle {
    /// The terminal's default.
    #[default]
    Plain,
    /// Bold: the most important cells.
    Strong,
    /// Dim: less important cells.
    Quiet,
    /// Green.
    Good,
    /// Yellow.
    Warn,
    /// Red.
    Bad,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cell {
    text: Plain,
    look: CellStyle,
}

/// Measured columns.
#[derive(Debug, Clone)]
pub struct Grid {
    columns: Vec<Column>,
    /// Width of each column; 0 leaves it out.
    widths: Vec<usize>,
}

impl Column {
    /// A column of words.
    pub const fn left(title: &'static str) -> Self {
        Self {
            title,
            side: Side::Left,
            narrow: Narrow::Keep,
        }
    }

    /// A column of numbers.
    pub const fn right(title: &'static str) -> Self {
        Self {
            title,
            side: Side::Right,
            narrow: Narrow::Keep,
        }
    }

    /// The same column, cut to at least `least` characters on a narrow terminal.
    #[must_use]
    pub const fn shrink(self, least: usize) -> Self {
        Self {
            narrow: Narrow::Shrink(least),
            ..self
        }
    }

    /// The same column, left out on a narrow terminal; lowest rank first.
    #[must_use]
    pub const fn droppable(self, rank: u8) -> Self {
        Self {
            narrow: Narrow::Drop(rank),
            ..self
        }
    }
}

impl Cell {
    /// A cell with a style.
    pub fn new(text: impl Into<Plain>, look: CellStyle) -> Self {
        Self {
            text: text.into(),
            look,
        }
    }

    /// Whether nothing of it is visible.
    pub fn is_empty(&self) -> bool {
        self.text.as_str().is_empty()
    }

    /// The same behind `before` columns, in lines that fit into `width`.
    #[must_use]
    pub fn wrapped(&self, before: usize, width: Option<usize>) -> Self {
        Self {
            text: wrap(self.text.clone(), before, width),
            look: self.look,
        }
    }

    fn width(&self) -> usize {
        self.text.as_str().chars().count()
    }
}

impl<T: Into<Plain>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::new(text, CellStyle::Plain)
    }
}

impl Grid {
    /// Measures `rows` and fits them into `width` columns of the terminal, `None` for no limit.
    pub fn measure(
        columns: &[Column],
        rows: &[&[Cell]],
        indent: usize,
        width: Option<usize>,
    ) -> Self {
        let mut widths = vec![0; columns.len()];
        for row in rows {
            for (wide, cell) in widths.iter_mut().zip(*row) {
                *wide = (*wide).max(cell.width());
            }
        }
        for (wide, column) in widths.iter_mut().zip(columns) {
            if *wide > 0 {
                *wide = (*wide).max(column.title.chars().count());
            }
        }
        let mut grid = Self {
            columns: columns.to_vec(),
            widths,
        };
        if let Some(width) = width {
            grid.shrink(width.saturating_sub(indent));
            grid.drop_columns(width.saturating_sub(indent));
        }
        grid
    }

    /// Terminal columns of a full line.
    pub fn width(&self) -> usize {
        let shown = self.widths.iter().filter(|wide| **wide > 0);
        shown
            .fold(0, |sum, wide| sum + wide + GAP)
            .saturating_sub(GAP)
    }

    pub fn heading(&self) -> String {
        self.heading_with("")
    }

    /// The heading with a title for the text behind the last column.
    pub fn heading_with(&self, tail: &'static str) -> String {
        let cells: Vec<_> = self
            .columns
            .iter()
            .map(|column| Cell::new(column.title, CellStyle::Quiet))
            .collect();
        self.line(&cells, &Cell::new(tail, CellStyle::Quiet))
    }

    /// A line: `cells` for the first columns, then `tail` unchanged after the last cell.
    pub fn line(&self, cells: &[Cell], tail: &Cell) -> String {
        let mut line = String::new();
        let mut owed = 0;
        let columns = self.columns.iter().zip(&self.widths).zip(cells);
        for ((column, &wide), cell) in columns.filter(|((_, wide), _)| **wide > 0) {
            let text = cut(cell.text.as_str(), wide);
            let spare = wide - text.chars().count();
            let (before, after) = match column.side {
                Side::Left => (0, spare),
                Side::Right => (spare, 0),
            };
            line.push_str(&" ".repeat(owed + before));
            line.push_str(&colour(&text, cell.look));
            owed = after + GAP;
        }
        if !tail.is_empty() {
            line.push_str(&" ".repeat(owed));
            line.push_str(&colour(tail.text.as_str(), tail.look));
        }
        line.truncate(line.trim_end().len());
        line
    }

    /// Cuts the widest column that may be cut, until the line fits or no such column is left.
    fn shrink(&mut self, width: usize) {
        while self.width() > width {
            let excess = self.width() - width;
            let widest =
                self.columns
                    .iter()
                    .zip(self.widths.iter_mut())
                    .filter_map(|(column, wide)| {
                        let Narrow::Shrink(least) = column.narrow else {
                            return None;
                        };
                        let spare = wide.saturating_sub(least);
                        (spare > 0).then_some((spare, wide))
                    });
            let Some((spare, wide)) = widest.max_by_key(|(spare, _)| *spare) else {
                return;
            };
            *wide -= spare.min(excess);
        }
    }

    fn drop_columns(&mut self, width: usize) {
        while self.width() > width {
            let next =
                self.columns
                    .iter()
                    .zip(self.widths.iter_mut())
                    .filter_map(|(column, wide)| {
                        let Narrow::Drop(rank) = column.narrow else {
                            return None;
                        };
                        (*wide > 0).then_some((rank, wide))
                    });
            let Some((_, wide)) = next.min_by_key(|(rank, _)| *rank) else {
                return;
            };
            *wide = 0;
        }
    }
}

/// `text` in at most `wide` characters, with a mark if it was cut.
fn cut(text: &str, wide: usize) -> String {
    if text.chars().count() <= wide {
        return text.to_owned();
    }
    text.chars()
        .take(wide.saturating_sub(1))
        .chain(['…'])
        .collect()
}

/// `text` with a style; `output::print` removes the colours if they are off.
pub fn paint(text: impl Into<Plain>, look: CellStyle) -> String {
    colour(text.into().as_str(), look)
}

fn colour(text: &str, look: CellStyle) -> String {
    match look {
        CellStyle::Plain => text.to_owned(),
        _ if text.is_empty() => String::new(),
        CellStyle::Strong => text.bold().to_string(),
        CellStyle::Quiet => text.dimmed().to_string(),
        CellStyle::Good => text.green().to_string(),
        CellStyle::Warn => text.yellow().to_string(),
        CellStyle::Bad => text.red().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [Column; 3] = [
        Column::left("NAME").shrink(4),
        Column::left("ZONE").droppable(0),
        Column::right("N"),
    ];

    fn lines(rows: &[[&str; 3]], width: Option<usize>) -> Vec<String> {
        let rows: Vec<Vec<Cell>> = rows
            .iter()
            .map(|row| row.iter().map(|&cell| cell.into()).collect())
            .collect();
        let cells: Vec<&[Cell]> = rows.iter().map(Vec::as_slice).collect();
        let grid = Grid::measure(&COLUMNS, &cells, 0, width);
        rows.iter()
            .map(|row| grid.line(row, &Cell::default()))
            .collect()
    }

    #[test]
    fn words_are_left_aligned_and_numbers_right_aligned() {
        assert_eq!(
            lines(&[["a", "x", "1"], ["longer", "y", "100"]], None),
            ["a       x       1", "longer  y     100"]
        );
    }

    #[test]
    fn an_empty_column_is_left_out() {
        assert_eq!(lines(&[["a", "", "1"]], None), ["a     1"]);
    }

    #[test]
    fn a_narrow_terminal_cuts_first_and_drops_then() {
        let rows = [["a-very-long-name", "zone-1", "1"]];
        assert_eq!(lines(&rows, Some(20)), ["a-very-l…  zone-1  1"]);
        assert_eq!(lines(&rows, Some(12)), ["a-v…  1"]);
    }

    #[test]
    fn a_line_has_no_blanks_at_its_end() {
        assert_eq!(
            lines(&[["a", "", ""], ["b", "z", ""]], None),
            ["a", "b     z"]
        );
    }
}
