//! Drawing rows of text as an SVG that suits light and dark pages.

use std::fmt::Write as _;

use super::ansi::{Piece, Row, Style};

/// One cell of the terminal, in SVG units.
const CELL: (f64, f64) = (8.0, 19.0);
/// Space around the text; above it is the window's frame.
const MARGIN: f64 = 18.0;
const FRAME: f64 = 34.0;

/// Colours as GitHub shows a terminal, for light pages and dark ones.
const STYLE: &str = "\
.page{fill:#f6f8fa;stroke:#d0d7de}.dot{fill:#d0d7de}.title{fill:#57606a}text{fill:#24292f}.b{font-weight:700}.f{opacity:.62}\
.c0{fill:#6e7781}.c1{fill:#cf222e}.c2{fill:#1a7f37}.c3{fill:#9a6700}.c4{fill:#0969da}.c5{fill:#8250df}.c6{fill:#1b7c83}.c7{fill:#57606a}\
@media(prefers-color-scheme:dark){.page{fill:#0d1117;stroke:#30363d}.dot{fill:#30363d}.title{fill:#8b949e}text{fill:#e6edf3}\
.c0{fill:#6e7681}.c1{fill:#ff7b72}.c2{fill:#3fb950}.c3{fill:#d29922}.c4{fill:#58a6ff}.c5{fill:#bc8cff}.c6{fill:#39c5cf}.c7{fill:#b1bac4}}";

/// Draws a window with these rows.
pub(super) fn draw(title: &str, rows: &[Row]) -> String {
    let columns = rows.iter().map(|row| columns(row)).max().unwrap_or(0);
    let width = units(columns) * CELL.0 + 2.0 * MARGIN;
    let height = FRAME + units(rows.len()) * CELL.1 + MARGIN;
    let mut svg = String::new();
    // Writing to a String cannot fail, so the results below are not looked at.
    let _written = write!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" role=\"img\" \
         font-family=\"ui-monospace,SFMono-Regular,Menlo,'DejaVu Sans Mono',monospace\" font-size=\"13.3\">\n\
         <title>{title}</title>\n<style>{STYLE}</style>\n\
         <rect class=\"page\" x=\"0.5\" y=\"0.5\" width=\"{}\" height=\"{}\" rx=\"9\"/>\n\
         <g class=\"dot\"><circle cx=\"20\" cy=\"17\" r=\"5.5\"/><circle cx=\"38\" cy=\"17\" r=\"5.5\"/><circle cx=\"56\" cy=\"17\" r=\"5.5\"/></g>\n\
         <text class=\"title\" x=\"{}\" y=\"21.5\" text-anchor=\"middle\">{title}</text>\n",
        width - 1.0,
        height - 1.0,
        width / 2.0,
        title = escaped(title),
    );
    for (index, row) in rows.iter().enumerate() {
        draw_row(&mut svg, row, FRAME + units(index) * CELL.1);
    }
    svg += "</svg>\n";
    svg
}

/// One row: text piece by piece at its column, bars as shapes so that they have no gaps.
fn draw_row(svg: &mut String, row: &Row, top: f64) {
    let mut column = 0;
    for piece in row {
        let class = class(piece.style);
        for run in runs(&piece.text) {
            let length = run.chars().count();
            let x = MARGIN + units(column) * CELL.0;
            match run.chars().next().and_then(eighths) {
                Some(_) => draw_bar(svg, run, &class, (x, top)),
                None if run.trim().is_empty() => {}
                None => {
                    let _written = writeln!(
                        svg,
                        "<text{class} x=\"{x}\" y=\"{}\" textLength=\"{}\" xml:space=\"preserve\">{}</text>",
                        top + 14.0,
                        units(length) * CELL.0,
                        escaped(run),
                    );
                }
            }
            column += length;
        }
    }
}

/// A run of block characters as one rectangle.
fn draw_bar(svg: &mut String, run: &str, class: &str, (x, top): (f64, f64)) {
    let width: f64 = run
        .chars()
        .filter_map(eighths)
        .map(|e| f64::from(e) / 8.0 * CELL.0)
        .sum();
    let _written = writeln!(
        svg,
        "<rect{class} x=\"{x}\" y=\"{}\" width=\"{width}\" height=\"{}\"/>",
        top + 3.0,
        CELL.1 - 6.0,
    );
}

/// How many eighths of a cell a block character fills from the left (Unicode 2588 to 258F).
fn eighths(c: char) -> Option<u8> {
    let code = u32::from(c);
    (0x2588..=0x258f)
        .contains(&code)
        .then(|| u8::try_from(0x2590 - code).unwrap_or(8))
}

/// Cuts text where bars begin and end.
fn runs(text: &str) -> Vec<&str> {
    let mut cuts = vec![0];
    let mut before = None;
    for (index, c) in text.char_indices() {
        let bar = eighths(c).is_some();
        if before.is_some_and(|before| before != bar) {
            cuts.push(index);
        }
        before = Some(bar);
    }
    cuts.push(text.len());
    cuts.iter()
        .zip(cuts.iter().skip(1))
        .filter_map(|(&from, &to)| text.get(from..to))
        .collect()
}

fn class(style: Style) -> String {
    let mut names = Vec::new();
    names.extend(style.bold.then(|| "b".to_owned()));
    names.extend(style.faint.then(|| "f".to_owned()));
    names.extend(style.colour.map(|colour| format!("c{colour}")));
    if names.is_empty() {
        return String::new();
    }
    format!(" class=\"{}\"", names.join(" "))
}

fn columns(row: &[Piece]) -> usize {
    row.iter().map(|piece| piece.text.chars().count()).sum()
}

/// Cells as a factor; a terminal has far fewer than 2^32.
fn units(cells: usize) -> f64 {
    f64::from(u32::try_from(cells).unwrap_or(u32::MAX))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::super::ansi::row;
    use super::*;

    #[test]
    fn bars_become_one_rectangle_of_their_length() {
        let svg = draw("t", &[row("n1 \u{1b}[32m██▌\u{1b}[0m 80 %")]);
        // Two full cells and four eighths, from the fourth column.
        assert!(
            svg.contains("<rect class=\"c2\" x=\"42\" y=\"37\" width=\"20\" height=\"13\"/>"),
            "{svg}"
        );
        assert!(svg.contains(">n1 </text>"));
        assert!(!svg.contains('█'));
    }

    #[test]
    fn text_is_escaped_and_placed_at_its_column() {
        let svg = draw("a < b", &[row("\u{1b}[1m<ok>\u{1b}[0m & on")]);
        assert!(svg.contains("<title>a &lt; b</title>"));
        assert!(svg.contains("<text class=\"b\" x=\"18\" y=\"48\" textLength=\"32\" xml:space=\"preserve\">&lt;ok&gt;</text>"), "{svg}");
        assert!(svg.contains("x=\"50\""));
    }
}
