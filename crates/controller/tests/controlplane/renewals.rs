//! A renewed drain: old and new agents use it exactly as long as the controller reports it as
//! active.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use cluster::api::{NodeSource, WatchOptions, follow};
use cluster::clock::Clock;
use cluster::event::Completeness;
use cluster::index::Index;
use cluster::source::Watch;
use controller::state::{Collection, State};
use jiff::{SignedDuration, Timestamp};
use kube_io::{Access, Connection};
use tokio::runtime::Runtime;
use tokio::task::LocalSet;

use crate::kubectl::{Namespace, eventually, installed, kubectl_with, ok, service, variable};

const DRAIN: &str = "renewed";
const HOUR: i64 = 3_600_000;
const MINUTE: i64 = 60_000;

/// The watch and the index of an agent, with its own clock.
struct Agent {
    watch: Watch,
    index: Index,
    /// Milliseconds by which its clock is ahead of the clock of the test.
    ahead: i64,
}

impl Agent {
    /// When the drain ends, in milliseconds since 1970.
    fn ends(&self) -> Option<i64> {
        let drains = &mut self.index.snapshot().drains();
        let drain = drains.find(|drain| &*drain.name == DRAIN)?;
        Some(drain.expires)
    }
}

struct Cluster {
    runtime: Runtime,
    local: LocalSet,
    /// Milliseconds by which the clock of the test is ahead of the clock of this machine.
    shift: Arc<AtomicI64>,
    agents: Vec<Agent>,
}

impl Cluster {
    fn now(&self) -> i64 {
        Timestamp::now().as_millisecond() + self.shift.load(Ordering::Relaxed)
    }

    fn pass(&self, time: i64) {
        self.shift.fetch_add(time, Ordering::Relaxed);
    }

    /// Starts an agent and waits for its first lists.
    fn start(&mut self, nodes: NodeSource, ahead: i64) {
        let shift = Arc::clone(&self.shift);
        let clock = Clock::reading(move || {
            Timestamp::now().as_millisecond() + shift.load(Ordering::Relaxed) + ahead
        });
        let access = Access::kubeconfig(variable("KUBECONFIG").as_ref(), "tests");
        let connection = self.runtime.block_on(Connection::open(&access)).unwrap();
        let options = WatchOptions {
            clock,
            ..nodes.into()
        };
        let (watch, feed) = follow(connection, options);
        self.local.spawn_local(feed);
        self.agents.push(Agent {
            watch,
            index: Index::new(Vec::new()),
            ahead,
        });
        self.until("the first list", |agent| {
            agent.index.completeness() == Some(Completeness::Whole)
        });
    }

    /// Applies the batches of the agents until `condition` is true for each.
    fn until(&mut self, what: &str, condition: impl Fn(&Agent) -> bool) {
        eventually(what, || {
            for Agent { watch, index, .. } in &mut self.agents {
                let moment = Duration::from_millis(50);
                let next = async { tokio::time::timeout(moment, watch.next()).await };
                if let Ok(batch) = self.local.block_on(&self.runtime, next) {
                    index.apply(batch.unwrap());
                }
            }
            self.agents.iter().all(&condition).then_some(())
        });
    }

    /// Sets the end of the drain, in milliseconds from now; returns it in milliseconds since 1970.
    fn renew(&self, ahead: i64) -> i64 {
        let ends =
            Timestamp::from_millisecond(self.now()).unwrap() + SignedDuration::from_millis(ahead);
        let drain = format!(
            "{{apiVersion: topology.ipvs-topo.io/v1alpha1, kind: TopologyDrain, metadata: {{name: {DRAIN}}},
               spec: {{match: {{key: topology.kubernetes.io/zone, values: [far]}}, expiresAt: \"{ends:.0}\"}}}}"
        );
        kubectl_with(&drain, &["apply", "-f", "-"]).unwrap();
        ends.as_second() * 1000
    }

    /// The phase that the controller would write now.
    fn phase(&self) -> String {
        let mut state = State::default();
        let drain = ok(&["get", "tdrain", DRAIN, "-o", "json"]);
        state.apply(Collection::Drains, serde_json::from_str(&drain).unwrap());
        let writes = state.plan(self.now());
        let mut writes = writes.iter();
        let of_drain = writes.find(|write| write.collection == Collection::Drains);
        let phase = &of_drain.unwrap().body["status"]["phase"];
        phase.as_str().unwrap().to_owned()
    }
}

#[test]
fn a_drain_that_is_renewed_twice_is_active_for_all_agents_and_the_controller() {
    installed();
    let runtime = tokio::runtime::Builder::new_current_thread();
    let mut cluster = Cluster {
        runtime: { runtime }.enable_all().build().unwrap(),
        local: LocalSet::new(),
        shift: Arc::default(),
        agents: Vec::new(),
    };
    let nodes = || NodeSource::Nodes { own: "n1".into() };
    let map = || NodeSource::Map { own: "n1".into() };
    cluster.start(nodes(), 0);
    cluster.start(map(), 2 * MINUTE);
    let first = cluster.renew(60 * HOUR);
    cluster.until("the drain", |agent| agent.ends() == Some(first));

    cluster.pass(50 * HOUR);
    cluster.start(nodes(), 5 * MINUTE);
    let second = cluster.renew(70 * HOUR);
    assert_eq!(cluster.phase(), "Active");
    cluster.until("the first renewal", |agent| agent.ends() == Some(second));

    // The end is within the limit by the clock of the controller, but not by the clock of the slow
    // agent.
    cluster.pass(60 * HOUR);
    cluster.start(nodes(), -3 * MINUTE);
    let third = cluster.renew(72 * HOUR);
    assert_eq!(cluster.phase(), "Active");
    cluster.until("the second renewal", |agent| {
        let ends = if agent.ahead < 0 { second } else { third };
        agent.ends() == Some(ends)
    });
    cluster.pass(4 * MINUTE);
    // The agent validates the drain again with the next event or bookmark.
    let namespace = Namespace::new();
    namespace.apply(&service("bell", &[])).unwrap();
    cluster.until("the slow agent", |agent| agent.ends() == Some(third));
    cluster.start(map(), -MINUTE);
    cluster.until("the newest agent", |agent| agent.ends() == Some(third));
    assert_eq!(cluster.phase(), "Active");

    cluster.pass(73 * HOUR);
    assert_eq!(cluster.phase(), "Expired");
    ok(&["delete", "tdrain", DRAIN]);
    cluster.until("the end of the drain", |agent| agent.ends().is_none());
}
