//! `ipvs-topo render`: prints the virtual servers of a node, without a kernel and without an agent.

mod answers;

use agent_api::view::NodeView;

use crate::args::{RenderArgs, RenderFormat};
use crate::exit::{ExitStatus, Failure};
use crate::offline::Offline;
use crate::output::server::{Detail, table};
use crate::output::{print, save, summary};
use crate::services;

/// Warnings go to standard error, or into the JSON.
///
/// # Errors
/// Nothing could be read.
pub fn run(args: &RenderArgs) -> Result<ExitStatus, Failure> {
    if args.dns {
        return answers::run(args);
    }
    let origin = args.origin.get();
    let seen = Offline::read(&origin, &args.node, &args.service, args.moment.get())?;
    let scope = services::scope(&args.services, &origin, &seen.loaded)?;
    let resolved = seen.resolve_in(&scope);
    if args.output != RenderFormat::Json {
        print::warnings(&resolved.warnings);
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
        .end(warnings, args.output.reader(), ExitStatus::Fine)
}

/// The view as a table for a terminal of `width` columns.
pub fn text(view: &NodeView, width: Option<usize>) -> String {
    if view.virtual_servers.is_empty() && view.not_programmed.is_empty() {
        return "no virtual servers: no Service has a usable cluster IP\n".to_owned();
    }
    let mut text = table(&view.virtual_servers, Detail::Planned, width);
    text.push_str(&summary::not_programmed(&view.not_programmed));
    text
}
