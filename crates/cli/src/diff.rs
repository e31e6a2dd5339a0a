//! `ipvs-topo diff`: shows the pending changes of the kernel as ipvsadm commands.

// A new source, reason, note or fact must be handled everywhere, not by a `_` arm.
#![warn(clippy::wildcard_enum_match_arm)]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use agent_api::numbers::many;
use agent_api::view::{DiffView, StepChange};
use agent_api::{client, describe};
use dataplane::ipvs::observe_all;
use dataplane::ownership::{self, Claims, SavedMarks};
use dataplane::preflight;
use topology_core::mirror::Mirror;
use topology_core::plan::{DiffOptions, diff};
use topology_core::virtual_server::VirtualServerKey;

use crate::args::{DiffArgs, TextFormat, values};
use crate::exit::{ExitStatus, Failure};
use crate::offline::{Offline, Resolved, note_settings, only_offline, seen_from};
use crate::output::grid::{CellStyle, paint};
use crate::output::print;
use crate::runtime;

/// A difference sets the exit code.
///
/// # Errors
/// The input or the kernel cannot be read, or no agent answers.
pub fn run(args: &DiffArgs) -> Result<ExitStatus, Failure> {
    let seen_from = seen_from(&args.origin, args.node.as_deref())?;
    let (view, warnings): (DiffView, usize) = if let Some((origin, node)) = seen_from {
        // Without the record the marks are those of a first start.
        let saved = ownership::boot_id().and_then(|boot| SavedMarks::read(&args.state_dir, &boot));
        let saved = saved.unwrap_or_default();
        let now = values::now();
        let seen = Offline::read_with_marks(&origin, node, &args.service, now, saved.marks)?;
        let resolved = seen.resolve();
        let view = runtime::block_on(offline(&resolved, args))?;
        (view, resolved.warnings.len())
    } else {
        only_offline("--strict", args.strict.strict)?;
        note_settings(&args.service);
        (
            runtime::block_on(async { Ok(client::get(&args.socket, "/v1/diff").await?) })?,
            0,
        )
    };
    match args.output {
        TextFormat::Json => print::result(&print::json(&view)?)?,
        TextFormat::Text => print::result(&text(&view))?,
    }
    args.strict
        .end(warnings, args.output.reader(), ExitStatus::of(!view.equal))
}

/// Compares the input with the kernel of this machine, including foreign virtual servers with the
/// same address. Deletes only virtual servers that are in this agent's ownership record.
async fn offline(resolved: &Resolved, args: &DiffArgs) -> Result<DiffView, Failure> {
    print::warnings(&resolved.warnings);
    let mut kernel = preflight::ipvs().await.map_err(Failure::trouble)?;
    let ours = ownership::boot_id().and_then(|boot| Claims::read(&args.state_dir, &boot));
    let ours = ours.map_err(|error| {
        let place = args.state_dir.display();
        Failure::trouble(format_args!(
            "the record in {place} cannot be read: {error}; run as root"
        ))
    })?;
    let mut mirror = Mirror::new(ours.keys, 0);
    for one in &resolved.servers {
        if let (VirtualServerKey::FirewallMark { mark, .. }, Some(frontend)) =
            (one.server.key, one.marked.first())
        {
            mirror.set_mark_protocol(mark, frontend.protocol);
        }
    }
    observe_all(&mut kernel, &mut mirror)
        .await
        .map_err(Failure::trouble)?;
    let options = DiffOptions {
        adopt: true,
        drain_poll: 0,
        wait_poll: 0,
        unchosen: &[],
    };
    let wanted: BTreeMap<_, _> = resolved
        .servers
        .iter()
        .map(|one| (one.server.key, &one.server))
        .collect();
    let changed = wanted
        .values()
        .flat_map(|one| diff(Some(one), &mirror, &one.key, 0, &options).steps);
    let left = mirror.keys().filter(|key| !wanted.contains_key(key));
    let left: BTreeSet<_> = left.collect();
    let gone = left
        .into_iter()
        .flat_map(|key| diff(None, &mirror, key, 0, &options).steps);
    Ok(describe::diff(&changed.chain(gone).collect::<Vec<_>>()))
}

/// A line for each step, and a summary.
fn text(view: &DiffView) -> String {
    if view.equal {
        return "no difference\n".to_owned();
    }
    let mut text = String::new();
    for step in &view.steps {
        let (sign, look) = match step.change {
            StepChange::Add => ("+", CellStyle::Good),
            StepChange::Delete => ("-", CellStyle::Bad),
            StepChange::Edit | StepChange::Other => ("~", CellStyle::Warn),
        };
        // Writing to a String cannot fail.
        let _written = writeln!(text, "{}", paint(format!("{sign} {}", step.command), look));
    }
    let count = |change| {
        let steps = view.steps.iter();
        steps.filter(|step| step.change == change).count()
    };
    let total = many(view.steps.len() as u64, "step");
    let (add, edit) = (count(StepChange::Add), count(StepChange::Edit));
    let delete = count(StepChange::Delete);
    let _written = write!(
        text,
        "{total}: {add} to add, {edit} to edit, {delete} to delete"
    );
    match count(StepChange::Other) {
        0 => text.push('\n'),
        other => {
            let _written = writeln!(text, ", {other} other");
        }
    }
    text
}
