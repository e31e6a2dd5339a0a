//! `ipvs-topo explain`: how the real servers of one Service were chosen and weighted.

pub(crate) mod scheduler;

mod lab;
mod outcome;
mod what_if;

use std::collections::BTreeMap;
use std::path::Path;

use topology_core::model::ObjectName;
use topology_core::policy::LevelKey;
use topology_core::resolve::ResolvedServer;

use crate::cli::exit::{Failure, Outcome};
use crate::cli::values::Target;
use crate::cli::{ExplainArgs, TextFormat};
use crate::client;
use crate::offline::Offline;
use crate::output::view::{ExplainView, PlaceView, ServerView, WarningView};
use crate::output::{describe, print, stages};

/// Runs the command.
///
/// # Errors
/// The input cannot be read, no agent answers, or there is no such Service or port.
pub fn run(args: &ExplainArgs) -> Result<Outcome, Failure> {
    let views = match (&args.cluster, &args.node) {
        (Some(cluster), Some(node)) => offline(cluster, node, args)?,
        _ => ask(args)?,
    };
    let views = only(views, &args.target)?;
    print::result(&match args.output {
        TextFormat::Json => print::json(&views)?,
        TextFormat::Text => stages::text(&views, print::width()),
    })?;
    Ok(Outcome::Fine)
}

fn offline(cluster: &Path, node: &str, args: &ExplainArgs) -> Result<Vec<ExplainView>, Failure> {
    let offline = Offline::read(cluster, node, &args.service)?;
    let resolution = offline.resolve_one(&args.target.service)?;
    for finding in &resolution.findings {
        print::aside(&format!("warning: {finding}"));
    }
    Ok(resolution
        .servers
        .iter()
        .map(|resolved| at_hand(&offline, resolved))
        .collect())
}

/// With everything that only the cluster itself can tell.
fn at_hand(offline: &Offline, resolved: &ResolvedServer) -> ExplainView {
    let snapshot = &offline.loaded.snapshot;
    ExplainView {
        node: Some(place(offline, resolved)),
        what_if: Some(what_if::what_if(snapshot, &offline.me, resolved)),
        warnings: warnings(offline, &resolved.service),
        ..stages::explain(resolved)
    }
}

fn place(offline: &Offline, resolved: &ResolvedServer) -> PlaceView {
    let node = offline.loaded.snapshot.node(&offline.me.node);
    let labels: BTreeMap<String, String> = node
        .iter()
        .flat_map(|node| node.labels.iter())
        .map(|(key, value)| (key.to_string(), value.to_string()))
        .collect();
    let keys = resolved
        .decision
        .levels
        .iter()
        .filter_map(|level| match &level.key {
            LevelKey::Label(label) => Some(label.to_string()),
            LevelKey::Node | LevelKey::Any => None,
        });
    PlaceView {
        name: offline.me.node.to_string(),
        known: node.is_some(),
        missing: keys.filter(|key| !labels.contains_key(key)).collect(),
        labels,
    }
}

/// What is wrong with the Service, its slices, and whatever policies and drains there are.
fn warnings(offline: &Offline, service: &ObjectName) -> Vec<WarningView> {
    let name = service.to_string();
    let slices = offline.loaded.snapshot.slices(service).iter();
    let slices: Vec<String> = slices.map(|slice| slice.name.to_string()).collect();
    let concerns = |warning: &&cluster::warning::Warning| {
        let object = warning.object.as_deref().unwrap_or_default();
        match &*warning.kind {
            "Service" => object == name,
            "EndpointSlice" => slices.iter().any(|slice| slice == object),
            kind => kind.contains("Topology"),
        }
    };
    offline
        .loaded
        .warnings
        .iter()
        .filter(concerns)
        .map(describe::warning)
        .collect()
}

fn ask(args: &ExplainArgs) -> Result<Vec<ExplainView>, Failure> {
    let path = format!("/v1/explain?name={}", args.target.service);
    client::block_on(client::get(&args.socket, &path))
}

/// The virtual servers of the port asked for.
fn only(views: Vec<ExplainView>, target: &Target) -> Result<Vec<ExplainView>, Failure> {
    let Some(wanted) = &target.port else {
        return Ok(views);
    };
    let fits = |server: &ServerView| {
        server.port_name == *wanted || server.port.is_some_and(|port| port.to_string() == *wanted)
    };
    let (found, others): (Vec<_>, Vec<_>) = views.into_iter().partition(|view| fits(&view.server));
    if found.is_empty() {
        let names: Vec<_> = others.iter().map(|view| port_word(&view.server)).collect();
        return Err(Failure::input(format_args!(
            "Service {} has no port {wanted}; it has {}",
            target.service,
            if names.is_empty() {
                "none that is programmed".to_owned()
            } else {
                names.join(", ")
            }
        )));
    }
    Ok(found)
}

fn port_word(server: &ServerView) -> String {
    let number = server
        .port
        .map_or_else(String::new, |port| port.to_string());
    match server.port_name.as_str() {
        "" => number,
        name => format!("{name} ({number})"),
    }
}

#[cfg(test)]
mod tests;
