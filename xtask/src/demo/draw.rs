//! Formats the results for the terminal. `anstream` removes colours if the output is no terminal.

use guest_wire::{ClusterChange, Distribution, EndpointHits, LoadSummary};
use owo_colors::{AnsiColors, OwoColorize as _};

use super::visit::Visit;
use crate::thousands::thousands;
use testbed::lab::OUTSIDE;

/// Characters of the bar for all connections: for one client, and for several clients beside each other.
const BAR: (usize, usize) = (40, 8);

/// Eighths of a character, for the end of a bar.
const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];

/// The levels' colours, nearest first; further levels have the last one.
const COLOURS: [AnsiColors; 3] = [AnsiColors::Green, AnsiColors::Cyan, AnsiColors::Yellow];

/// Formats a table of hits: a row for each real server, a column for each client.
pub(super) fn distributions(columns: &[Distribution]) -> String {
    let Some(first) = columns.first() else {
        return String::new();
    };
    let clients: Vec<&str> = columns.iter().map(|column| &*column.client).collect();
    let loads: Vec<&LoadSummary> = columns.iter().map(|column| &column.load).collect();
    let asked = format!("asked from {}: {}", clients.join(", "), first.policy);
    let mut servers = columns.iter().flat_map(|column| &column.servers);
    let width = CellWidth {
        bar: if columns.len() == 1 { BAR.0 } else { BAR.1 },
        has_weight: servers.any(|server| server.weight.is_some()),
    };
    let mut drawn: Vec<ClientColumn<'_>> = columns
        .iter()
        .map(|one| ClientColumn::new(one, width))
        .collect();
    let mut lines = vec![
        format!("\n{} {}, {asked}", first.service.bold(), first.address),
        summary(&sum(&loads)),
    ];
    if columns.len() > 1 {
        let names = clients
            .iter()
            .map(|name| format!("  {:<1$}", format!("from {name}"), width.total()));
        lines.push(
            format!("{:28}{}", "", names.collect::<String>())
                .trim_end()
                .bold()
                .to_string(),
        );
    }
    lines.push(header(columns.len(), width).dimmed().to_string());
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

/// Characters of a cell without its bar and the weight.
const CELL: usize = 22;

/// Characters of a weight and the space before it.
const WEIGHT: usize = 7;

/// The characters of a cell.
#[derive(Debug, Clone, Copy)]
struct CellWidth {
    bar: usize,
    /// Whether a server has a weight in the kernel. Endpoints of a headless Service have none.
    has_weight: bool,
}

impl CellWidth {
    fn total(self) -> usize {
        CELL + self.bar + if self.has_weight { WEIGHT } else { 0 }
    }

    /// Returns the cell of a weight, unless there is none in the whole table.
    fn weight(self, text: &str) -> String {
        if self.has_weight {
            format!(" {text:>6}")
        } else {
            String::new()
        }
    }
}

fn header(columns: usize, width: CellWidth) -> String {
    let cell = format!(
        "  {:<5}{} {:>7} {:>6}  {:bar$}",
        "LEVEL",
        width.weight("WEIGHT"),
        "WANTED",
        "HITS",
        "",
        bar = width.bar
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

/// Returns every real server once, in the order of the only client, or by zone and node.
fn rows(columns: &[Distribution]) -> Vec<&EndpointHits> {
    let mut rows: Vec<&EndpointHits> = Vec::new();
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

/// The cells of one client, from top to bottom.
struct ClientColumn<'a> {
    distribution: &'a Distribution,
    width: CellWidth,
    /// Its levels, nearest first.
    levels: Vec<&'a str>,
    /// The level in the row above.
    above: Option<&'a str>,
}

impl<'a> ClientColumn<'a> {
    fn new(distribution: &'a Distribution, width: CellWidth) -> Self {
        let mut levels: Vec<&str> = Vec::new();
        for level in distribution
            .servers
            .iter()
            .filter_map(|server| server.level.as_deref())
        {
            if !levels.contains(&level) {
                levels.push(level);
            }
        }
        Self {
            distribution,
            width,
            levels,
            above: None,
        }
    }

    /// Formats the cell of the real server `address`. A level is printed only in its first row.
    fn cell(&mut self, address: &str) -> String {
        let total = self.width.total();
        let servers = &self.distribution.servers;
        let Some(server) = servers.iter().find(|server| server.address == address) else {
            return format!("{:1$}", "", total + 2);
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
        let weight = self.width.weight(&weight);
        if level.is_none() && server.hits == 0 {
            let text = format!("{:<5}{weight}  {}", "", state(server));
            return format!("  {}", format!("{text:<total$}").dimmed());
        }
        let wanted = format!("{:.1} %", 100.0 * server.wanted);
        let longest = self.width.bar;
        let bar = bar(server.hits, self.distribution.load.requests, longest);
        let bar = format!("{bar:<longest$}");
        format!(
            "  {shown:<5}{weight} {wanted:>7} {:>6}  {}",
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

/// Says why a real server receives no connections.
fn state(server: &EndpointHits) -> &'static str {
    match server.weight {
        Some(0) => "has left, may finish",
        Some(_) => "has left",
        None => "is gone",
    }
}

/// Draws a bar for `hits` of `requests`, at most `longest` characters.
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

/// Adds up clients that ran concurrently.
fn sum(loads: &[&LoadSummary]) -> LoadSummary {
    LoadSummary {
        requests: loads.iter().map(|load| load.requests).sum(),
        failed: loads.iter().map(|load| load.failed).sum(),
        errors: loads.iter().flat_map(|load| load.errors.clone()).collect(),
        seconds: loads.iter().map(|load| load.seconds).fold(0.0, f64::max),
    }
}

/// Formats a change, its time to the kernel, and the client's failures.
pub(super) fn change(change: &ClusterChange) -> String {
    format!(
        "\n{}\n  in the kernel {} after the event; meanwhile {}",
        change.what.bold().underline(),
        format!("{:.0} ms", change.milliseconds).bold(),
        summary(&change.load)
    )
}

/// Formats requests and failures.
fn summary(load: &LoadSummary) -> String {
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

/// Formats the table of a headless Service below a heading.
pub(super) fn name_answers(answers: &[Distribution]) -> String {
    let heading = "The plain name of a headless Service, from the DNS server of each node";
    format!("\n{}{}", heading.bold().underline(), distributions(answers))
}

/// The heading above the output of `ipvsadm`.
pub(super) const KERNEL_VIEW: &str = "The kernel's own view";

/// Formats the output of a command below a heading.
pub(super) fn command_output(what: &str, command: &str, text: &str) -> String {
    let heading = format!("{what}: {command}");
    format!("\n{}\n{}", heading.bold().underline(), text.trim_end())
}

/// The line below the visits.
pub(super) const WITHOUT_KUBE_PROXY: &str = "\nkube-proxy: looked for its process, nftables tables, iptables chains and \
     IP sets on every node";

/// Formats a table of connections from outside of the cluster.
pub(super) fn visits(visits: &[Visit]) -> String {
    let heading = format!("From outside of the cluster, {OUTSIDE}, to the server on n1");
    let header = format!(
        "  {:<8} {:<14} {:<20} {:<4} {:>8}  {}",
        "POLICY", "ADDRESS", "", "NODE", "ANSWERS", "THE SERVER SAW"
    );
    let mut lines = vec![
        format!("\n{}", heading.bold().underline()),
        header.dimmed().to_string(),
    ];
    lines.extend(visits.iter().map(visit));
    lines.join("\n")
}

fn visit(visit: &Visit) -> String {
    let counts = &visit.counts;
    let answers = format!("{} of {}", counts.requests - counts.failed, counts.requests);
    let seen = match visit.seen()[..] {
        [] => "nothing: no endpoint on this node".to_owned(),
        [OUTSIDE] => format!("{OUTSIDE}, the client"),
        ref others => format!("{}, the node", others.join(", ")),
    };
    format!(
        "  {:<8} {:<14} {:<20} {:<4} {answers:>8}  {seen}",
        visit.policy,
        visit.kind,
        visit.target.to_string(),
        visit.node
    )
}

/// Formats a failed check.
pub(super) fn failure(text: &str) -> String {
    format!("{} {text}", "MISS".red().bold())
}

/// Prints text of the guest that is no record.
pub(super) fn guest_text(text: &str) {
    if !text.trim().is_empty() {
        anstream::eprintln!("    {}", text.dimmed());
    }
}

/// Suggests what to try next.
pub(super) fn next_steps(change: &str, look: &str) -> String {
    format!(
        "\nNext: change the shares in {} and run this again, or look around in {}.",
        change.bold(),
        look.bold()
    )
}

#[cfg(test)]
mod tests {
    use super::super::visit::tests as samples;
    use super::*;

    #[test]
    fn a_visit_says_whose_address_the_server_saw() {
        let seen = |address| visit(&samples::visit(address, None));
        assert!(seen(Some(OUTSIDE)).ends_with("2 of 2  192.0.2.1, the client"));
        assert!(seen(Some("192.0.2.12")).ends_with("2 of 2  192.0.2.12, the node"));
        assert!(seen(None).ends_with("0 of 2  nothing: no endpoint on this node"));
    }

    #[test]
    fn a_bar_is_as_long_as_its_share() {
        assert_eq!(bar(0, 1000, 40), "");
        assert_eq!(bar(1000, 1000, 40), "█".repeat(40));
        assert_eq!(bar(500, 1000, 8), "█".repeat(4));
        assert_eq!(bar(20, 1000, 40), "▊");
    }
}
