//! Prints a simulation on a terminal.

mod load;
mod single_server;

use std::fmt::Write as _;

use agent_api::numbers::many;
use agent_api::numbers::percent;

use self::load::times;
use super::figures::Figures;
use super::rank::{by_unevenness, counted, is_changed, last, name};
use super::view::{FlowView, SimulationView, StatesView};
use crate::output::grid::{Cell, CellStyle, Column, Grid, paint};
use crate::output::plain::Plain;
use crate::output::wrap::wrap;

/// Listed Services; the others are counted.
const LISTED: usize = 15;
/// Listed pairs of zones if there are too many for a matrix; the others are counted.
const LARGEST: usize = 10;

pub(crate) fn text(view: &SimulationView, width: Option<usize>) -> String {
    let mut text = head(view);
    text.push_str(&matrices(view, width));
    let cost = if view.measured { "COST" } else { "COST/GIB" };
    let cost = view.price_per_gib.map(|_| cost);
    text.push_str(&comparison(&view.total, cost, width));
    match view.services.as_slice() {
        [] => text.push_str("\nno Service to simulate\n"),
        [one] => text.push_str(&single_server::text(one, width)),
        several => text.push_str(&services(several, width)),
    }
    text
}

fn head(view: &SimulationView) -> String {
    let count = |number: usize, noun: &str| many(number as u64, noun);
    let zones = view.zones.iter().filter(|zone| !zone.is_empty()).count();
    let mut text = format!(
        "{} in {}, {}; {}\n",
        count(view.nodes, "Node"),
        count(zones, "zone"),
        counted(&view.services.iter().collect::<Vec<_>>()),
        Plain::from(&view.demand)
    );
    for change in &view.changes {
        // Writing to a String cannot fail.
        let _written = writeln!(text, "changed: {}", paint(change, CellStyle::Strong));
    }
    text
}

/// From zone to zone; both states side by side if they fit.
fn matrices(view: &SimulationView, width: Option<usize>) -> String {
    let states = [Some(&view.total.as_is), view.total.changed.as_ref()];
    let titles: Vec<_> = ["as it is", "changed"]
        .into_iter()
        .zip(states)
        .filter_map(|(title, state)| Some((title, state?)))
        .collect();
    let blocks: Vec<Vec<String>> = titles
        .iter()
        .map(|(title, state)| block(title, &view.zones, &state.flows))
        .collect();
    let wide = blocks
        .iter()
        .flatten()
        .map(|line| line.chars().count())
        .max()
        .unwrap_or_default();
    let fits = |columns: usize| width.is_none_or(|width| columns <= width);
    if !fits(wide + 2) {
        return largest(view);
    }
    let mut text = format!(
        "\n{}\n",
        paint(
            "From zone (row) to zone (column), percent of all traffic",
            CellStyle::Strong
        )
    );
    if fits(wide * blocks.len() + 4 * blocks.len()) {
        for line in 0..blocks.iter().map(Vec::len).max().unwrap_or_default() {
            let parts = blocks.iter().filter_map(|block| block.get(line));
            let parts: Vec<String> = parts.map(|part| format!("{part:<wide$}")).collect();
            let _written = writeln!(text, "  {}", parts.join("    ").trim_end());
        }
    } else {
        for line in blocks.iter().flatten() {
            let _written = writeln!(text, "  {line}");
        }
    }
    text
}

fn block(title: &str, zones: &[String], flows: &[Vec<f64>]) -> Vec<String> {
    let names: Vec<String> = zones.iter().map(|zone| zone_name(zone)).collect();
    let wide = names
        .iter()
        .map(|name| name.chars().count())
        .max()
        .unwrap_or_default()
        .max(title.chars().count());
    let column = names
        .iter()
        .map(|name| name.chars().count())
        .max()
        .unwrap_or_default()
        .max(5);
    let row = |first: &str, cells: Vec<String>| {
        let mut line = format!("{first:<wide$}");
        for cell in cells {
            let _written = write!(line, "  {cell:>column$}");
        }
        line
    };
    let mut lines = vec![row(title, names.clone())];
    let number = |part: &f64| {
        if *part <= 0.0 {
            "·".to_owned()
        } else {
            format!("{:.1}", part * 100.0)
        }
    };
    lines.extend(
        names
            .iter()
            .zip(flows)
            .map(|(name, flows)| row(name, flows.iter().map(number).collect())),
    );
    lines
}

/// With too many zones for a matrix: the traffic that leaves each zone, largest first.
fn largest(view: &SimulationView) -> String {
    let state = view.total.changed.as_ref().unwrap_or(&view.total.as_is);
    let mut flows: Vec<(f64, String, String)> = Vec::new();
    for (from, row) in view.zones.iter().zip(&state.flows) {
        for (to, part) in view.zones.iter().zip(row).filter(|(to, _)| *to != from) {
            flows.push((*part, zone_name(from), zone_name(to)));
        }
    }
    flows.retain(|flow| flow.0 > 0.0);
    flows.sort_by(|left, right| right.0.total_cmp(&left.0));
    let title = if view.total.changed.is_some() {
        "From one zone to another, changed, percent of all traffic"
    } else {
        "From one zone to another, percent of all traffic"
    };
    let mut text = format!("\n{}\n", paint(title, CellStyle::Strong));
    for (part, from, to) in flows.iter().take(LARGEST) {
        let _written = writeln!(text, "  {from} to {to}: {}", percent(*part));
    }
    if flows.len() > LARGEST {
        let rest = flows.len() - LARGEST;
        let _written = writeln!(text, "  and {rest} more; -o json has all");
    }
    text
}

fn zone_name(zone: &str) -> String {
    Plain::from(if zone.is_empty() { "no zone" } else { zone }).to_string()
}

/// The meaning of the loads.
const LOADS: &str = "load of an endpoint: 1.00x is an even split; overloaded: above 1.2x";

/// One line for each state and each other mechanism.
fn comparison(states: &StatesView, cost: Option<&'static str>, width: Option<usize>) -> String {
    let mut columns = vec![
        Column::left(""),
        Column::right("IN ZONE"),
        Column::right("CROSSES"),
        Column::right("REFUSED").droppable(1),
        Column::right("LOAD MIN").droppable(0),
        Column::right("MEDIAN").droppable(2),
        Column::right("MAX"),
        Column::right("OVERLOADED"),
    ];
    columns.extend(cost.map(Column::right));
    let mut rows = vec![comparison_row(
        "as it is",
        &states.as_is.figures,
        CellStyle::Strong,
    )];
    rows.extend(
        states
            .changed
            .iter()
            .map(|state| comparison_row("changed", &state.figures, CellStyle::Strong)),
    );
    rows.extend(
        states
            .others
            .iter()
            .map(|other| comparison_row(&other.name, &other.figures, CellStyle::Plain)),
    );
    let mut text = String::from("\n");
    lines(&mut text, &columns, &rows, width);
    let _written = writeln!(text, "  {}", paint(wrap(LOADS, 4, width), CellStyle::Quiet));
    for other in &states.others {
        if let Some(note) = &other.note {
            let _written = writeln!(
                text,
                "  {}",
                paint(
                    wrap(format!("{}: {note}", other.name), 4, width),
                    CellStyle::Quiet
                )
            );
        }
    }
    text
}

fn comparison_row(name: &str, figures: &Figures, look: CellStyle) -> Vec<Cell> {
    let load = |load: Option<f64>| Cell::from(load.map_or_else(String::new, times));
    vec![
        Cell::new(name, look),
        percent(figures.in_zone).into(),
        percent(figures.cross_zone).into(),
        Cell::new(percent(figures.refused), bad_if(figures.refused > 0.0)),
        load(figures.load_min),
        load(figures.load_median),
        load(figures.load_max),
        Cell::new(overloaded(figures), bad_if(figures.overloaded > 0)),
        figures.cost.map_or_else(String::new, money).into(),
    ]
}

fn bad_if(bad: bool) -> CellStyle {
    if bad {
        CellStyle::Warn
    } else {
        CellStyle::Plain
    }
}

fn overloaded(figures: &Figures) -> String {
    match figures.overloaded {
        0 => "0".to_owned(),
        some => format!("{some} of {}", figures.endpoints),
    }
}

/// With as many digits as are significant.
fn money(amount: f64) -> String {
    match amount {
        ..=0.0 => "0".to_owned(),
        0.0..1.0 => format!("{amount:.4}"),
        _ => format!("{amount:.2}"),
    }
}

/// The Services with the most uneven load, or that refuse clients.
fn services(flows: &[FlowView], width: Option<usize>) -> String {
    let sorted = by_unevenness(flows);
    let columns = [
        Column::left("SERVICE").shrink(12),
        Column::right("IN ZONE"),
        Column::right("REFUSED").droppable(0),
        Column::right("MAX LOAD"),
        Column::right("OVERLOADED"),
        Column::left("EMPTY FOR CLIENTS").shrink(16),
    ];
    let compared = flows.iter().any(|flow| flow.states.changed.is_some());
    let shown: Vec<&FlowView> = sorted
        .into_iter()
        .filter(|flow| !compared || is_changed(flow))
        .collect();
    let rows: Vec<Vec<Cell>> = shown
        .iter()
        .take(LISTED)
        .map(|flow| service_row(flow))
        .collect();
    let title = match (compared, shown.is_empty()) {
        (true, true) => "No Service changes",
        (true, false) => "Services that change, before -> after",
        (false, _) => "Services, the most uneven first",
    };
    let mut text = format!("\n{}\n", paint(title, CellStyle::Strong));
    if !rows.is_empty() {
        lines(&mut text, &columns, &rows, width);
    }
    let same: Vec<&FlowView> = flows
        .iter()
        .filter(|flow| compared && !is_changed(flow))
        .collect();
    text.push_str(&rest(shown.len(), &same));
    text
}

/// The number of Services that are not listed: of `shown` candidates, and of those that stay the same.
fn rest(shown: usize, same: &[&FlowView]) -> String {
    let mut text = String::new();
    if shown > LISTED {
        let more = shown - LISTED;
        // Writing to a String cannot fail.
        let _written = writeln!(text, "  and {more} more; -o json has all, NS/SVC shows one");
    }
    if !same.is_empty() {
        let same = counted(same);
        let _written = writeln!(text, "  {same} without a change; -o json has all");
    }
    text
}

/// `33.3 % -> 80.0 %`, or one of them if both are equal.
fn step(flow: &FlowView, text: impl Fn(&Figures) -> String) -> String {
    let before = text(&flow.states.as_is.figures);
    let after = text(last(flow));
    if before == after {
        after
    } else {
        format!("{before} -> {after}")
    }
}

fn service_row(flow: &FlowView) -> Vec<Cell> {
    let figures = last(flow);
    vec![
        name(flow).into(),
        step(flow, |figures| percent(figures.in_zone)).into(),
        Cell::new(
            step(flow, |figures| percent(figures.refused)),
            bad_if(figures.refused > 0.0),
        ),
        step(flow, |figures| {
            figures.load_max.map_or_else(String::new, times)
        })
        .into(),
        Cell::new(overloaded(figures), bad_if(figures.overloaded > 0)),
        empties(flow).into(),
    ]
}

/// `node 50.0 %, zone 33.3 %`.
fn empties(flow: &FlowView) -> String {
    let words: Vec<String> = flow
        .empty_levels
        .iter()
        .map(|empty| format!("{} {}", empty.level, percent(empty.part)))
        .collect();
    words.join(", ")
}

fn lines(text: &mut String, columns: &[Column], rows: &[Vec<Cell>], width: Option<usize>) {
    let cells: Vec<&[Cell]> = rows.iter().map(Vec::as_slice).collect();
    let grid = Grid::measure(columns, &cells, 2, width);
    let _written = writeln!(text, "  {}", grid.heading());
    for row in rows {
        let _written = writeln!(text, "  {}", grid.line(row, &Cell::default()));
    }
}
