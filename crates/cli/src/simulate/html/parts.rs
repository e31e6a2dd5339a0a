//! The tables of the page.

use std::fmt::Write as _;

use cluster::text::one_line;

use super::super::figures::{Figures, OVERLOADED};
use super::super::view::{FlowView, LoadView, StatesView};
use crate::output::server::endpoint;

/// The maximum of bars, as a multiple of an even split.
const LONGEST: f64 = 3.0;

/// Escapes text for HTML, and for its direction.
pub(super) fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in one_line(text).chars() {
        match character {
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '&' => safe.push_str("&amp;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            other => safe.push(other),
        }
    }
    safe
}

/// `83.3 %`.
pub(super) fn percent(part: f64) -> String {
    agent_api::numbers::percent(part)
}

/// `1.20×`.
pub(super) fn times(load: f64) -> String {
    format!("{load:.2}×")
}

/// A row for each state and each other mechanism.
pub(super) fn figures(states: &StatesView, price: Option<f64>, measured: bool) -> String {
    let cost = match (price, measured) {
        (None, _) => "",
        (Some(_), true) => "<th scope=\"col\">cost</th>",
        (Some(_), false) => "<th scope=\"col\">cost per GiB</th>",
    };
    let mut text = format!(
        "<div class=\"wide\"><table class=\"figures\"><thead><tr><td></td><th scope=\"col\">in zone</th><th scope=\"col\">crosses</th>\
         <th scope=\"col\">refused</th><th scope=\"col\">least load</th><th scope=\"col\">median</th>\
         <th scope=\"col\">most</th><th scope=\"col\">overloaded</th>{cost}</tr></thead><tbody>\n"
    );
    let priced = price.is_some();
    text.push_str(&row("as it is", &states.as_is.figures, "ours", priced));
    if let Some(changed) = &states.changed {
        text.push_str(&row("changed", &changed.figures, "ours", priced));
    }
    for other in &states.others {
        text.push_str(&row(&other.name, &other.figures, "", priced));
    }
    text.push_str("</tbody></table></div>\n");
    for other in &states.others {
        if let Some(note) = &other.note {
            let _written = writeln!(
                text,
                "<p class=\"note\">{}: {}</p>",
                escape(&other.name),
                escape(note)
            );
        }
    }
    text
}

fn row(name: &str, figures: &Figures, class: &str, priced: bool) -> String {
    let load = |load: Option<f64>| load.map_or_else(|| "–".to_owned(), times);
    // Refusals under other mechanisms are no problem of this cluster.
    let warn = |bad: bool| {
        if bad && class == "ours" {
            " class=\"warn\""
        } else {
            ""
        }
    };
    let cost = figures
        .cost
        .filter(|_| priced)
        .map_or_else(String::new, |cost| format!("<td>{cost:.4}</td>"));
    format!(
        "<tr class=\"{class}\"><th scope=\"row\">{}</th><td><span class=\"meter\" style=\"--w:{:.4}\"></span><span class=\"number\">{}</span></td><td>{}</td>\
         <td{}>{}</td><td>{}</td><td>{}</td><td>{}</td><td{}>{} of {}</td>{cost}</tr>\n",
        escape(name),
        figures.in_zone,
        percent(figures.in_zone),
        percent(figures.cross_zone),
        warn(figures.refused > 0.0),
        percent(figures.refused),
        load(figures.load_min),
        load(figures.load_median),
        load(figures.load_max),
        warn(figures.overloaded > 0),
        figures.overloaded,
        figures.endpoints,
    )
}

/// Traffic from zone to zone, with colours by amount.
pub(super) fn heat(title: &str, zones: &[String], flows: &[Vec<f64>]) -> String {
    let most = flows.iter().flatten().copied().fold(0.0, f64::max);
    let names: Vec<String> = zones
        .iter()
        .map(|zone| escape(if zone.is_empty() { "no zone" } else { zone }))
        .collect();
    let mut heads = String::new();
    for name in &names {
        let _written = write!(heads, "<th scope=\"col\">{name}</th>");
    }
    let mut text = format!(
        "<div class=\"wide\"><table class=\"heat\"><caption>{title}</caption><thead><tr><td></td>{heads}</tr></thead><tbody>\n"
    );
    for (from, (name, row)) in names.iter().zip(flows).enumerate() {
        let _written = write!(text, "<tr><th scope=\"row\">{name}</th>");
        for (to, (column, part)) in names.iter().zip(row).enumerate() {
            let class = if from == to { "stays" } else { "leaves" };
            let heat = if most > 0.0 {
                (part / most).sqrt()
            } else {
                0.0
            };
            let number = if *part > 0.0 {
                format!("{:.1}", part * 100.0)
            } else {
                "·".to_owned()
            };
            let _written = write!(
                text,
                "<td class=\"{class}\" style=\"--v:{heat:.3}\" title=\"{name} to {column}: {}\">{number}</td>",
                percent(*part)
            );
        }
        text.push_str("</tr>\n");
    }
    text + "</tbody></table></div>\n"
}

/// A bar for each endpoint, by zone; two with a change.
pub(super) fn endpoints(flow: &FlowView) -> String {
    let changed = flow.states.changed.is_some();
    let mut sorted: Vec<&LoadView> = flow.endpoints.iter().collect();
    sorted.sort_by(|left, right| {
        (&left.zone, left.address, left.port).cmp(&(&right.zone, right.address, right.port))
    });
    let second = if changed {
        "<th scope=\"col\">changed</th>"
    } else {
        ""
    };
    let mut text = format!(
        "<div class=\"wide\"><table class=\"bars\"><thead><tr><th scope=\"col\">endpoint</th><th scope=\"col\">node</th><th scope=\"col\">zone</th>\
         <th scope=\"col\">load</th>{second}<th scope=\"col\" class=\"axis\"><span>even</span></th></tr></thead><tbody>\n"
    );
    for one in sorted {
        let number = |load: Option<f64>| load.map_or_else(|| "–".to_owned(), times);
        let numbers = if changed {
            format!("<td>{}</td>", number(one.changed))
        } else {
            String::new()
        };
        let mut bars = bar(one.as_is, if changed { "before" } else { "" });
        if changed {
            bars.push_str(&bar(one.changed, ""));
        }
        let _written = writeln!(
            text,
            "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{}</td>{numbers}<td class=\"track\">{bars}</td></tr>",
            endpoint(one.address, one.port),
            escape(one.node.as_deref().unwrap_or("–")),
            escape(if one.zone.is_empty() {
                "–"
            } else {
                &one.zone
            }),
            number(one.as_is),
        );
    }
    text.push_str("</tbody></table></div>\n");
    if changed {
        text.push_str("<p class=\"note\">The thin grey bar is the load as it is, the thick one after the change.</p>\n");
    }
    text
}

fn bar(load: Option<f64>, class: &str) -> String {
    let load = load.unwrap_or_default();
    let over = if class.is_empty() && load > OVERLOADED {
        " over"
    } else {
        ""
    };
    let width = (load / LONGEST).min(1.0) * 100.0;
    format!("<i class=\"bar {class}{over}\" style=\"--w:{width:.2}%\"></i>")
}
