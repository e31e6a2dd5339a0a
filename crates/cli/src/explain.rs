//! `ipvs-topo explain`: shows how the real servers of one Service were chosen and weighted.

// A new source, reason, note or fact must be handled everywhere, not by a `_` arm.
#![warn(clippy::wildcard_enum_match_arm)]

mod answers;
mod missing_port;

use std::collections::BTreeSet;

use agent_api::client;
use agent_api::explain::nothing;
use agent_api::view::{ExplainView, ServerView};
use topology_core::model::ObjectName;

use crate::args::values::ServicePortArg;
use crate::args::{ExplainArgs, TextFormat};
use crate::exit::{ExitStatus, Failure};
use crate::offline::{Offline, note_settings, only_offline, seen_from};
use crate::origin::Origin;
use crate::output::{print, stages};
use crate::runtime;
use crate::services::full_name;
use missing_port::{missing_port, port_text};

/// # Errors
/// The input cannot be read, no agent answers, or the Service or port does not exist.
pub fn run(args: &ExplainArgs) -> Result<ExitStatus, Failure> {
    if args.dns.dns {
        return answers::run(args);
    }
    let seen_from = seen_from(&args.origin, args.node.as_deref())?;
    let origin = seen_from.as_ref().map(|(origin, _node)| origin);
    let service = full_name(&args.target.service, args.namespace.as_deref(), origin)?;
    let is_offline = seen_from.is_some();
    let views = match seen_from {
        Some((origin, node)) => offline(&origin, node, &service, args)?,
        None => ask(&service, args)?,
    };
    let views = only(views, &service, &args.target)?;
    // Each virtual server repeats the warnings of its Service.
    let warnings = views.first().filter(|_view| is_offline);
    let warnings = warnings.map_or(0, |view| view.warnings.len());
    print::result(&match args.output {
        TextFormat::Json => print::json(&views)?,
        TextFormat::Text => stages::text(&views, print::width()),
    })?;
    args.strict
        .end(warnings, args.output.reader(), ExitStatus::Fine)
}

fn offline(
    origin: &Origin,
    node: &str,
    service: &ObjectName,
    args: &ExplainArgs,
) -> Result<Vec<ExplainView>, Failure> {
    let input =
        Offline::read(origin, node, &args.service, args.moment.get())?.explain_input(service)?;
    input
        .explain()
        .map_err(|why| Failure::input(nothing(service, &why)))
}

fn ask(service: &ObjectName, args: &ExplainArgs) -> Result<Vec<ExplainView>, Failure> {
    only_offline("--strict", args.strict.strict)?;
    only_offline("--now", args.moment.now.is_some())?;
    note_settings(&args.service);
    let path = format!("/v1/explain?name={service}");
    runtime::block_on(async { Ok(client::get(&args.socket, &path).await?) })
}

/// All virtual servers of the requested port; its number is that of any of its addresses.
fn only(
    views: Vec<ExplainView>,
    service: &ObjectName,
    target: &ServicePortArg,
) -> Result<Vec<ExplainView>, Failure> {
    let Some(wanted) = &target.port else {
        return Ok(views);
    };
    let fits = |server: &ServerView| {
        server.port_name == *wanted || server.port.is_some_and(|port| port.to_string() == *wanted)
    };
    let ports: BTreeSet<String> = views
        .iter()
        .filter(|view| fits(&view.server))
        .map(|view| view.server.port_name.clone())
        .collect();
    // The other addresses of the port have other numbers, or none.
    let (found, others): (Vec<_>, Vec<_>) = views
        .into_iter()
        .partition(|view| ports.contains(&view.server.port_name));
    if found.is_empty() {
        let servers = others.iter().map(|view| &view.server);
        let servers = servers.filter(|server| server.port.is_some());
        let mut known = BTreeSet::new();
        let ports: Vec<String> = servers
            .map(|server| port_text(&server.port_name, server.port))
            .filter(|port| known.insert(port.clone()))
            .collect();
        return Err(missing_port(service, wanted, &ports, "no programmed port"));
    }
    Ok(found)
}

#[cfg(test)]
mod tests;
