//! The figures as a table, for the terminal and for `docs/performance.md`.

use guest_wire::report::Report;

use super::figures::Figure;

/// A Markdown table, one row for each figure, aligned so that it reads as it stands.
pub(crate) fn table(report: &Report, figures: &[Figure]) -> String {
    let mut rows = vec![head(report)];
    rows.extend(figures.iter().map(row));
    aligned(&rows)
}

/// Rows as a Markdown table; the first is its head.
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

/// `10000` as `10,000`.
pub(crate) fn thousands(number: u32) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (nth, digit) in digits.chars().enumerate() {
        if nth > 0 && (digits.len() - nth).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::figures::{figures, tests::report};
    use super::*;

    #[test]
    fn a_missed_target_stands_out() {
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

    #[test]
    fn thousands_are_grouped() {
        assert_eq!(thousands(999), "999");
        assert_eq!(thousands(1_000), "1,000");
        assert_eq!(thousands(1_234_567), "1,234,567");
    }
}
