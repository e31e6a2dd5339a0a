//! `ipvs-topo simulate`: computes the decisions of all Nodes, before and after a change.
//!
//! The computation (`node_zones`, `demand`, `group`, `flow`, `cluster_flows`, `figures`,
//! `baseline`, `change`, `apply`) does not depend on the output (`table`, `html`); [`view`] is
//! between them.

// A new source, reason, note or fact must be handled everywhere, not by a `_` arm.
#![warn(clippy::wildcard_enum_match_arm)]

pub mod change;
pub mod figures;
pub mod view;

mod apply;
mod baseline;
mod cluster_flows;
mod compose;
mod demand;
mod flow;
mod group;
mod html;
mod matrix;
mod node_zones;
mod parallel;
mod progress;
mod rank;
mod table;

use agent_api::describe;
use agent_api::view::WarningView;
use cluster::ServiceSelection;
use cluster::source::{self, Loaded, Options};
use cluster::unused_policies::{self, NodeLabels};
use topology_core::policy::PREFIX;
use topology_core::resolve::{Viewpoint, resolve_for_clients};
use topology_core::snapshot::Snapshot;

use self::apply::{Edit, distribution};
use self::cluster_flows::{ClusterFlows, Comparison, FlowInput};
use self::compose::SimulationResult;
use self::demand::Demand;
use self::node_zones::NodeZones;
use self::progress::Progress;
use self::view::SimulationView;
use crate::args::{SimulateArgs, SimulateFormat, values};
use crate::exit::{ExitStatus, Failure};
use crate::origin::Origin;
use crate::output::print;
use crate::services;

/// # Errors
/// The input cannot be read, or a change names something that does not exist.
pub fn run(args: &SimulateArgs) -> Result<ExitStatus, Failure> {
    let view = simulate(args)?;
    if args.output != SimulateFormat::Json {
        print::warnings(&view.warnings);
    }
    print::result(&match args.output {
        SimulateFormat::Table => table::text(&view, print::width()),
        SimulateFormat::Json => print::json(&view)?,
        SimulateFormat::Html => html::page(&view, &page_header(&args.origin.get(), values::now())),
    })?;
    args.strict
        .end(view.warnings.len(), args.output.reader(), ExitStatus::Fine)
}

/// The header of the HTML page.
fn page_header(origin: &Origin, now: i64) -> html::PageHeader {
    let words: Vec<String> = std::env::args().map(|word| quoted(&word)).collect();
    html::PageHeader {
        at: jiff::Timestamp::from_millisecond(now).map_or_else(
            |_late| String::new(),
            |now| now.strftime("%F %H:%M UTC").to_string(),
        ),
        command: words.join(" "),
        cluster: origin.in_full(),
    }
}

/// An argument, quoted so that a shell reads it back.
fn quoted(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:,=@%+".contains(&byte);
    if !word.is_empty() && word.bytes().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// Computes the whole result.
///
/// # Errors
/// As [`run`].
pub fn simulate(args: &SimulateArgs) -> Result<SimulationView, Failure> {
    let options = Options {
        now: Some(args.moment.get()),
        allowed: args.allow_lists.get(),
        services: ServiceSelection::ProxiedAndHeadless,
        ..Options::default()
    };
    let origin = args.origin.get();
    let loaded = origin.read(&options)?;
    let scope = services::scope(&args.services, &origin, &loaded)?;
    let Loaded {
        mut snapshot,
        warnings,
        ..
    } = loaded;
    let node_zones = NodeZones::of(&snapshot);
    if node_zones.nodes.is_empty() {
        return Err(Failure::input(
            "the input has no Node, so no traffic starts anywhere; add the Nodes",
        ));
    }
    let demand = Demand::read(&args.demand, &snapshot, &node_zones)?;
    let me = Viewpoint {
        now: options.now,
        ..Viewpoint::new("")
    };
    let flow_input = FlowInput {
        node_zones: &node_zones,
        demand: &demand,
        me: &me,
    };
    let services = scope.of(&snapshot);
    let mut warnings = scope.views(&snapshot, &mut warnings.iter());
    let findings = services
        .iter()
        .flat_map(|name| resolve_for_clients(&snapshot, &me, name).findings);
    warnings.extend(findings.map(|finding| describe::finding(&finding)));
    let changes = changes(args);
    let edit = edit(args, &options, &snapshot, &node_zones, &mut warnings)?;
    let steps = if changes.is_empty() { 2 } else { 3 };
    let progress = Progress::new(services.len() * steps);
    let as_is = ClusterFlows::of(&flow_input, &snapshot, &services, || progress.tick());
    let mut later = None;
    if !changes.is_empty() {
        edit.commit(&mut snapshot);
        warnings.extend(without_effect(&snapshot, &options, &warnings));
        later = Some(ClusterFlows::of(&flow_input, &snapshot, &services, || {
            progress.tick();
        }));
    }
    let latest = later.as_ref().unwrap_or(&as_is);
    let comparison = Comparison::of(&flow_input, &snapshot, latest, || progress.tick());
    drop(progress);
    let computed = SimulationResult {
        flow_input: &flow_input,
        as_is,
        changed: later,
        comparison,
        price: args.price,
    };
    Ok(computed.view(changes, warnings))
}

/// Warnings about policies and drains without effect, except those in `known`.
fn without_effect(
    snapshot: &Snapshot,
    options: &Options,
    known: &[WarningView],
) -> Vec<WarningView> {
    let found = unused_policies::warnings(snapshot, options.now, NodeLabels::All, |_key| None);
    let views = found.iter().map(describe::warning);
    let is_new = |view: &WarningView| {
        let mut known = known.iter();
        !known.any(|one| one.code == view.code && one.object == view.object)
    };
    views.filter(is_new).collect()
}

/// The changes as text.
fn changes(args: &SimulateArgs) -> Vec<String> {
    let sets = args.set.iter().map(ToString::to_string);
    let scales = args.scale.iter().map(ToString::to_string);
    let drains = args.drain.iter().map(ToString::to_string);
    let policies = args
        .policy
        .iter()
        .map(|path| format!("policies of {}", path.display()));
    sets.chain(scales).chain(drains).chain(policies).collect()
}

/// The changes, computed but not applied; warnings about policies in files are added to `warnings`.
fn edit(
    args: &SimulateArgs,
    options: &Options,
    snapshot: &Snapshot,
    node_zones: &NodeZones,
    warnings: &mut Vec<WarningView>,
) -> Result<Edit, Failure> {
    let mut edit = Edit::default();
    let origin = args.origin.get();
    if let (false, Origin::Files(path)) = (args.set.is_empty(), &origin)
        && source::is_read_once(path)
    {
        return Err(Failure::input(
            "--set reads the annotations a second time, which standard input and pipes do not allow; save it to a file",
        ));
    }
    let allowed = options.allowed.annotation_keys.as_ref();
    edit.set(snapshot, &args.set, allowed, |service| {
        origin.annotations(service, PREFIX)
    })?;
    for scale in &args.scale {
        edit.scale(snapshot, node_zones, scale)?;
    }
    // The last change is to hints, because it also needs the new endpoints.
    edit.distribute(snapshot, &args.set, |service| {
        origin.annotations(service, distribution::ANNOTATIONS)
    })?;
    for drain in &args.drain {
        edit.drain(snapshot, drain)?;
    }
    for path in &args.policy {
        let loaded = source::read(path, options).map_err(Failure::input)?;
        warnings.extend(loaded.warnings.iter().map(describe::warning));
        edit.policies(&loaded, &path.display().to_string())?;
    }
    Ok(edit)
}

#[cfg(test)]
pub(crate) mod tests;
