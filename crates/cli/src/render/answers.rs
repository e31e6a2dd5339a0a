//! `ipvs-topo render --dns`: prints the answers of a node's DNS server.

use agent_api::scope::Scope;
use topology_core::model::Service;

use crate::args::{RenderArgs, RenderFormat};
use crate::dns_answers::DnsCluster;
use crate::dns_answers::view::NodeAnswersView;
use crate::exit::{ExitStatus, Failure};
use crate::offline::note_settings_of_virtual_servers;
use crate::output::{answers, print};
use crate::services;

/// # Errors
/// Nothing could be read, or the format is one of `ipvsadm`.
pub(super) fn run(args: &RenderArgs) -> Result<ExitStatus, Failure> {
    if args.output == RenderFormat::Save {
        return Err(Failure::input(
            "answers of DNS have no ipvsadm lines; with --dns use -o table or -o json",
        ));
    }
    let origin = args.origin.get();
    note_settings_of_virtual_servers(&args.service);
    let cluster = DnsCluster::read(&origin, &args.service.allow_lists, args.moment.get())?;
    let scope = services::scope(&args.services, &origin, &cluster.loaded)?;
    let is_named = !args.services.services.is_empty();
    let view = view(&cluster, &scope, is_named, &args.node);
    if args.output != RenderFormat::Json {
        print::warnings(&view.warnings);
    }
    print::result(&match args.output {
        RenderFormat::Json => print::json(&view)?,
        RenderFormat::Table | RenderFormat::Save => answers::table(&view.services, print::width()),
    })?;
    args.strict
        .end(view.warnings.len(), args.output.reader(), ExitStatus::Fine)
}

/// The answers for the headless Services of the scope, or for all of it if each `is_named`.
fn view(cluster: &DnsCluster, scope: &Scope, is_named: bool, node: &str) -> NodeAnswersView {
    let is_shown = |service: &&Service| is_named || service.is_headless();
    let names = scope.of(cluster.snapshot());
    let services = names
        .iter()
        .filter_map(|name| cluster.snapshot().service(name));
    NodeAnswersView {
        node: node.to_owned(),
        services: services
            .filter(is_shown)
            .map(|service| cluster.answers(service, &node.into()))
            .collect(),
        warnings: cluster.warnings(scope, node),
    }
}
