//! A drain is renewed over a watch: agents of any age hold it as long as the controller calls it active.

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

/// What an agent reads, with a clock of its own.
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
    /// By how many milliseconds the clock of the test is ahead of the clock of this machine.
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

    /// Starts an agent and waits until it has read everything once.
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

    /// Takes what the agents read until `is_so` for each.
    fn until(&mut self, what: &str, is_so: impl Fn(&Agent) -> bool) {
        eventually(what, || {
            for Agent { watch, index, .. } in &mut self.agents {
                let moment = Duration::from_millis(50);
                let next = async { tokio::time::timeout(moment, watch.next()).await };
                if let Ok(batch) = self.local.block_on(&self.runtime, next) {
                    index.apply(batch.unwrap());
                }
            }
            self.agents.iter().all(&is_so).then_some(())
        });
    }

    /// Writes when the drain ends, in milliseconds from now. Returns the time.
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
        let mut world = State::default();
        let drain = ok(&["get", "tdrain", DRAIN, "-o", "json"]);
        world.exists(Collection::Drains, serde_json::from_str(&drain).unwrap());
        let writes = world.plan(self.now());
        let mut writes = writes.iter();
        let of_drain = writes.find(|write| write.collection == Collection::Drains);
        let phase = &of_drain.unwrap().body["status"]["phase"];
        phase.as_str().unwrap().to_owned()
    }
}

#[test]
fn a_drain_renewed_twice_holds_for_agents_of_any_age_as_for_the_controller() {
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

    // By the clock of the controller it is just near enough, by the clock of the slow agent it is not yet.
    cluster.pass(60 * HOUR);
    cluster.start(nodes(), -3 * MINUTE);
    let third = cluster.renew(72 * HOUR);
    assert_eq!(cluster.phase(), "Active");
    cluster.until("the second renewal", |agent| {
        let ends = if agent.ahead < 0 { second } else { third };
        agent.ends() == Some(ends)
    });
    cluster.pass(4 * MINUTE);
    // It judges again when anything comes; the next bookmark would do as well.
    let namespace = Namespace::new();
    namespace.apply(&service("bell", &[])).unwrap();
    cluster.until("the slow agent", |agent| agent.ends() == Some(third));
    cluster.start(map(), -MINUTE);
    cluster.until("the youngest agent", |agent| agent.ends() == Some(third));
    assert_eq!(cluster.phase(), "Active");

    cluster.pass(73 * HOUR);
    assert_eq!(cluster.phase(), "Expired");
    ok(&["delete", "tdrain", DRAIN]);
    cluster.until("its end", |agent| agent.ends().is_none());
}
