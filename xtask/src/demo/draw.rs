//! The pictures. Colour is taken out again where the output is no terminal (`anstream`).

use guest_wire::{Change, Load, Picture, Server};
use owo_colors::{AnsiColors, OwoColorize as _};

/// Characters of the longest bar, which stands for every connection: of one client alone, and of several beside each other.
const BAR: (usize, usize) = (40, 8);

/// Eighths of a character, for the end of a bar.
const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];

/// The levels' colours, nearest first; what is further out has the last one.
const COLOURS: [AnsiColors; 3] = [AnsiColors::Green, AnsiColors::Cyan, AnsiColors::Yellow];

/// Where the connections went: a row for each real server, a column for each client.
pub(super) fn picture(columns: &[Picture]) -> String {
    let Some(first) = columns.first() else {
        return String::new();
    };
    let clients: Vec<&str> = columns.iter().map(|column| &*column.client).collect();
    let loads: Vec<&Load> = columns.iter().map(|column| &column.load).collect();
    let asked = format!("asked from {}: {}", clients.join(", "), first.policy);
    let bar = if columns.len() == 1 { BAR.0 } else { BAR.1 };
    let mut drawn: Vec<Column<'_>> = columns.iter().map(|one| Column::new(one, bar)).collect();
    let mut lines = vec![
        format!("\n{} {}, {asked}", first.service.bold(), first.address),
        outcome(&sum(&loads)),
    ];
    if columns.len() > 1 {
        let names = clients
            .iter()
            .map(|name| format!("  {:<1$}", format!("from {name}"), CELL + bar));
        lines.push(
            format!("{:28}{}", "", names.collect::<String>())
                .trim_end()
                .bold()
                .to_string(),
        );
    }
    lines.push(header(columns.len(), bar).dimmed().to_string());
    for server in rows(columns) {
        let place = format!(
            "  {:<16} {:<4} {:<4}",
            server.address, server.node, server.zone
        );
        let cells = drawn.iter_mut().map(|column| column.cell(&server.address));
        lines.push(
            format!("{place}{}", cells.collect::<String>())
                .trim_end()
                .to_owned(),
        );
    }
    lines.join("\n")
}

/// Characters of a cell before its bar.
const CELL: usize = 30;

fn header(columns: usize, bar: usize) -> String {
    let cell = format!(
        "  {:<5} {:>6} {:>7} {:>6}  {:bar$}",
        "LEVEL", "WEIGHT", "WANTED", "HITS", ""
    );
    let line = format!(
        "  {:<16} {:<4} {:<4}{}",
        "REAL SERVER",
        "NODE",
        "ZONE",
        cell.repeat(columns)
    );
    line.trim_end().to_owned()
}

/// Every real server once: in the order of the only client, or by where it is.
fn rows(columns: &[Picture]) -> Vec<&Server> {
    let mut rows: Vec<&Server> = Vec::new();
    for server in columns.iter().flat_map(|column| &column.servers) {
        if !rows.iter().any(|row| row.address == server.address) {
            rows.push(server);
        }
    }
    if columns.len() > 1 {
        rows.sort_by_key(|row| (&row.zone, &row.node, &row.address));
    }
    rows
}

/// What one client saw, drawn from top to bottom.
struct Column<'a> {
    picture: &'a Picture,
    bar: usize,
    /// Its levels, nearest first.
    levels: Vec<&'a str>,
    /// The level in the row above.
    above: Option<&'a str>,
}

impl<'a> Column<'a> {
    fn new(picture: &'a Picture, bar: usize) -> Self {
        let mut levels: Vec<&str> = Vec::new();
        for level in picture
            .servers
            .iter()
            .filter_map(|server| server.level.as_deref())
        {
            if !levels.contains(&level) {
                levels.push(level);
            }
        }
        Self {
            picture,
            bar,
            levels,
            above: None,
        }
    }

    /// The cell of the real server `address`; below the same level, that is not said again.
    fn cell(&mut self, address: &str) -> String {
        let width = CELL + self.bar;
        let servers = &self.picture.servers;
        let Some(server) = servers.iter().find(|server| server.address == address) else {
            return format!("{:1$}", "", width + 2);
        };
        let level = server.level.as_deref();
        let shown = if level == self.above {
            ""
        } else {
            level.unwrap_or_default()
        };
        self.above = level;
        let weight = server
            .weight
            .map_or("-".to_owned(), |weight| weight.to_string());
        if level.is_none() && server.hits == 0 {
            let text = format!("{:<5} {weight:>6}  {}", "", state(server));
            return format!("  {}", format!("{text:<width$}").dimmed());
        }
        let wanted = format!("{:.1} %", 100.0 * server.wanted);
        let bar = bar(server.hits, self.picture.load.requests, self.bar);
        let bar = format!("{bar:<0$}", self.bar);
        format!(
            "  {shown:<5} {weight:>6} {wanted:>7} {:>6}  {}",
            server.hits,
            bar.color(self.colour(level))
        )
    }

    fn colour(&self, level: Option<&str>) -> AnsiColors {
        let rank = self.levels.iter().position(|known| Some(*known) == level);
        let colour = rank.and_then(|rank| COLOURS.get(rank)).or(COLOURS.last());
        colour.copied().unwrap_or(AnsiColors::Default)
    }
}

/// Why a real server takes nothing.
fn state(server: &Server) -> &'static str {
    match server.weight {
        Some(0) => "has left, may finish",
        Some(_) => "has left",
        None => "is gone",
    }
}

/// A bar for `hits` of `requests`, at most `longest` characters.
#[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "between 0 and eight times the bar's length"
)]
fn bar(hits: u64, requests: u64, longest: usize) -> String {
    let share = hits as f64 / requests.max(1) as f64;
    let eighths = (share * longest as f64 * 8.0).round() as usize;
    let end = EIGHTHS.get(eighths % 8).copied().unwrap_or_default();
    format!("{}{end}", "█".repeat(eighths / 8))
}

/// What several clients did at the same time.
fn sum(loads: &[&Load]) -> Load {
    Load {
        requests: loads.iter().map(|load| load.requests).sum(),
        failed: loads.iter().map(|load| load.failed).sum(),
        errors: loads.iter().flat_map(|load| load.errors.clone()).collect(),
        seconds: loads.iter().map(|load| load.seconds).fold(0.0, f64::max),
    }
}

/// What happened, how soon the kernel followed, and what the client noticed.
pub(super) fn change(change: &Change) -> String {
    format!(
        "\n{}\n  in the kernel {} after the event; meanwhile {}",
        change.what.bold().underline(),
        format!("{:.0} ms", change.milliseconds).bold(),
        outcome(&change.load)
    )
}

/// Requests and failures in words.
fn outcome(load: &Load) -> String {
    let counted = format!(
        "{} connections in {:.1} s, ",
        thousands(load.requests),
        load.seconds
    );
    if load.failed == 0 {
        format!("{counted}{}", "no request failed".green())
    } else {
        let failed = format!("{} failed: {}", load.failed, load.errors.join(", "));
        format!("{counted}{}", failed.red())
    }
}

/// 1000 as `1,000`.
fn thousands(number: u64) -> String {
    match number {
        0..1000 => number.to_string(),
        _ => format!("{},{:03}", thousands(number / 1000), number % 1000),
    }
}

/// The heading above the output of `ipvsadm`.
pub(super) const KERNEL_VIEW: &str = "The kernel's own view";

/// What a command says, and what that is.
pub(super) fn proof(what: &str, command: &str, text: &str) -> String {
    let heading = format!("{what}: {command}");
    format!("\n{}\n{}", heading.bold().underline(), text.trim_end())
}

/// What is not as it must be.
pub(super) fn miss(text: &str) -> String {
    format!("{} {text}", "MISS".red().bold())
}

/// Text of the guest that is no record.
pub(super) fn aside(text: &str) {
    if !text.trim().is_empty() {
        anstream::eprintln!("    {}", text.dimmed());
    }
}

/// What a person may try next.
pub(super) fn next_steps(change: &str, look: &str) -> String {
    format!(
        "\nNext: change the shares in {} and run this again, or look around in {}.",
        change.bold(),
        look.bold()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_as_long_as_its_share() {
        assert_eq!(bar(0, 1000, 40), "");
        assert_eq!(bar(1000, 1000, 40), "█".repeat(40));
        assert_eq!(bar(500, 1000, 8), "█".repeat(4));
        assert_eq!(bar(20, 1000, 40), "▊");
    }

    #[test]
    fn numbers_are_written_in_groups() {
        assert_eq!(thousands(7), "7");
        assert_eq!(thousands(1000), "1,000");
        assert_eq!(thousands(1_020_030), "1,020,030");
    }
}
