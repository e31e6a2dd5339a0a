//! Answers queries, each consistently between two passes.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use agent_api::explain::ExplainInput;
use agent_api::scope;
use cluster::unused_policies::{self, NodeLabels};
use cluster::warning::Warning;
use dataplane::host::Host;
use dataplane::ipvs::Kernel;
use topology_core::model::{ObjectName, Service};
use topology_core::resolve::{Resolution, ResolvedServer, resolve};
use topology_core::virtual_server::{VirtualServer, VirtualServerKey};

use super::reconciler::{Item, Reconciler};
use crate::node_warning::{NodeWarning, Topic};
use crate::state::{
    DrainState, KernelServer, Overview, Page, ProgramStatus, Query, ServerState, ServiceState,
    Surroundings,
};

/// Services with more ports have no share series: one Service must not take the series of all others.
const MOST_PORTS_OF_SHARES: usize = 10;

/// The first virtual server of each port and family. Those of other frontends have the same series.
fn one_of_each_port(resolution: Resolution) -> impl Iterator<Item = ResolvedServer> {
    let mut known = BTreeSet::new();
    let servers = resolution.servers.into_iter();
    servers.filter(move |resolved| {
        known.insert((
            Arc::clone(&resolved.port_name),
            resolved.server.key.family(),
        ))
    })
}

/// The first Service of each namespace, then the second of each, and so on.
fn one_of_each_namespace<'s>(services: impl Iterator<Item = &'s Service>) -> Vec<&'s Service> {
    let mut sorted: Vec<&Service> = services.collect();
    sorted.sort_unstable_by(|left, right| left.name.cmp(&right.name));
    let namespaces = sorted.chunk_by(|left, right| left.name.namespace == right.name.namespace);
    let mut in_turn: Vec<(usize, &Service)> = namespaces
        .flat_map(|services| services.iter().copied().enumerate())
        .collect();
    in_turn.sort_by_key(|(turn, _)| *turn);
    in_turn.into_iter().map(|(_, service)| service).collect()
}

impl<K: Kernel, H: Host> Reconciler<K, H> {
    /// Sends the response; the client may have disconnected.
    pub(super) async fn answer(&mut self, query: Query) {
        self.me.now = Some(self.clock.now());
        match query {
            Query::Service(name, reply) => drop(reply.send(self.service(&name).await)),
            Query::ExplainInput(name, reply) => drop(reply.send(self.explain_input(&name))),
            Query::Missing(name, reply) => {
                let (ignored, mut warnings) = (self.index.ignored(), self.index.warnings());
                drop(reply.send(scope::missing(&name, ignored, &mut warnings)));
            }
            Query::Services(after, limit, reply) => {
                drop(reply.send(self.page(after.as_ref(), limit).await));
            }
            Query::Surroundings(reply) => {
                drop(reply.send(self.surroundings().await));
            }
            Query::Plan(reply) => self.plan_queries.push(reply),
            Query::Overview(most_levels, reply) => drop(reply.send(self.overview(most_levels))),
            Query::DecisionSummary(reply) => {
                let (snapshot, node) = (self.index.snapshot(), &self.me.node);
                let account = self.aggregate.summarize(snapshot, self.clock.now(), node);
                drop(reply.send(account));
            }
            Query::Ping(reply) => drop(reply.send(())),
        }
    }

    async fn service(&mut self, name: &ObjectName) -> Option<ServiceState> {
        let service = self.index.snapshot().service(name)?;
        let unprogrammed = service.unprogrammed.clone();
        let resolution = resolve(self.index.snapshot(), &self.me, name);
        let mut servers = Vec::with_capacity(resolution.servers.len());
        for wanted in resolution.servers {
            let key = wanted.server.key;
            let kernel = self.kernel_server(&key).await;
            servers.push(ServerState {
                status: self.program_status(name, &key),
                kernel,
                wanted,
            });
        }
        let findings = resolution.findings;
        Some(ServiceState {
            name: name.clone(),
            servers,
            findings,
            unprogrammed,
        })
    }

    fn explain_input(&self, name: &ObjectName) -> Option<ExplainInput> {
        let warnings = self.input_warnings();
        ExplainInput::of(self.index.snapshot(), &mut warnings.iter(), &self.me, name)
    }

    /// Warnings about the input.
    fn input_warnings(&self) -> Vec<Warning> {
        let mut warnings: Vec<Warning> = self.index.warnings().cloned().collect();
        let known = if self.config.mapped {
            NodeLabels::Some
        } else {
            NodeLabels::All
        };
        let (snapshot, now) = (self.index.snapshot(), self.me.now);
        warnings.extend(unused_policies::warnings(snapshot, now, known, |_key| None));
        warnings
    }

    async fn page(&mut self, after: Option<&ObjectName>, limit: usize) -> Page {
        let names = self
            .index
            .snapshot()
            .services()
            .map(|service| &service.name);
        let rest = names.filter(|name| after.is_none_or(|after| *name > after));
        let mut names: Vec<ObjectName> = rest.take(limit.saturating_add(1)).cloned().collect();
        let more = names.len() > limit;
        names.truncate(limit);
        let mut services = Vec::with_capacity(names.len());
        for name in names {
            services.extend(self.service(&name).await);
        }
        Page { services, more }
    }

    /// The kernel's state; a key that cannot be read counts as absent, and its failure has a retry if it matters.
    async fn kernel_server(&mut self, key: &VirtualServerKey) -> Option<KernelServer> {
        let mut server = self.kernel.show(key).await.ok()??;
        let now = self.now();
        for real in &mut server.real_servers {
            let drain = self.mirror.drain(key, real.address, real.port);
            real.drain = match drain.map(|drain| drain.until) {
                None => DrainState::None,
                Some(None) => DrainState::UntilIdle,
                Some(Some(until)) => {
                    DrainState::UntilDeadline(Duration::from_millis(until.saturating_sub(now)))
                }
            };
            if self.settings.counters_stopped {
                real.traffic = None;
            }
        }
        Some(server)
    }

    fn program_status(&self, service: &ObjectName, key: &VirtualServerKey) -> ProgramStatus {
        let refused = self
            .desired
            .service(service)
            .and_then(|asked| asked.refused.get(key));
        if let Some(words) = refused {
            return ProgramStatus::Refused(words.clone());
        }
        if self.mirror.get(key).is_some() && !self.mirror.is_ours(key) {
            return ProgramStatus::Foreign;
        }
        match self.agenda.failure(&Item::Server(*key)) {
            Some(failure) => ProgramStatus::Failed {
                error: failure.error.clone(),
                retry_in: Duration::from_millis(failure.due.saturating_sub(self.now())),
            },
            None => ProgramStatus::Programmed,
        }
    }

    pub(super) async fn surroundings(&mut self) -> Surroundings {
        let ranges = self.host_plan().placement.ranges;
        let survey = self.host.list_objects(&ranges).await;
        let foreign: Vec<_> = self
            .mirror
            .keys()
            .filter(|key| !self.mirror.is_ours(key))
            .copied()
            .collect();
        let mut foreign_servers = Vec::with_capacity(foreign.len());
        for key in foreign {
            foreign_servers.extend(self.kernel_server(&key).await);
        }
        let skipped = self.index.skipped();
        let unread = survey.failures.into_iter().map(|text| NodeWarning {
            topic: Topic::Kernel,
            text,
        });
        Surroundings {
            foreign_servers,
            foreign_routes: survey.foreign_routes,
            foreign_tables: survey.foreign_tables,
            routes: survey.routes,
            warnings: self.warnings.all().iter().cloned().chain(unread).collect(),
            input_warnings: self.input_warnings(),
            skipped_kinds: skipped
                .into_iter()
                .map(|(kind, count)| (kind.to_string(), count as u64))
                .collect(),
        }
    }

    /// Virtual servers of Services with a policy, one for each port and family, until they have so many levels together.
    fn overview(&self, most_levels: usize) -> Overview {
        let snapshot = self.index.snapshot();
        let decided = snapshot.services().filter(|service| {
            service.ports.len() <= MOST_PORTS_OF_SHARES
                && (service.policy.is_some()
                    || service.named_policy.is_some()
                    || snapshot.policies_for(service).next().is_some())
        });
        let mut left = most_levels;
        let servers = one_of_each_namespace(decided)
            .into_iter()
            .flat_map(|service| one_of_each_port(resolve(snapshot, &self.me, &service.name)));
        let servers = servers.map_while(|server| {
            left = left.checked_sub(server.decision.levels.len().max(1))?;
            Some(server)
        });
        Overview {
            decided: servers.collect(),
            input_warnings: self.index.warnings().cloned().collect(),
        }
    }

    pub(super) fn programmable(&self, service: &ObjectName) -> impl Iterator<Item = VirtualServer> {
        let asked = self.desired.service(service);
        let resolution = resolve(self.index.snapshot(), &self.me, service);
        let servers = resolution
            .servers
            .into_iter()
            .map(|resolved| resolved.server);
        servers.filter(move |server| asked.is_some_and(|asked| asked.keys.contains(&server.key)))
    }
}

#[cfg(test)]
impl<K: Kernel, H: Host> Reconciler<K, H> {
    /// A Service of the namespace `t` that exists.
    pub(super) async fn service_state(&mut self, name: &str) -> ServiceState {
        self.service(&ObjectName::new("t", name)).await.unwrap()
    }

    /// What the explanation of a Service of the namespace `t` needs.
    pub(super) fn explain_input_of(&self, name: &str) -> ExplainInput {
        self.explain_input(&ObjectName::new("t", name)).unwrap()
    }

    /// The Services that the overview has.
    pub(super) fn overview_of(&self) -> Vec<String> {
        let decided = self.overview(9).decided.into_iter();
        decided.map(|server| server.service.to_string()).collect()
    }

    /// A page of the namespace `t`.
    pub(super) async fn page_of(&mut self, after: Option<&str>, limit: usize) -> Page {
        let after = after.map(|name| ObjectName::new("t", name));
        self.page(after.as_ref(), limit).await
    }
}
