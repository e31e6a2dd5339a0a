//! Prints answers of DNS: a table of Services, or one Service with the decision.

use std::fmt::Write as _;

use agent_api::numbers::{many, short_percent};

use super::grid::{Cell, CellStyle, Column, Grid, paint};
use super::server::answered;
use super::shortened::shortened;
use super::stages::{levels, section, stage_lines, what_if, who};
use super::wrap::wrap;
use crate::dns_answers::FAR_FAMILY_CODE;
use crate::dns_answers::view::{
    AnswerLevelView, AnswerView, ClientView, DnsServiceKind, ExplainedAnswersView,
    ServiceAnswersView,
};

/// Indentation of rows.
const INDENT: usize = 2;
/// Spaces before the text behind the last column.
const GAP: usize = 2;
/// Listed addresses of a level; the others are counted.
const NAMED: usize = 8;

const SERVICE_COLUMNS: [Column; 4] = [
    Column::left("SERVICE").shrink(16),
    Column::left("TYPE"),
    Column::left("LEVEL").shrink(8),
    Column::right("SHARE"),
];

const LEVEL_COLUMNS: [Column; 3] = [
    Column::left("LEVEL").shrink(8),
    Column::right("ANSWERS"),
    Column::right("SHARE"),
];

/// A row, and the text behind it.
type Row = (Vec<Cell>, Cell);

/// The answers for Services: a row for each level.
pub fn table(services: &[ServiceAnswersView], width: Option<usize>) -> String {
    if services.is_empty() {
        return "no headless Service\n".to_owned();
    }
    let rows: Vec<Row> = services.iter().flat_map(service_rows).collect();
    lines(&SERVICE_COLUMNS, "ADDRESSES", &rows, width)
}

fn service_rows(service: &ServiceAnswersView) -> Vec<Row> {
    let row = |kind: &str, level: &str, share: &str, tail: Cell| {
        let cells = [service.service.as_str(), kind, level, share];
        (cells.map(Cell::from).to_vec(), tail)
    };
    if let Some(cname) = &service.cname {
        return vec![row("CNAME", "", "", cname.into())];
    }
    if let Some(missing) = &service.missing {
        let missing = Cell::new(no_name(missing), CellStyle::Warn);
        return vec![row("NXDOMAIN", "", "", missing)];
    }
    if service.kind == DnsServiceKind::ExternalName {
        let why = Cell::new("no data: the external name is no name", CellStyle::Warn);
        return vec![row("", "", "", why)];
    }
    let mut rows = Vec::new();
    for answer in &service.answers {
        let kind = answer.record_type.as_str();
        for level in &answer.levels {
            let share = short_percent(level.share);
            rows.push(row(kind, level_name(level), &share, addresses(level)));
        }
        if answer.levels.is_empty() {
            rows.push(row(
                kind,
                "",
                "",
                Cell::new(no_data(answer), CellStyle::Warn),
            ));
        }
    }
    blank_repeated(rows)
}

/// Leaves out what is the same as in the row above.
fn blank_repeated(mut rows: Vec<Row>) -> Vec<Row> {
    let shown: Vec<Vec<Cell>> = rows.iter().map(|(cells, _)| cells.clone()).collect();
    for ((cells, _), above) in rows.iter_mut().skip(1).zip(&shown) {
        for (cell, above) in cells.iter_mut().zip(above).take(2) {
            if cell == above {
                *cell = Cell::default();
            }
        }
    }
    rows
}

fn no_name(missing: &str) -> String {
    format!("the name does not exist: {missing}")
}

fn no_data(answer: &AnswerView) -> String {
    let why = answer.refusal.as_deref().unwrap_or("no endpoint");
    format!("no data: {why}")
}

fn level_name(level: &AnswerLevelView) -> &str {
    level.level.as_deref().unwrap_or("all")
}

fn addresses(level: &AnswerLevelView) -> Cell {
    Cell::from(shortened(&level.addresses, NAMED))
}

/// Rows below a heading; the text behind them is wrapped.
fn lines(columns: &[Column], behind: &'static str, rows: &[Row], width: Option<usize>) -> String {
    let cells: Vec<&[Cell]> = rows.iter().map(|(cells, _)| cells.as_slice()).collect();
    let grid = Grid::measure(columns, &cells, INDENT, width);
    let before = INDENT + grid.width() + GAP;
    let pad = " ".repeat(INDENT);
    let mut text = format!("{pad}{}\n", grid.heading_with(behind));
    for (cells, tail) in rows {
        // Writing to a String cannot fail.
        let _written = writeln!(
            text,
            "{pad}{}",
            grid.line(cells, &tail.wrapped(before, width))
        );
    }
    text
}

/// One Service: what it answers, and how the endpoints were selected.
pub fn explained(view: &ExplainedAnswersView, width: Option<usize>) -> String {
    let service = &view.service;
    let mut text = String::new();
    if service.kind == DnsServiceKind::Headless && !service.answers.is_empty() {
        for (number, answer) in service.answers.iter().enumerate() {
            if number > 0 {
                text.push('\n');
            }
            text.push_str(&headless(service, answer, view.client.as_ref(), width));
        }
    } else {
        let title = paint(&service.service, CellStyle::Strong);
        let _written = writeln!(text, "{title}\n{}", wrap(undecided(service), 0, width));
        text.push_str(&table(std::slice::from_ref(service), width));
        text.push_str(&client(view.client.as_ref(), width));
    }
    let warnings = view.warnings.iter().map(|warning| warning.text.clone());
    text + &section("Wrong with the input", warnings, width)
}

/// What a name has instead of a decision.
fn undecided(service: &ServiceAnswersView) -> &'static str {
    match service.kind {
        DnsServiceKind::ExternalName if service.cname.is_none() => {
            "no client gets records (type ExternalName)"
        }
        DnsServiceKind::ClusterIp => {
            "every client gets the cluster IPs (the Service is not headless)"
        }
        DnsServiceKind::ExternalName => "every client gets another name (type ExternalName)",
        DnsServiceKind::Headless => {
            "no EndpointSlice has endpoints for the question (headless Service)"
        }
    }
}

fn headless(
    service: &ServiceAnswersView,
    answer: &AnswerView,
    asked_by: Option<&ClientView>,
    width: Option<usize>,
) -> String {
    let mut text = format!("{}\n", title(service, answer));
    if let Some(missing) = &service.missing {
        let words = format!("NXDOMAIN: {}", no_name(missing));
        let _written = writeln!(text, "{}", paint(words, CellStyle::Warn));
    }
    let Some(decision) = &answer.decision else {
        return text;
    };
    text.push_str(&answered(&decision.server, width));
    text.push_str(&client(asked_by, width));
    text.push_str(who(decision, width).trim_start_matches('\n'));
    text.push_str(&stage_lines(&decision.stages, width));
    text.push_str(&levels(&decision.server.policy.levels, width));
    text.push_str(&level_answers(answer, width));
    text.push_str(&what_if(decision, width));
    text
}

/// `shop/cart  A  headless, answers of DNS`.
fn title(service: &ServiceAnswersView, answer: &AnswerView) -> String {
    let name = match answer.port_name.as_deref() {
        None | Some("") => service.service.clone(),
        Some(port) => format!("{}:{port}", service.service),
    };
    format!(
        "{}  {}  {}",
        paint(name, CellStyle::Strong),
        answer.record_type,
        paint("headless, answers of DNS", CellStyle::Quiet)
    )
}

fn client(client: Option<&ClientView>, width: Option<usize>) -> String {
    client.map_or_else(String::new, |client| {
        format!("\nClient      {}\n", wrap(&client.words, 12, width))
    })
}

const ONE_LEVEL: &str =
    "Each answer has all endpoints of one level, and begins with another one each time.";

/// Why no SRV answer has the endpoints of a family.
fn far_family(answer: &AnswerView, width: Option<usize>) -> String {
    match answer.refusal.as_deref() {
        Some(why) if answer.refusal_code.as_deref() == Some(FAR_FAMILY_CODE) => {
            let words = format!("No answer has these endpoints: {why}.");
            format!("\n{}\n", wrap(&words, 0, width))
        }
        _ => String::new(),
    }
}

/// The levels of the answers with their addresses.
fn level_answers(answer: &AnswerView, width: Option<usize>) -> String {
    if answer.levels.is_empty() {
        return far_family(answer, width);
    }
    let row = |level: &AnswerLevelView| {
        let cells: Vec<Cell> = vec![
            level_name(level).into(),
            level.answers.to_string().into(),
            short_percent(level.share).into(),
        ];
        (cells, addresses(level))
    };
    let rows: Vec<Row> = answer.levels.iter().map(row).collect();
    let title = format!("Of {} to a client", many(answer.cycle, "answer"));
    format!(
        "\n{}\n{}\n{}\n",
        paint(title, CellStyle::Strong),
        lines(&LEVEL_COLUMNS, "ADDRESSES IN THE ANSWER", &rows, width).trim_end(),
        wrap(ONE_LEVEL, 0, width)
    )
}
