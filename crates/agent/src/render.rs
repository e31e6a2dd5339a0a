//! `ipvs-topo render`: what a node would program, without a kernel and without an agent.

use std::collections::BTreeSet;

use topology_core::model::ObjectName;
use topology_core::snapshot::Snapshot;

use crate::cli::exit::{Failure, Outcome};
use crate::cli::{RenderArgs, RenderFormat};
use crate::offline::{Offline, Resolved};
use crate::output::server::{Detail, table};
use crate::output::view::NodeView;
use crate::output::{print, save, summary};
use crate::services;

/// Runs the command. Warnings go to standard error, or into the JSON.
///
/// # Errors
/// Nothing could be read.
pub fn run(args: &RenderArgs) -> Result<Outcome, Failure> {
    let origin = args.origin.get();
    let seen = Offline::read(&origin, &args.node, &args.service, args.moment.get())?;
    let chosen = chosen(args, &seen.loaded.snapshot)?;
    let resolved = seen.resolve_if(|service| chosen.contains(service));
    if args.output != RenderFormat::Json {
        warn(&resolved);
    }
    let warnings = resolved.warnings.len();
    let text = match args.output {
        RenderFormat::Save => save::save(
            &resolved
                .servers
                .iter()
                .map(|one| &one.server)
                .collect::<Vec<_>>(),
        ),
        RenderFormat::Json => print::json(&resolved.view(&args.node))?,
        RenderFormat::Table => text(&resolved.view(&args.node), print::width()),
    };
    print::result(&text)?;
    args.strict
        .end(warnings, args.output.reader(), Outcome::Fine)
}

/// The Services that are asked for.
fn chosen(args: &RenderArgs, snapshot: &Snapshot) -> Result<BTreeSet<ObjectName>, Failure> {
    let named = services::named(snapshot, &args.services)?.into_iter();
    let wanted = args.namespace.as_deref();
    let chosen: BTreeSet<ObjectName> = named
        .filter(|name| wanted.is_none_or(|namespace| *name.namespace == *namespace))
        .collect();
    match wanted {
        Some(namespace) if chosen.is_empty() => Err(Failure::input(format_args!(
            "the input has no Service with a cluster IP in namespace {namespace}"
        ))),
        _ => Ok(chosen),
    }
}

fn warn(resolved: &Resolved) {
    for warning in &resolved.warnings {
        print::aside(&format!("warning: {}", warning.text));
    }
}

/// The view as a table for a terminal of `width` columns.
pub fn text(view: &NodeView, width: Option<usize>) -> String {
    if view.virtual_servers.is_empty() && view.not_programmed.is_empty() {
        return "no Service with a cluster IP\n".to_owned();
    }
    let mut text = table(&view.virtual_servers, Detail::Planned, width);
    text.push_str(&summary::not_programmed(&view.not_programmed));
    text
}
