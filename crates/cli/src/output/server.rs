//! Prints virtual servers as a table of real servers and excluded endpoints.

use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};

use agent_api::describe::DNS;
use agent_api::numbers::percent;
use agent_api::view::{ConnectionsView, ExcludedView, RealServerView, ServerView};

use super::bar::bar;
use super::grid::{Cell, CellStyle, Column, Grid, paint};
use super::plain::Plain;
use super::shortened::shortened;
use super::time::{brief, length};
use super::wrap::wrap;

/// Indentation of rows.
const INDENT: usize = 2;
/// Columns of the longest bar, and of the shortest one that is useful.
const BAR: std::ops::RangeInclusive<usize> = 6..=20;
/// Listed endpoints of one exclusion reason, and addresses of a firewall mark; the others are counted.
const NAMED: usize = 5;

/// Replaces the level of an endpoint without new connections.
const OUT: &str = "out";

const fn basic(endpoint: &'static str) -> [Column; 6] {
    [
        Column::left("LEVEL").shrink(6),
        Column::left(endpoint),
        Column::left("NODE").shrink(6),
        Column::left("ZONE").droppable(0),
        Column::right("WEIGHT"),
        Column::right("SHARE"),
    ]
}

const LIVE: [Column; 4] = [
    Column::left("STATE").droppable(1),
    Column::right("ACTIVE"),
    Column::right("INACT"),
    Column::right("NEW/S"),
];

const WIDE: [Column; 5] = [
    Column::right("PERSIST"),
    Column::right("TOTAL"),
    Column::right("IN B/S"),
    Column::right("OUT B/S"),
    Column::left("WHY"),
];

/// The level of detail of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// The desired state.
    Planned,
    /// The endpoints in answers of DNS.
    Answered,
    /// Also the kernel's state.
    Live,
    /// Also all counters and reasons, of any width.
    Wide,
}

/// The column where the text of excluded endpoints begins: after the zone.
const PLACE: usize = 4;

struct Row {
    cells: Vec<Cell>,
    tail: Cell,
    /// The share that the bar shows.
    share: Option<f64>,
}

/// All virtual servers, one block each, with columns aligned over all of them.
pub fn table(servers: &[ServerView], detail: Detail, width: Option<usize>) -> String {
    let columns = columns(detail);
    let blocks: Vec<_> = servers
        .iter()
        .map(|server| (server, rows(server, detail)))
        .collect();
    let cells: Vec<_> = blocks
        .iter()
        .flat_map(|(_, rows)| rows)
        .map(|row| row.cells.as_slice())
        .collect();
    let width = width.filter(|_| detail != Detail::Wide);
    let grid = Grid::measure(&columns, &cells, INDENT, width);
    let mut text = String::new();
    // Writing to a String cannot fail.
    for (number, (server, rows)) in blocks.iter().enumerate() {
        if number > 0 {
            text.push('\n');
        }
        let _written = writeln!(text, "{}", title(server));
        if let Some(clients) = outside(server) {
            let _written = writeln!(text, "{}", wrap(clients, 0, width));
        }
        block(
            &mut text,
            server,
            rows,
            &grid,
            bar_width(detail, &grid, width),
        );
    }
    text
}

/// The policy and the endpoints of one Service in answers of DNS, without a title.
pub fn answered(server: &ServerView, width: Option<usize>) -> String {
    let detail = Detail::Answered;
    let rows = rows(server, detail);
    let cells: Vec<_> = rows.iter().map(|row| row.cells.as_slice()).collect();
    let grid = Grid::measure(&columns(detail), &cells, INDENT, width);
    let mut text = String::new();
    let bars = bar_width(detail, &grid, width);
    block(&mut text, server, &rows, &grid, bars);
    text
}

impl Detail {
    const fn is_live(self) -> bool {
        matches!(self, Self::Live | Self::Wide)
    }
}

fn columns(detail: Detail) -> Vec<Column> {
    let mut columns = match detail {
        Detail::Answered => basic("ENDPOINT"),
        Detail::Planned | Detail::Live | Detail::Wide => basic("REAL SERVER"),
    }
    .to_vec();
    if detail.is_live() {
        columns.extend(LIVE);
    }
    if detail == Detail::Wide {
        columns.extend(WIDE);
    }
    columns
}

/// Columns for bars: the space besides the numbers, if it is enough.
fn bar_width(detail: Detail, grid: &Grid, width: Option<usize>) -> usize {
    let left = width.map_or(*BAR.end(), |width| {
        width.saturating_sub(grid.width() + 2 * INDENT)
    });
    if detail == Detail::Wide || left < *BAR.start() {
        0
    } else {
        left.min(*BAR.end())
    }
}

fn block(text: &mut String, server: &ServerView, rows: &[Row], grid: &Grid, bar_width: usize) {
    for line in notes(server) {
        let _written = writeln!(text, "{line}");
    }
    if rows.is_empty() {
        return;
    }
    let pad = " ".repeat(INDENT);
    let _written = writeln!(text, "{pad}{}", grid.heading());
    for row in rows {
        let drawn = match row.share {
            Some(share) if row.tail.is_empty() => {
                Cell::new(bar(share, bar_width), CellStyle::Plain)
            }
            Some(_) if bar_width == 0 => Cell::default(),
            _ => row.tail.clone(),
        };
        let line = grid.line(&row.cells, &drawn);
        let _written = writeln!(text, "{pad}{line}");
    }
}

/// `shop/cart:http  TCP 10.96.0.10:80  ClusterIP, wrr`.
fn title(server: &ServerView) -> String {
    let name = match server.port_name.as_str() {
        "" => server.service.clone(),
        port => format!("{}:{port}", server.service),
    };
    let place = match (server.address, server.port, server.fwmark) {
        (Some(address), Some(port), _) => {
            format!("{} {}", server.protocol, SocketAddr::new(address, port))
        }
        (_, _, Some(mark)) => format!("{} mark {mark:#x}", server.protocol),
        _ => server.protocol.clone(),
    };
    let inside = if server.clients == "inside" {
        ", inside clients"
    } else {
        ""
    };
    let affinity = match server.persistence_seconds {
        0 => String::new(),
        seconds => format!(", clients stick for {}", length(seconds.into())),
    };
    let kind = paint(
        format!("{}, {}{inside}{affinity}", server.kind, server.scheduler),
        CellStyle::Quiet,
    );
    format!(
        "{}  {}  {kind}",
        paint(&name, CellStyle::Strong),
        Plain::from(place)
    )
}

/// `outside clients of 192.0.2.1:80 (firewall mark 0x20001235)`; `None` for a virtual server with an address.
fn outside(server: &ServerView) -> Option<String> {
    let mark = server.fwmark?;
    let frontends = shortened(&server.frontends, NAMED);
    Some(format!(
        "outside clients of {frontends} (firewall mark {mark:#x})"
    ))
}

/// The policy as text, exceptional events, and problems.
fn notes(server: &ServerView) -> Vec<String> {
    let mut notes = vec![Plain::from(&server.policy.words).to_string()];
    notes.extend(
        server
            .notes
            .iter()
            .map(|note| paint(&note.words, CellStyle::Warn)),
    );
    if let Some(refusal) = &server.refusal {
        // KP-WK-01: the table drops packets of outside clients that no endpoint gets.
        let result = match (server.kind.as_str(), server.clients.as_str()) {
            (DNS, _) => "answers have no data",
            (_, "outside") => "packets are dropped",
            _ => "clients are refused",
        };
        notes.push(paint(format!("{result}: {refusal}"), CellStyle::Warn));
    }
    if let Some(kernel) = &server.kernel
        && let Some(error) = &kernel.error
    {
        let retry = kernel
            .retry_in_seconds
            .map(|left| format!("; next try in {left} s"));
        let words = format!(
            "not in the kernel as desired: {error}{}",
            retry.unwrap_or_default()
        );
        notes.push(paint(&words, CellStyle::Bad));
    }
    notes
}

fn rows(server: &ServerView, detail: Detail) -> Vec<Row> {
    let mut rows = Vec::with_capacity(server.real_servers.len());
    let mut last = None;
    for real in &server.real_servers {
        // A row without a level among rows with levels is a draining real server.
        let outside = (last.is_some() && real.level.is_none()).then_some(OUT);
        let level = real.level.as_deref().or(outside);
        rows.push(real_row(
            real,
            level.filter(|_| level != last).unwrap_or_default(),
            detail,
        ));
        last = level;
    }
    rows.extend(excluded_rows(&server.excluded, detail));
    rows
}

fn real_row(real: &RealServerView, level: &str, detail: Detail) -> Row {
    let draining = real.state == "draining";
    let look = if draining {
        CellStyle::Warn
    } else {
        CellStyle::Plain
    };
    let mut cells = place(
        level,
        real.address,
        real.port,
        real.node.as_deref(),
        real.zone.as_deref(),
        look,
    );
    cells.push(Cell::new(real.weight.to_string(), look));
    cells.push(Cell::new(percent(real.share), look));
    if detail.is_live() {
        cells.extend(live_cells(real, look));
    }
    if detail == Detail::Wide {
        cells.extend(wide_cells(real));
    }
    // A plan has no counters, so it cannot show whether a drained endpoint still has connections.
    let is_drained = draining && !detail.is_live();
    Row {
        cells,
        tail: Cell::new(if is_drained { "drained" } else { "" }, look),
        share: Some(real.share),
    }
}

/// `10.244.1.2:8080`; without the port if it is 0, as in answers for the name of a Service.
pub fn endpoint(address: IpAddr, port: u16) -> String {
    match port {
        0 => address.to_string(),
        port => SocketAddr::new(address, port).to_string(),
    }
}

fn place(
    level: &str,
    address: IpAddr,
    port: u16,
    node: Option<&str>,
    zone: Option<&str>,
    look: CellStyle,
) -> Vec<Cell> {
    vec![
        Cell::new(level, look),
        Cell::new(endpoint(address, port), look),
        Cell::new(node.unwrap_or_default(), look),
        Cell::new(zone.unwrap_or_default(), look),
    ]
}

fn live_cells(real: &RealServerView, look: CellStyle) -> Vec<Cell> {
    let state = match real.drain_seconds_left {
        Some(left) => format!("drains {}", brief(left)),
        None => real.state.clone(),
    };
    let count = |pick: fn(&ConnectionsView) -> Option<u64>| count(real, pick);
    vec![
        Cell::new(state, look),
        count(|connections| Some(connections.active.into())),
        count(|connections| Some(connections.inactive.into())),
        count(|connections| Some(connections.traffic?.per_second)),
    ]
}

/// A number of connections or bytes; `-` if the kernel does not count.
fn count(real: &RealServerView, pick: fn(&ConnectionsView) -> Option<u64>) -> Cell {
    let number = real.connections.as_ref().map(pick);
    Cell::from(number.map_or_else(String::new, |number| {
        number.map_or_else(|| "-".to_owned(), |number| number.to_string())
    }))
}

fn wide_cells(real: &RealServerView) -> Vec<Cell> {
    let count = |pick: fn(&ConnectionsView) -> Option<u64>| count(real, pick);
    vec![
        count(|connections| Some(connections.persistent.into())),
        count(|connections| Some(connections.traffic?.total)),
        count(|connections| Some(connections.traffic?.bytes_in_per_second)),
        count(|connections| Some(connections.traffic?.bytes_out_per_second)),
        Cell::new(real.reason.clone(), CellStyle::Quiet),
    ]
}

/// Lists a few endpoints; for many endpoints prints the number for each reason.
fn excluded_rows(excluded: &[ExcludedView], detail: Detail) -> Vec<Row> {
    let mut rows = Vec::new();
    for group in excluded.chunk_by(|left, right| left.words == right.words) {
        let named = if detail == Detail::Wide || group.len() <= NAMED + 1 {
            group.len()
        } else {
            NAMED
        };
        for one in group.iter().take(named) {
            let cells = place(
                OUT,
                one.address,
                one.port,
                one.node.as_deref(),
                one.zone.as_deref(),
                CellStyle::Quiet,
            );
            rows.push(Row {
                cells,
                tail: Cell::new(one.words.clone(), CellStyle::Quiet),
                share: None,
            });
        }
        if let (1.., Some(one)) = (group.len() - named, group.first()) {
            let mut cells = vec![
                Cell::new(OUT, CellStyle::Quiet),
                Cell::new(format!("{} more", group.len() - named), CellStyle::Quiet),
            ];
            cells.resize(PLACE, Cell::default());
            rows.push(Row {
                cells,
                tail: Cell::new(one.words.clone(), CellStyle::Quiet),
                share: None,
            });
        }
    }
    rows
}

#[cfg(test)]
mod tests;
