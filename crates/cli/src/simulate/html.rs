//! Prints a simulation as one HTML page, which needs no network and no script.

mod parts;

use std::fmt::Write as _;

use agent_api::numbers::many;
use parts::{endpoints, escape, figures, heat, percent, times};

use super::figures::Figures;
use super::rank::{by_unevenness, counted, is_changed, last, name};
use super::view::{FlowView, SimulationView};

/// Styles for light and dark mode, screen and paper.
const STYLE: &str = include_str!("html/page.css");
/// Filters the list, and opens all sections for printing.
const SCRIPT: &str = include_str!("html/page.js");

/// Services with a chart of endpoints; the rest are listed without one.
const DRAWN: usize = 20_000;

/// The page's content security policy: it loads nothing.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'";

pub(crate) fn page(view: &SimulationView, header: &PageHeader) -> String {
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <title>ipvs-topo simulate</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n"
    );
    page.push_str(&head(view, header));
    page.push_str("<main>\n");
    page.push_str(&total(view));
    page.push_str(&maps(view));
    page.push_str(&services(view));
    page.push_str("</main>\n");
    // Writing to a String cannot fail.
    let _written = writeln!(page, "<script>\n{SCRIPT}</script>\n</body>\n</html>");
    page
}

/// The header of a page.
#[derive(Debug)]
pub(crate) struct PageHeader {
    pub(crate) at: String,
    pub(crate) command: String,
    pub(crate) cluster: String,
}

fn head(view: &SimulationView, header: &PageHeader) -> String {
    let zones = view.zones.iter().filter(|zone| !zone.is_empty()).count();
    let mut text = format!(
        "<header>\n<h1>Where the traffic goes</h1>\n<p>{}, {}, {}; {}.</p>\n",
        many(view.nodes as u64, "Node"),
        many(zones as u64, "zone"),
        counted(&view.services.iter().collect::<Vec<_>>()),
        escape(&view.demand)
    );
    let _written = writeln!(
        text,
        "<p>Made {} by ipvs-topo {} from {} with <code>{}</code></p>",
        escape(&header.at),
        env!("CARGO_PKG_VERSION"),
        escape(&header.cluster),
        escape(&header.command)
    );
    if !view.changes.is_empty() {
        text.push_str("<p>Changed:</p>\n<ul class=\"changes\">\n");
        for change in &view.changes {
            let _written = writeln!(text, "<li>{}</li>", escape(change));
        }
        text.push_str("</ul>\n");
    }
    for warning in &view.warnings {
        let _written = writeln!(text, "<p class=\"warn\">{}</p>", escape(&warning.text));
    }
    text + "</header>\n"
}

fn total(view: &SimulationView) -> String {
    let mut text = String::from(
        "<section aria-labelledby=\"total\">\n<h2 id=\"total\">All Services together</h2>\n",
    );
    text.push_str(&figures(&view.total, view.price_per_gib, view.measured));
    text + "<p class=\"note\">Load is relative to an even split among the endpoints that could serve; \
        more than 1.20 times that is called overloaded.</p>\n</section>\n"
}

/// A heat map for each state, side by side.
fn maps(view: &SimulationView) -> String {
    let mut text = String::from(
        "<section aria-labelledby=\"maps\">\n<h2 id=\"maps\">From zone to zone</h2>\n<div class=\"maps\">\n",
    );
    text.push_str(&heat("as it is", &view.zones, &view.total.as_is.flows));
    if let Some(changed) = &view.total.changed {
        text.push_str(&heat("changed", &view.zones, &changed.flows));
    }
    text + "</div>\n<p class=\"note\">Percent of all traffic. A row is where clients are, a column where endpoints are; \
        framed is what stays in its zone.</p>\n</section>\n"
}

fn services(view: &SimulationView) -> String {
    let mut text = String::from(
        "<section aria-labelledby=\"services\">\n<h2 id=\"services\">Services, those that change and the most uneven first</h2>\n",
    );
    if view.services.len() > 1 {
        text.push_str(
            "<p class=\"tools\"><label>Find <input id=\"find\" type=\"search\" placeholder=\"namespace/name\" \
             autocomplete=\"off\"></label> <output id=\"found\"></output></p>\n",
        );
    }
    let mut room = DRAWN;
    let (mut same, mut unchanged) = (String::new(), Vec::new());
    for flow in by_unevenness(&view.services) {
        let drawn = flow.endpoints.len() <= room;
        room = room.saturating_sub(flow.endpoints.len());
        let service = service(flow, view.services.len() == 1, drawn);
        if view.changes.is_empty() || is_changed(flow) {
            text.push_str(&service);
        } else {
            same.push_str(&service);
            unchanged.push(flow);
        }
    }
    if !unchanged.is_empty() {
        let title = counted(&unchanged);
        let _written = writeln!(
            text,
            "<details class=\"same\"><summary>{title} without a change</summary>\n{same}</details>"
        );
    }
    text + "</section>\n"
}

fn service(flow: &FlowView, open: bool, drawn: bool) -> String {
    let last = last(flow);
    let word = if last.overloaded > 0 || last.refused > 0.0 {
        " class=\"warn\""
    } else {
        ""
    };
    let mut text = format!(
        "<details{}><summary><b>{}</b> <span>{} in zone</span> <span{word}>{} at most</span>{}</summary>\n<p>{}</p>\n",
        if open { " open" } else { "" },
        escape(&name(flow)),
        before_after(flow, last),
        last.load_max
            .map_or_else(|| "no endpoint".to_owned(), times),
        refused(last.refused),
        escape(&flow.policy),
    );
    if let Some(policy) = &flow.changed_policy {
        let _written = writeln!(text, "<p>Changed: {}</p>", escape(policy));
    }
    for empty in &flow.empty_levels {
        let _written = writeln!(
            text,
            "<p class=\"note\">Level {} is empty for {} of the clients.</p>",
            escape(&empty.level),
            percent(empty.part)
        );
    }
    // A page with a single virtual server has them at the top.
    if !open {
        text.push_str(&figures(&flow.states, None, false));
    }
    if drawn {
        text.push_str(&endpoints(flow));
    } else {
        text.push_str("<p class=\"note\">Its endpoints are not drawn, because the page would be too large. Name the Service, or use -o json.</p>\n");
    }
    text + "</details>\n"
}

/// `33.3 % → 80.0 %`, or one of them if both are equal.
fn before_after(flow: &FlowView, last: &Figures) -> String {
    let (before, after) = (
        percent(flow.states.as_is.figures.in_zone),
        percent(last.in_zone),
    );
    if before == after {
        after
    } else {
        format!("{before} → {after}")
    }
}

fn refused(part: f64) -> String {
    if part > 0.0 {
        format!(" <span class=\"warn\">{} refused</span>", percent(part))
    } else {
        String::new()
    }
}

#[cfg(test)]
mod tests;
