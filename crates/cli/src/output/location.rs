//! Prints where an address is.

use std::fmt::Write as _;

use super::grid::{Cell, CellStyle, Column, Grid, paint};
use super::stages::section;
use super::wrap::wrap;
use crate::locate::view::LocationView;

/// Indentation of rows.
const INDENT: usize = 2;

const COLUMNS: [Column; 2] = [
    Column::left("LABEL").shrink(16),
    Column::left("VALUE").shrink(8),
];

pub fn text(view: &LocationView, width: Option<usize>) -> String {
    let address = paint(view.address.to_string(), CellStyle::Strong);
    let node = paint(&view.node, CellStyle::Strong);
    let mut text = format!("{address}  on node {node}\n\n");
    if let Some(pod) = &view.pod {
        let _written = writeln!(text, "Pod         {}", wrap(pod, 12, width));
    }
    // Writing to a String cannot fail.
    let _written = writeln!(text, "Known from  {}\n", wrap(&view.words, 12, width));
    match &view.labels {
        None => text.push_str("the input does not have this Node, so its labels are not known\n"),
        Some(labels) if labels.is_empty() => text.push_str("the Node has no labels\n"),
        Some(labels) => {
            let rows = labels.iter();
            let rows: Vec<[Cell; 2]> = rows
                .map(|(key, value)| [key.as_str().into(), value.as_str().into()])
                .collect();
            text.push_str(&table(&rows, width));
        }
    }
    let warnings = view.warnings.iter().map(|warning| warning.text.clone());
    text + &section("Wrong with the input", warnings, width)
}

fn table(rows: &[[Cell; 2]], width: Option<usize>) -> String {
    let cells: Vec<&[Cell]> = rows.iter().map(<[Cell; 2]>::as_slice).collect();
    let grid = Grid::measure(&COLUMNS, &cells, INDENT, width);
    let pad = " ".repeat(INDENT);
    let mut text = format!("{pad}{}\n", grid.heading());
    for cells in rows {
        // Writing to a String cannot fail.
        let _written = writeln!(text, "{pad}{}", grid.line(cells, &Cell::default()));
    }
    text
}
