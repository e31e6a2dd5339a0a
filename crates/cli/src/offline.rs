//! A cluster that was read once, seen from one node: shared by `render`, `diff` and `explain`.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use agent_api::describe;
use agent_api::explain::ExplainInput;
use agent_api::scope::{self, Scope};
use agent_api::view::{NodeView, NotProgrammedView, WarningView};
use cluster::ServiceSelection;
use cluster::source::{Loaded, Options};
use topology_core::model::{Family, ObjectName};
use topology_core::resolve::{Resolution, ResolvedServer, Viewpoint, resolve};
use topology_core::scheduler::Scheduler;
use topology_core::snapshot::{MarkMask, MarkedPort, Snapshot};

use crate::args::{OriginArgs, ServiceArgs};
use crate::exit::Failure;
use crate::origin::Origin;
use crate::output::print;

/// A cluster and a viewpoint.
#[derive(Debug)]
pub struct Offline {
    pub loaded: Loaded,
    pub me: Viewpoint,
}

/// All virtual servers of a node.
#[derive(Debug)]
pub struct Resolved {
    /// Sorted by Service, port and address.
    pub servers: Vec<ResolvedServer>,
    /// Warnings about the input, and problems found while resolving the Services.
    pub warnings: Vec<WarningView>,
    /// Parts of Services that are not programmed.
    pub not_programmed: Vec<NotProgrammedView>,
}

/// The source of the cluster state and the node, if either is given; default source: kubectl's.
///
/// # Errors
/// There is a source, but no node.
pub fn seen_from<'a>(
    origin: &OriginArgs,
    node: Option<&'a str>,
) -> Result<Option<(Origin, &'a str)>, Failure> {
    match (origin.given(), node) {
        (_, Some(node)) => Ok(Some((origin.get(), node))),
        (Some(_), None) => Err(Failure::input(
            "the result depends on the node; add --node NAME",
        )),
        (None, None) => Ok(None),
    }
}

/// What is said about a flag that only counts for an input.
const NO_EFFECT: &str =
    "has no effect on the running agent's answer; add --node NAME to read the cluster here";

/// Refuses a flag about an input if the running agent is queried.
///
/// # Errors
/// The flag is present.
pub(crate) fn only_offline(flag: &str, is_there: bool) -> Result<(), Failure> {
    if is_there {
        return Err(Failure::input(format_args!("{flag} {NO_EFFECT}")));
    }
    Ok(())
}

/// Prints which settings of virtual servers do not count, as the running agent is queried, which
/// has its own.
pub(crate) fn note_settings(args: &ServiceArgs) {
    let keys = &args.allow_lists.annotation_label_keys;
    let keys = ("--annotation-label-keys", keys.is_some());
    let of_servers = of_virtual_servers(args).into_iter();
    note(of_servers.chain([keys]), NO_EFFECT);
}

/// Prints which settings do not count, as DNS has no virtual servers.
pub(crate) fn note_settings_of_virtual_servers(args: &ServiceArgs) {
    note(of_virtual_servers(args), "has no effect on answers of DNS");
}

/// The settings that only virtual servers have, and whether each is given.
fn of_virtual_servers(args: &ServiceArgs) -> [(&'static str, bool); 5] {
    let external_ips = &args.allow_lists.external_ip_ranges;
    [
        ("--service-cidr", !args.service_cidr.is_empty()),
        ("--scheduler", args.scheduler != Scheduler::default()),
        ("--nodeport-addresses", !args.nodeport_addresses.is_empty()),
        ("--fwmark-mask", args.fwmark_mask != MarkMask::default()),
        ("--external-ip-ranges", !external_ips.is_empty()),
    ]
}

fn note(flags: impl IntoIterator<Item = (&'static str, bool)>, why: &str) {
    for (flag, is_given) in flags {
        if is_given {
            print::aside(&format!("note: {flag} {why}"));
        }
    }
}

/// The addresses of the Node object at which node ports are served; an agent uses those of the interfaces.
fn node_port_addresses(snapshot: &Snapshot, node: &str, args: &ServiceArgs) -> BTreeSet<IpAddr> {
    let addresses = snapshot.node(node).map_or(&[][..], |node| &node.addresses);
    let primary: Vec<IpAddr> = [Family::V4, Family::V6]
        .into_iter()
        .filter_map(|family| {
            let mut addresses = addresses.iter().copied();
            addresses.find(|address| Family::of(*address) == family)
        })
        .collect();
    args.node_port_addresses()
        .select(addresses.iter().copied(), &primary)
}

impl Offline {
    /// Reads the cluster as of `now` (milliseconds since 1970). Must not run in an async task.
    ///
    /// # Errors
    /// Nothing could be read; partial failures are warnings.
    pub fn read(
        origin: &Origin,
        node: &str,
        args: &ServiceArgs,
        now: i64,
    ) -> Result<Self, Failure> {
        Self::read_with_marks(origin, node, args, now, Vec::new())
    }

    /// Does the same with the firewall marks that an agent allocated.
    ///
    /// # Errors
    /// As [`Offline::read`].
    pub fn read_with_marks(
        origin: &Origin,
        node: &str,
        args: &ServiceArgs,
        now: i64,
        marks: Vec<(MarkedPort, u32)>,
    ) -> Result<Self, Failure> {
        let options = Options {
            service_cidrs: args.service_cidr.clone(),
            now: Some(now),
            allowed: args.allow_lists.get(),
            services: ServiceSelection::Proxied,
            mark_mask: args.fwmark_mask,
            marks,
        };
        let loaded = origin.read(&options)?;
        let me = Viewpoint {
            scheduler: args.scheduler,
            now: Some(now),
            ..Viewpoint::new(node)
        };
        let mut offline = Self { loaded, me };
        offline.look_from(node, args);
        Ok(offline)
    }

    /// Changes the node.
    pub fn look_from(&mut self, node: &str, args: &ServiceArgs) {
        let addresses = node_port_addresses(&self.loaded.snapshot, node, args);
        self.me.node = node.into();
        self.me.node_port_addresses = Arc::new(addresses);
    }

    pub fn resolve(&self) -> Resolved {
        self.resolve_in(&Scope::All)
    }

    /// Resolves the Services of `scope`, with the warnings about them.
    pub(crate) fn resolve_in(&self, scope: &Scope) -> Resolved {
        let snapshot = &self.loaded.snapshot;
        let mut resolved = Resolved {
            servers: Vec::new(),
            warnings: scope.views(snapshot, &mut self.loaded.warnings.iter()),
            not_programmed: Vec::new(),
        };
        resolved
            .warnings
            .extend(describe::unknown_node(snapshot, &self.me.node));
        for service in snapshot
            .services()
            .filter(|service| scope.has(&service.name))
        {
            let Resolution {
                servers, findings, ..
            } = resolve(snapshot, &self.me, &service.name);
            resolved.servers.extend(servers);
            resolved
                .warnings
                .extend(findings.iter().map(describe::finding));
            let parts = service.unprogrammed.iter();
            resolved
                .not_programmed
                .extend(parts.map(|part| describe::not_programmed(&service.name, part)));
        }
        resolved
    }

    /// The input for the explanation of one Service.
    ///
    /// # Errors
    /// The input does not have the Service.
    pub(crate) fn explain_input(&self, service: &ObjectName) -> Result<ExplainInput, Failure> {
        let Loaded {
            snapshot,
            warnings,
            ignored,
            ..
        } = &self.loaded;
        let input = ExplainInput::of(snapshot, &mut warnings.iter(), &self.me, service);
        input.ok_or_else(|| Failure::input(scope::missing(service, ignored, &mut warnings.iter())))
    }
}

impl Resolved {
    /// The same for JSON and tables.
    pub fn view(self, node: &str) -> NodeView {
        NodeView {
            node: node.to_owned(),
            virtual_servers: self.servers.iter().map(describe::server).collect(),
            not_programmed: self.not_programmed,
            warnings: self.warnings,
        }
    }
}
