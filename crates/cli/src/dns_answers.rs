//! The answers of `ipvs-topo dns` from a cluster that was read once: shared by `render --dns` and `explain --dns`.

// A new rule or source must be handled everywhere, not by a `_` arm.
#![warn(clippy::wildcard_enum_match_arm)]

pub mod view;

mod client;

use std::collections::BTreeSet;
use std::sync::Arc;

use agent_api::describe;
use agent_api::explain::ExplainInput;
use agent_api::scope::{Scope, missing};
use agent_api::view::{ExplainView, WarningView};
use cluster::ServiceSelection;
use cluster::source::{Loaded, Options};
use dns::AnswerCycle;
use topology_core::model::{Family, ObjectName, Service};
use topology_core::resolve::{ResolvedServer, resolve_headless};
use topology_core::snapshot::Snapshot;

use self::view::{
    AnswerLevelView, AnswerView, DnsResponseCode, DnsServiceKind, ServiceAnswersView,
};
use crate::args::AllowListArgs;
use crate::exit::Failure;
use crate::origin::Origin;
use crate::output::server::endpoint;

/// Why an SRV answer has no endpoint of a family that has some.
const FAR_FAMILY: &str =
    "SRV answers follow the other family, which has nearer or better endpoints";
/// The same as a code.
pub(crate) const FAR_FAMILY_CODE: &str = "OtherFamily";

/// A cluster as `ipvs-topo dns` sees it, at one time.
#[derive(Debug)]
pub(crate) struct DnsCluster {
    pub(crate) loaded: Loaded,
    /// Milliseconds since 1970.
    now: i64,
}

impl DnsCluster {
    /// Reads the cluster as of `now`. Must not run in an async task.
    ///
    /// # Errors
    /// Nothing could be read; partial failures are warnings.
    pub(crate) fn read(
        origin: &Origin,
        allow_lists: &AllowListArgs,
        now: i64,
    ) -> Result<Self, Failure> {
        let options = Options {
            now: Some(now),
            allowed: allow_lists.get(),
            services: ServiceSelection::All,
            ..Options::default()
        };
        let loaded = origin.read(&options)?;
        Ok(Self { loaded, now })
    }

    pub(crate) fn snapshot(&self) -> &Snapshot {
        &self.loaded.snapshot
    }

    /// # Errors
    /// The input does not have the Service.
    pub(crate) fn service(&self, name: &ObjectName) -> Result<&Service, Failure> {
        let Loaded {
            snapshot,
            warnings,
            ignored,
            ..
        } = &self.loaded;
        let service = snapshot.service(name);
        service.ok_or_else(|| Failure::input(missing(name, ignored, &mut warnings.iter())))
    }

    /// The names and numbers of the ports. A port that only slices of a headless Service have, has the numbers of
    /// the pods.
    pub(crate) fn ports<'s>(&'s self, service: &'s Service) -> Vec<(&'s str, u16)> {
        let own = service.ports.iter();
        let known: BTreeSet<_> = own.map(|port| (port.protocol, &*port.name)).collect();
        let slices = self.snapshot().slices(&service.name).iter();
        let of_slices = slices.filter(|_| service.is_headless());
        let of_slices = of_slices.flat_map(|slice| &slice.ports);
        let others: BTreeSet<_> = of_slices
            .filter(|port| !known.contains(&(port.protocol, &*port.name)))
            .map(|port| (&*port.name, port.port.get()))
            .collect();
        let own = service.ports.iter();
        let own = own.map(|port| (&*port.name, port.port.get()));
        own.chain(others).collect()
    }

    /// The warnings about the Services of `scope`, and about a Node that does not exist.
    pub(crate) fn warnings(&self, scope: &Scope, node: &str) -> Vec<WarningView> {
        let mut warnings = scope.views(self.snapshot(), &mut self.loaded.warnings.iter());
        warnings.extend(describe::unknown_node(self.snapshot(), node));
        warnings
    }

    /// The answers for the name of the Service to clients of a Node.
    pub(crate) fn answers(&self, service: &Service, node: &Arc<str>) -> ServiceAnswersView {
        let answers = if service.is_headless() {
            let servers = self.resolve(service, node);
            let of_name = servers.iter().filter(|server| is_of_name(server));
            of_name
                .map(|server| self.answer(server, &servers))
                .collect()
        } else {
            of_cluster_ips(service)
        };
        self.named(service, None, answers)
    }

    /// The answer for the name of a port of a Service that is not headless.
    pub(crate) fn port_answers(&self, service: &Service, port: &str) -> ServiceAnswersView {
        let mut ports = service.ports.iter();
        let number = ports
            .find(|own| *own.name == *port)
            .map(|own| own.port.get());
        let number = number.filter(|_| service.external_name.is_none());
        let answers = number.map(|number| {
            let addresses = service.cluster_ips();
            AnswerView {
                record_type: "SRV".to_owned(),
                port_name: Some(port.to_owned()),
                ..always(addresses.map(|address| endpoint(address, number)).collect())
            }
        });
        self.named(service, Some(port), answers.into_iter().collect())
    }

    /// The answers for a headless Service, or for one of its ports, with the decisions and the warnings about them.
    pub(crate) fn explain(
        &self,
        service: &Service,
        port: Option<&str>,
        node: &Arc<str>,
    ) -> (ServiceAnswersView, Vec<WarningView>) {
        let me = dns::viewpoint(node, self.now);
        let mut warnings = self.loaded.warnings.iter();
        let input = ExplainInput::of(self.snapshot(), &mut warnings, &me, &service.name);
        let (views, warnings) = match input.map(ExplainInput::explain) {
            Some(Ok(views)) => {
                let first = views.first();
                let warnings = first.map_or_else(Vec::new, |view| view.warnings.clone());
                (views, warnings)
            }
            Some(Err(warnings)) => (Vec::new(), warnings),
            None => (Vec::new(), Vec::new()),
        };
        let servers = self.resolve(service, node);
        let explained = servers.iter().zip(views);
        let asked = explained.filter(|(server, _)| match port {
            None => is_of_name(server),
            Some(port) => server.port_of_slices().is_some_and(|name| **name == *port),
        });
        let answers = asked.map(|(server, view)| AnswerView {
            decision: Some(ExplainView {
                warnings: Vec::new(),
                ..view
            }),
            ..self.answer(server, &servers)
        });
        let answers = answers.collect();
        (self.named(service, port, answers), warnings)
    }

    /// The answers that one of all servers of a headless Service stands for.
    fn answer(&self, server: &ResolvedServer, all: &[ResolvedServer]) -> AnswerView {
        let decision = &server.decision;
        let cycle = AnswerCycle::of_server(self.snapshot(), server, all);
        let level = |level: &dns::AnswerLevel| AnswerLevelView {
            level: level
                .key
                .as_ref()
                .filter(|_| describe::has_levels(decision))
                .map(ToString::to_string),
            share: share(level.answers, cycle.answers),
            answers: level.answers,
            addresses: level
                .endpoints
                .iter()
                .map(|(address, port)| endpoint(*address, *port))
                .collect(),
        };
        let is_behind = cycle.levels.is_empty() && cycle.answers > 0;
        let refusal = match decision.refusal {
            Some(refusal) => Some((refusal.to_string(), refusal.code())),
            None => is_behind.then(|| (FAR_FAMILY.to_owned(), FAR_FAMILY_CODE)),
        };
        let (refusal, refusal_code) = refusal.unzip();
        let port = server.port_of_slices();
        AnswerView {
            record_type: match port {
                Some(_) => "SRV",
                None => record_type(server.server.key.family()),
            }
            .to_owned(),
            port_name: port.map(ToString::to_string),
            cycle: cycle.answers,
            levels: cycle.levels.iter().map(level).collect(),
            refusal,
            refusal_code: refusal_code.map(str::to_owned),
            decision: None,
        }
    }

    fn resolve(&self, service: &Service, node: &Arc<str>) -> Vec<ResolvedServer> {
        let me = dns::viewpoint(node, self.now);
        resolve_headless(self.snapshot(), &me, &service.name).servers
    }

    fn named(
        &self,
        service: &Service,
        port: Option<&str>,
        answers: Vec<AnswerView>,
    ) -> ServiceAnswersView {
        let kind = match &service.external_name {
            Some(_) => DnsServiceKind::ExternalName,
            None if service.is_headless() => DnsServiceKind::Headless,
            None => DnsServiceKind::ClusterIp,
        };
        let missing = self.missing(service, port);
        let cname = service.external_name.as_deref();
        let cname = cname.filter(|target| missing.is_none() && dns::is_alias(target));
        ServiceAnswersView {
            service: service.name.to_string(),
            kind,
            response_code: match missing {
                None => DnsResponseCode::NoError,
                Some(_) => DnsResponseCode::NxDomain,
            },
            missing: missing.map(str::to_owned),
            cname: cname.map(str::to_owned),
            answers,
        }
    }

    /// Why DNS does not have the name of the Service or of its port; `None` if it does.
    fn missing(&self, service: &Service, port: Option<&str>) -> Option<&'static str> {
        let snapshot = self.snapshot();
        let is_external = service.external_name.is_some();
        if !dns::has_name(snapshot, &service.name) {
            return Some(if is_external {
                "the external name is an IP address"
            } else {
                "no endpoint is ready"
            });
        }
        let has_port = port.is_none_or(|port| dns::has_port_name(snapshot, service, port));
        let why = if is_external {
            "a Service of type ExternalName has no names of ports"
        } else {
            "no EndpointSlice with a ready endpoint has the port"
        };
        (!has_port).then_some(why)
    }
}

fn is_of_name(server: &ResolvedServer) -> bool {
    server.port_of_slices().is_none()
}

/// The cluster IPs of the Service, which every client gets.
fn of_cluster_ips(service: &Service) -> Vec<AnswerView> {
    let answer = |family: Family| {
        let addresses = service.cluster_ips();
        let of_family = addresses.filter(|address| Family::of(*address) == family);
        let addresses: Vec<String> = of_family.map(|address| address.to_string()).collect();
        (!addresses.is_empty()).then(|| AnswerView {
            record_type: record_type(family).to_owned(),
            ..always(addresses)
        })
    };
    [Family::V4, Family::V6]
        .into_iter()
        .filter_map(answer)
        .collect()
}

/// Every client gets these addresses each time.
fn always(addresses: Vec<String>) -> AnswerView {
    AnswerView {
        record_type: String::new(),
        port_name: None,
        cycle: 1,
        levels: vec![AnswerLevelView {
            level: None,
            share: 1.0,
            answers: 1,
            addresses,
        }],
        refusal: None,
        refusal_code: None,
        decision: None,
    }
}

pub(crate) const fn record_type(family: Family) -> &'static str {
    match family {
        Family::V4 => "A",
        Family::V6 => "AAAA",
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "weights are small, so a cycle has far fewer than 2^52 answers"
)]
fn share(part: u64, whole: u64) -> f64 {
    part as f64 / whole as f64
}
