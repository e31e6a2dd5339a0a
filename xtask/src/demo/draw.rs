//! The pictures. Colour is taken out again where the output is no terminal (`anstream`).

use guest_wire::{Change, Load, Picture, Server};
use owo_colors::{AnsiColors, OwoColorize as _};

/// Characters of the longest bar, which stands for every connection.
const BAR: f64 = 40.0;

/// Eighths of a character, for the end of a bar.
const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];

/// The levels' colours, nearest first; what is further out has the last one.
const COLOURS: [AnsiColors; 3] = [AnsiColors::Green, AnsiColors::Cyan, AnsiColors::Yellow];

/// Where the connections went.
pub(super) fn picture(picture: &Picture) -> String {
    let header = format!(
        "  {:<5} {:<16} {:<4} {:<4} {:>6} {:>7} {:>6}",
        "LEVEL", "REAL SERVER", "NODE", "ZONE", "WEIGHT", "WANTED", "HITS"
    );
    let mut lines = vec![
        format!(
            "\n{} {}, asked from n1: {}",
            picture.service.bold(),
            picture.address,
            picture.policy
        ),
        outcome(&picture.load),
        header.dimmed().to_string(),
    ];
    let mut levels: Vec<&str> = Vec::new();
    for server in &picture.servers {
        let level = server.level.as_deref().unwrap_or("");
        let is_first = !levels.contains(&level);
        if is_first {
            levels.push(level);
        }
        let shown = if is_first { level } else { "" };
        lines.push(row(server, shown, colour(&levels), picture.load.requests));
    }
    lines.join("\n")
}

/// The colour of the last of `levels`.
fn colour(levels: &[&str]) -> AnsiColors {
    let rank = levels.len().saturating_sub(1);
    let colour = COLOURS.get(rank).or(COLOURS.last());
    colour.copied().unwrap_or(AnsiColors::Default)
}

fn row(server: &Server, level: &str, colour: AnsiColors, requests: u64) -> String {
    let weight = server
        .weight
        .map_or("-".to_owned(), |weight| weight.to_string());
    let start = format!(
        "  {:<5} {:<16} {:<4} {:<4} {:>6}",
        level, server.address, server.node, server.zone, weight
    );
    if server.level.is_none() && server.hits == 0 {
        let state = match server.weight {
            Some(0) => "has left: its connections may end",
            Some(_) => "has left",
            None => "is gone",
        };
        return format!("{} {:>7} {:>6}  {}", start.dimmed(), "", "", state.dimmed());
    }
    let wanted = format!("{:.1} %", 100.0 * server.wanted);
    format!(
        "{start} {wanted:>7} {:>6}  {}",
        server.hits,
        bar(server.hits, requests).color(colour)
    )
}

/// A bar for `hits` of `requests`.
#[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "between 0 and eight times the bar's length"
)]
fn bar(hits: u64, requests: u64) -> String {
    let share = hits as f64 / requests.max(1) as f64;
    let eighths = (share * BAR * 8.0).round() as usize;
    let end = EIGHTHS.get(eighths % 8).copied().unwrap_or_default();
    format!("{}{end}", "█".repeat(eighths / 8))
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

/// The words of a program that knows nothing of us.
pub(super) fn proof(command: &str, text: &str) -> String {
    format!(
        "\n{}\n{}",
        format!("The kernel's own view: {command}")
            .bold()
            .underline(),
        text.trim_end()
    )
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
pub(super) fn next_steps() -> String {
    format!(
        "\nNext: change the shares in {} and run this again, or look around in {}.",
        "manifests/examples/shop/service.yaml".bold(),
        "cargo xtask vm shell".bold()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_as_long_as_its_share() {
        assert_eq!(bar(0, 1000), "");
        assert_eq!(bar(1000, 1000), "█".repeat(40));
        assert_eq!(bar(500, 1000), "█".repeat(20));
        assert_eq!(bar(20, 1000), "▊");
    }

    #[test]
    fn numbers_are_written_in_groups() {
        assert_eq!(thousands(7), "7");
        assert_eq!(thousands(1000), "1,000");
        assert_eq!(thousands(1_020_030), "1,020,030");
    }
}
