//! Prints explanations: the virtual server, the decision, each stage, and what would change it.

use std::fmt::Write as _;

use agent_api::numbers::short_percent;
use agent_api::view::{ExplainView, LevelView, PlaceView, StageView};
use topology_core::policy::{LevelKey, PolicySource};

use super::grid::{Cell, CellStyle, Column, Grid, paint};
use super::server::{Detail, table};
use super::wrap::wrap;

/// Node labels that are always printed.
const SHOWN: [&str; 2] = [
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
];

/// Explanations of one Service as text.
pub fn text(views: &[ExplainView], width: Option<usize>) -> String {
    let mut text = String::new();
    for (number, view) in views.iter().enumerate() {
        if number > 0 {
            text.push('\n');
        }
        text.push_str(&table(
            std::slice::from_ref(&view.server),
            Detail::Planned,
            width,
        ));
        text.push_str(&who(view, width));
        text.push_str(&stage_lines(&view.stages, width));
        text.push_str(&levels(&view.server.policy.levels, width));
        text.push_str(&what_if(view, width));
        let note = format!(
            "Scheduler {}: {}",
            view.server.scheduler, view.scheduler_note
        );
        // Writing to a String cannot fail.
        let _written = writeln!(text, "\n{}", wrap(&note, 2, width));
    }
    // All views are of one Service, and each has all warnings about it.
    let warnings = views.first().map_or(&[][..], |view| &view.warnings);
    text.push_str(&section(
        "Wrong with the input",
        warnings.iter().map(|warning| warning.text.clone()),
        width,
    ));
    text
}

/// The viewpoint, the source that decided, and those that did not.
pub(super) fn who(view: &ExplainView, width: Option<usize>) -> String {
    let mut text = String::from("\n");
    if let Some(node) = &view.node {
        let look = if node.missing.is_empty() {
            CellStyle::Plain
        } else {
            CellStyle::Warn
        };
        let _written = writeln!(
            text,
            "Seen from   {}",
            paint(wrap(place(node), 12, width), look)
        );
    }
    let _written = writeln!(
        text,
        "Decided by  {}",
        wrap(&view.decided_by.words, 12, width)
    );
    for lost in &view.lost {
        let words = format!("{}: {}", lost.words, lost.why);
        let _written = writeln!(text, "      not   {}", wrap(&words, 12, width));
    }
    text
}

/// `n1: zone a, region r1; it has no label example.com/rack`.
fn place(node: &PlaceView) -> String {
    if !node.known {
        return format!(
            "{}, which is not in the input, so only level * is known",
            node.name
        );
    }
    let hostname = |key: &str| key == "kubernetes.io/hostname";
    let shown = node.labels.iter().filter(|(key, _)| {
        SHOWN.contains(&key.as_str()) || (!key.contains("kubernetes.io/") && !hostname(key))
    });
    let labels: Vec<String> = shown
        .map(|(key, value)| format!("{} {value}", LevelKey::Label(key.as_str().into())))
        .collect();
    let labels = if labels.is_empty() {
        "no topology label".to_owned()
    } else {
        labels.join(", ")
    };
    let missing = match node.missing.as_slice() {
        [] => String::new(),
        missing => format!("; it has no {}, which the policy uses", missing.join(", ")),
    };
    format!("{}: {labels}{missing}", node.name)
}

/// The lines of each stage that changed something; the other stages share one line.
pub(super) fn stage_lines(stages: &[StageView], width: Option<usize>) -> String {
    let mut text = format!(
        "\n{}\n",
        paint("  STAGE          IN   OUT", CellStyle::Quiet)
    );
    let (busy, idle): (Vec<_>, Vec<_>) = stages.iter().partition(|stage| {
        !stage.lines.is_empty() || stage.endpoints_before != stage.endpoints_after
    });
    for stage in busy {
        let mut head = format!(
            "  {:<4}{:<11}{:>4}{:>6}  ",
            stage.stage, stage.name, stage.endpoints_before, stage.endpoints_after
        );
        let columns = head.chars().count();
        if stage.lines.is_empty() {
            let _written = writeln!(text, "{}", paint(head.trim_end(), CellStyle::Quiet));
        }
        for line in &stage.lines {
            let _written = writeln!(
                text,
                "{}{}",
                paint(&head, CellStyle::Quiet),
                wrap(line, columns, width)
            );
            head = " ".repeat(columns);
        }
    }
    if !idle.is_empty() {
        let names: Vec<String> = idle
            .iter()
            .map(|stage| format!("{} {}", stage.stage, stage.name))
            .collect();
        let line = format!("nothing to do in {}", names.join(", "));
        let _written = writeln!(text, "  {}", paint(wrap(&line, 4, width), CellStyle::Quiet));
    }
    text
}

/// The desired and the achieved share.
pub(super) fn levels(levels: &[LevelView], width: Option<usize>) -> String {
    if levels.is_empty() {
        return String::new();
    }
    let columns = [
        Column::left("LEVEL").shrink(8),
        Column::right("READY"),
        Column::right("WANTED"),
        Column::right("AFTER THE STAGES"),
        Column::right("ACHIEVED"),
    ];
    let row = |level: &LevelView| -> Vec<Cell> {
        vec![
            level.level.as_str().into(),
            ready(level).into(),
            short_percent(level.desired).into(),
            short_percent(level.share).into(),
            short_percent(level.programmed).into(),
        ]
    };
    let rows: Vec<Vec<Cell>> = levels.iter().map(row).collect();
    let cells: Vec<&[Cell]> = rows.iter().map(Vec::as_slice).collect();
    let grid = Grid::measure(&columns, &cells, 2, width);
    let mut text = format!("\n  {}\n", grid.heading());
    for row in &rows {
        let _written = writeln!(text, "  {}", grid.line(row, &Cell::default()));
    }
    text
}

/// `1/2`; with endpoints that drain, as opposed to unready ones: `1/2, 1 draining`.
fn ready(level: &LevelView) -> String {
    let ready = format!("{}/{}", level.usable, level.total);
    match level.draining {
        0 => ready,
        count => format!("{ready}, {count} draining"),
    }
}

pub(super) fn what_if(view: &ExplainView, width: Option<usize>) -> String {
    let Some(changes) = &view.what_if else {
        return String::new();
    };
    if changes.is_empty() {
        let words = if view.server.policy.source == PolicySource::Uniform.as_str() {
            "Every ready endpoint has the same share, so only their number changes it."
        } else {
            "No single change of an endpoint, drain or policy would alter the shares."
        };
        return format!("\n{}\n", wrap(words, 0, width));
    }
    let lines = changes
        .iter()
        .map(|one| format!("{}: {}", one.change, one.effect));
    section("What would change this", lines, width)
}

pub(super) fn section(
    title: &str,
    lines: impl Iterator<Item = String>,
    width: Option<usize>,
) -> String {
    let mut text = String::new();
    for line in lines {
        if text.is_empty() {
            let _written = writeln!(text, "\n{}", paint(title, CellStyle::Strong));
        }
        let _written = writeln!(
            text,
            "  {}",
            wrap(&line, 4, width.map(|width| width.saturating_sub(2)))
        );
    }
    text
}
