//! Answers the queries of `ipvs-topo diff`: the steps of a full pass.

use std::collections::BTreeSet;

use cluster::event::Completeness;
use dataplane::host::Host;
use dataplane::ipvs::{Kernel, ListedServer};
use topology_core::mirror::Mirror;
use topology_core::model::ObjectName;
use topology_core::plan;
use topology_core::virtual_server::{VirtualServer, VirtualServerKey};

use super::pass::SLICE;
use super::plan_queries::PlanQuery;
use super::reconciler::{Reconciler, milliseconds};

/// Why there is no plan during the first read of the input.
const UNREAD: &str = "the cluster is not read completely yet, and nothing is changed before; `ipvs-topo status` shows what is missing";

/// Why there is none after that.
const NO_PASS: &str = "the first pass is not done; `ipvs-topo status` shows why";

impl<K: Kernel, H: Host> Reconciler<K, H> {
    /// Continues with the next slice. The mirror of the loop does not change, so the next comparison still finds and
    /// repairs the differences.
    pub(super) async fn continue_plan(&mut self) {
        let Some(mut query) = self.plan_queries.running.take() else {
            return self.begin_plan().await;
        };
        if query.reply.is_closed() {
            return;
        }
        match self.add_steps(&mut query).await {
            Ok(false) => self.plan_queries.running = Some(query),
            Ok(true) => drop(query.reply.send(Ok(query.steps))),
            Err(error) => drop(query.reply.send(Err(error))),
        }
    }

    async fn begin_plan(&mut self) {
        let Some(reply) = self.plan_queries.waiting.pop_front() else {
            return;
        };
        let listed = match self.list_for_plan().await {
            Ok(listed) => listed,
            Err(error) => return drop(reply.send(Err(error))),
        };
        let ours = self.mirror.keys().filter(|key| self.mirror.is_ours(key));
        let mut mirror = Mirror::new(ours.copied(), milliseconds(self.config.drain_timeout));
        let snapshot = self.index.snapshot();
        for (port, mark) in snapshot.firewall_marks() {
            mirror.set_mark_protocol(mark, port.protocol);
        }
        let services = snapshot.services().map(|service| service.name.clone());
        let services: Vec<ObjectName> = services.collect();
        self.plan_queries.running = Some(PlanQuery {
            reply,
            mirror,
            unread: listed.into_iter(),
            services: services.into_iter(),
            steps: Vec::new(),
        });
    }

    /// Before the first pass no Service is known, so everything would seem to be superfluous.
    async fn list_for_plan(&mut self) -> Result<Vec<ListedServer>, String> {
        if self.index.completeness().is_none() {
            return Err(UNREAD.to_owned());
        }
        let listed = self.kernel.list().await;
        let listed = listed.map_err(|error| error.to_string())?;
        if self.startup.is_done() {
            Ok(listed)
        } else {
            Err(NO_PASS.to_owned())
        }
    }

    /// Returns whether the plan is complete.
    async fn add_steps(&mut self, query: &mut PlanQuery) -> Result<bool, String> {
        let unread: Vec<ListedServer> = query.unread.by_ref().take(SLICE).collect();
        if !unread.is_empty() {
            for listed in unread {
                let key = listed.key;
                let reading = self.kernel.fill(listed).await;
                if let Some(reading) = reading.map_err(|error| error.to_string())? {
                    let read = Some((reading.observed, &*reading.connections));
                    query.mirror.observe(key, read);
                }
            }
            return Ok(false);
        }
        let services: Vec<ObjectName> = query.services.by_ref().take(SLICE).collect();
        if services.is_empty() {
            self.plan_orphans(query).await?;
            return Ok(true);
        }
        self.me.now = Some(self.clock.now());
        for service in &services {
            let servers: Vec<VirtualServer> = self.programmable(service).collect();
            for server in servers {
                self.plan_key(query, &server.key, Some(&server)).await?;
            }
        }
        Ok(false)
    }

    async fn plan_orphans(&mut self, query: &mut PlanQuery) -> Result<(), String> {
        if self.index.completeness() != Some(Completeness::Whole) {
            return Ok(());
        }
        let keys = query.mirror.keys();
        let orphans = keys.filter(|key| self.desired.owner(key).is_none());
        let orphans: BTreeSet<VirtualServerKey> = orphans.copied().collect();
        for key in orphans {
            self.plan_key(query, &key, None).await?;
        }
        Ok(())
    }

    /// Adds the steps of a virtual server. One that differs is read again, because the loop may have changed it meanwhile.
    async fn plan_key(
        &mut self,
        query: &mut PlanQuery,
        key: &VirtualServerKey,
        desired: Option<&VirtualServer>,
    ) -> Result<(), String> {
        let (now, options) = (self.now(), self.options());
        let diff = |mirror: &Mirror| plan::diff(desired, mirror, key, now, &options).steps;
        if diff(&query.mirror).is_empty() {
            return Ok(());
        }
        let reading = self.kernel.read(key).await;
        let reading = reading.map_err(|error| error.to_string())?;
        let read = reading.map(|reading| (reading.observed, reading.connections));
        let read = read
            .as_ref()
            .map(|(observed, connections)| (observed.clone(), &**connections));
        query.mirror.observe(*key, read);
        query.steps.extend(diff(&query.mirror));
        Ok(())
    }
}
