//! A single virtual server: its policy, empty levels, and a bar for each endpoint.

use std::fmt::Write as _;

use agent_api::numbers::percent;

use super::super::figures::OVERLOADED;
use super::super::rank::name;
use super::super::view::{FlowView, LoadView};
use super::load::times;
use crate::output::bar::bar;
use crate::output::grid::{Cell, CellStyle, Column, Grid, paint};
use crate::output::plain::Plain;
use crate::output::server::endpoint;

/// Endpoints with a bar; the others are counted.
const DRAWN: usize = 60;
/// Columns of a bar for an even split.
const EVEN: usize = 8;
/// The maximum of bars.
const LONGEST: usize = 24;

pub(super) fn text(flow: &FlowView, width: Option<usize>) -> String {
    let changed = flow.states.changed.is_some();
    let sorted = sorted(flow, changed);
    let rows: Vec<Vec<Cell>> = sorted
        .iter()
        .take(DRAWN)
        .map(|one| row(one, changed))
        .collect();
    let cells: Vec<&[Cell]> = rows.iter().map(Vec::as_slice).collect();
    let grid = Grid::measure(&columns(changed), &cells, 2, width);
    let room = width.map_or(LONGEST, |width| {
        width.saturating_sub(grid.width() + 4).min(LONGEST)
    });
    let mut text = head(flow);
    let _written = writeln!(text, "  {}", grid.heading());
    for (one, cells) in sorted.iter().zip(&rows) {
        let _written = writeln!(
            text,
            "  {}",
            grid.line(cells, &drawn(load(one, changed), room))
        );
    }
    if sorted.len() > DRAWN {
        let _written = writeln!(
            text,
            "  and {} more with less; -o json has all",
            sorted.len() - DRAWN
        );
    }
    text
}

fn head(flow: &FlowView) -> String {
    let mut text = format!(
        "\n{}  {}\n  {}\n",
        paint(name(flow), CellStyle::Strong),
        Plain::from(&flow.frontend),
        Plain::from(&flow.policy)
    );
    if let Some(policy) = &flow.changed_policy {
        // Writing to a String cannot fail.
        let _written = writeln!(text, "  changed: {}", Plain::from(policy));
    }
    for empty in &flow.empty_levels {
        let words = format!(
            "level {} is empty for {} of the clients",
            empty.level,
            percent(empty.part)
        );
        let _written = writeln!(text, "  {}", paint(&words, CellStyle::Warn));
    }
    text
}

/// By zone and address if all have a bar, otherwise by load.
fn sorted(flow: &FlowView, changed: bool) -> Vec<&LoadView> {
    let mut sorted: Vec<&LoadView> = flow.endpoints.iter().collect();
    sorted.sort_by(|left, right| {
        (&left.zone, left.address, left.port).cmp(&(&right.zone, right.address, right.port))
    });
    if sorted.len() > DRAWN {
        sorted.sort_by(|left, right| load(right, changed).total_cmp(&load(left, changed)));
    }
    sorted
}

fn load(one: &LoadView, changed: bool) -> f64 {
    let load = if changed { one.changed } else { one.as_is };
    load.unwrap_or_default()
}

fn columns(changed: bool) -> Vec<Column> {
    let mut columns = vec![
        Column::left("ENDPOINT"),
        Column::left("NODE").shrink(6),
        Column::left("ZONE").shrink(4),
        Column::right("LOAD"),
    ];
    columns.extend(changed.then(|| Column::right("CHANGED")));
    columns
}

fn row(one: &LoadView, changed: bool) -> Vec<Cell> {
    let load = |load: Option<f64>| Cell::from(load.map_or_else(|| "–".to_owned(), times));
    let mut cells = vec![
        endpoint(one.address, one.port).into(),
        one.node.clone().unwrap_or_default().into(),
        one.zone.as_str().into(),
        load(one.as_is),
    ];
    cells.extend(changed.then(|| load(one.changed)));
    cells
}

/// A bar; one that exceeds the space ends in `+`.
fn drawn(load: f64, room: usize) -> Cell {
    if room < EVEN {
        return Cell::default();
    }
    #[expect(clippy::cast_precision_loss, reason = "a terminal has few columns")]
    let share = load * EVEN as f64 / room as f64;
    let look = if load > OVERLOADED {
        CellStyle::Warn
    } else {
        CellStyle::Plain
    };
    if share > 1.0 {
        Cell::new(bar(1.0, room - 1) + "+", look)
    } else {
        Cell::new(bar(share, room), look)
    }
}
