//! Formats the figures as a table, for the terminal and for `docs/performance.md`.

use guest_wire::report::Report;

use super::figures::Figure;
use crate::thousands::thousands;

/// Returns an aligned Markdown table with one row for each figure.
pub(crate) fn table(report: &Report, figures: &[Figure]) -> String {
    let mut rows = vec![head(report)];
    rows.extend(figures.iter().map(row));
    aligned(&rows)
}

/// Formats rows as an aligned Markdown table; the first row is the head.
pub(crate) fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let widths: Vec<usize> = (0..columns)
        .map(|column| {
            let cells = rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        })
        .collect();
    let mut text = String::new();
    for (nth, row) in rows.iter().enumerate() {
        text += &line(row, &widths);
        if nth == 0 {
            let rules: Vec<_> = widths.iter().map(|width| "-".repeat(*width)).collect();
            text += &line(&rules, &widths);
        }
    }
    text
}

fn head(report: &Report) -> Vec<String> {
    let sizes = report
        .sizes
        .iter()
        .map(|size| format!("{} x {}", thousands(size.services), report.endpoints));
    let mut cells = vec!["figure".to_owned()];
    cells.extend(sizes);
    cells.extend(["target".to_owned(), "reached".to_owned()]);
    cells
}

fn row(figure: &Figure) -> Vec<String> {
    let mut cells = vec![figure.name.to_owned()];
    cells.extend(
        figure
            .values
            .iter()
            .map(|value| figure.unit.format(value.value)),
    );
    cells.push(format!("<= {}", figure.unit.format(figure.target)));
    cells.push(if figure.reached { "yes" } else { "NO" }.to_owned());
    cells
}

fn line(cells: &[String], widths: &[usize]) -> String {
    let padded = cells
        .iter()
        .zip(widths)
        .map(|(cell, width)| format!("{cell:<width$}"));
    format!("| {} |\n", padded.collect::<Vec<_>>().join(" | "))
}

#[cfg(test)]
mod tests {
    use super::super::figures::{figures, tests::report};
    use super::*;

    #[test]
    fn a_missed_target_is_marked() {
        let report = report();
        let text = table(&report, &figures(&report));
        let line = text
            .lines()
            .find(|line| line.starts_with("| cold load"))
            .unwrap();
        let cells: Vec<_> = line.split('|').map(str::trim).collect();
        assert_eq!(
            cells,
            ["", "cold load", "1.10", "1.20", "<= 1.15", "NO", ""]
        );
        assert!(text.contains("| 10,000 x 10 |"));
    }

    #[test]
    fn every_line_is_equally_long() {
        let report = report();
        let text = table(&report, &figures(&report));
        let lengths: Vec<_> = text.lines().map(|line| line.chars().count()).collect();
        assert!(lengths.iter().all(|length| *length == lengths[0]), "{text}");
    }
}
