//! Measures what the agents of a large cluster write together if many policies change all the time.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use crd::MIN_REPORT_BYTES;
use crd::topology_agent::AgentStatus;
use topology_core::model::{Enforcement, Node, ObjectName, PolicyName, Selector, TopologyPolicy};
use topology_core::policy::{Mode, Policy, PolicySource};
use topology_core::snapshot::Snapshot;

use super::aggregate::Aggregate;
use super::compare::difference;
use super::contribution::Contribution;
use super::rate_limit::{RateLimit, ReportLoad};

const NODES: u64 = 5000;
/// The number of agents that are simulated; the others behave in the same way.
const AGENTS: u64 = 5;
const POLICIES: usize = 600;
const STEP: Duration = Duration::from_secs(6);

fn policy(id: &PolicyName, generation: u64) -> TopologyPolicy {
    TopologyPolicy {
        namespace: id.namespace.clone(),
        name: id.name.clone(),
        created: None,
        generation,
        priority: 0,
        enforcement: Enforcement::Default,
        namespace_selector: Selector::default(),
        service_selector: Selector::default(),
        node_selector: Selector::default(),
        port_names: Vec::new(),
        policy: Policy::new(PolicySource::NamespacePolicy, Mode::None, Vec::new()),
        owner_limits: None,
    }
}

/// One of many policies of a namespace, with the longest possible name.
fn attacker(number: usize) -> PolicyName {
    PolicyName::namespaced("aaa", format!("{number:0>253}"))
}

/// A cluster in which each policy decides for one Service.
fn cluster(policies: &[PolicyName]) -> (Snapshot, Aggregate) {
    let (mut snapshot, mut aggregate) = (Snapshot::default(), Aggregate::default());
    for node in 0..NODES {
        snapshot.set_node(Node::new(&format!("node-{node}")));
    }
    for (number, id) in policies.iter().enumerate() {
        snapshot.set_policy(policy(id, 1));
        let contribution = Contribution {
            policies: BTreeSet::from([id.clone()]),
            ..Contribution::default()
        };
        let service = ObjectName::new("any", format!("s{number}"));
        aggregate.replace(&service, contribution, 0);
    }
    (snapshot, aggregate)
}

/// One agent, with the state of its reporter.
struct Agent {
    node: String,
    rate_limit: RateLimit,
    written: Option<AgentStatus>,
    writes: u64,
    bytes: u64,
}

impl Agent {
    fn new(number: u64) -> Self {
        let node = format!("node-{}", number * (NODES / AGENTS));
        Self {
            rate_limit: RateLimit::of(&node),
            node,
            written: None,
            writes: 0,
            bytes: 0,
        }
    }

    fn turn(&mut self, now: Duration, snapshot: &Snapshot, aggregate: &Aggregate) {
        let summary = aggregate.summarize(snapshot, 0, &self.node);
        let report = AgentStatus {
            policies: summary.policies,
            ..AgentStatus::default()
        };
        let bytes = serde_json::to_vec(&report).unwrap().len() as u64;
        let load = ReportLoad {
            nodes: summary.nodes,
            bytes,
        };
        let difference = difference(&report, self.written.as_ref());
        if self
            .rate_limit
            .due(now, difference, load)
            .is_some_and(|due| due <= now)
        {
            self.rate_limit.wrote(now);
            self.written = Some(report);
            self.writes += 1;
            self.bytes += bytes;
        }
    }

    fn generation(&self, id: &PolicyName) -> Option<u64> {
        let mut policies = self.written.as_ref()?.policies.iter();
        policies
            .find(|one| one.policy == *id)
            .map(|one| one.generation)
    }
}

/// Review H4: every agent wrote all of 512 policies twice a minute, 2 GB per minute into etcd's
/// history. The namespace with the first name left no space for others.
#[test]
fn six_hundred_policies_edited_in_turn_cost_a_bounded_rate_and_hide_no_other_namespace() {
    let mut ids: Vec<PolicyName> = (0..POLICIES).map(attacker).collect();
    let own = PolicyName::namespaced("shop", "near");
    let cluster_wide = PolicyName::cluster("all");
    ids.extend([own.clone(), cluster_wide.clone()]);
    let (mut snapshot, aggregate) = cluster(&ids);
    let mut agents: Vec<Agent> = (0..AGENTS).map(Agent::new).collect();
    let mut now = Duration::ZERO;
    for id in &ids {
        now += STEP;
        snapshot.set_policy(policy(id, 2));
        for agent in &mut agents {
            agent.turn(now, &snapshot, &aggregate);
        }
    }
    let scale = NODES / AGENTS;
    let writes: u64 = scale * agents.iter().map(|agent| agent.writes).sum::<u64>();
    let bytes: u64 = scale * agents.iter().map(|agent| agent.bytes).sum::<u64>();
    let (seconds, mib) = (now.as_secs(), bytes / (1 << 20));
    println!("{POLICIES} edits in {seconds} s: {writes} writes and {mib} MiB by {NODES} nodes");
    assert!(
        writes < 60 * seconds,
        "{} writes a second",
        writes / seconds
    );
    assert!(
        mib < 40 * seconds / 60,
        "{} MiB a minute",
        mib * 60 / seconds
    );
    // At last nothing changes any more, and every report has the last edit.
    for _ in 0..60 {
        now += STEP;
        for agent in &mut agents {
            agent.turn(now, &snapshot, &aggregate);
        }
    }
    for agent in &agents {
        let written = serde_json::to_vec(&agent.written).unwrap();
        assert!(written.len() < MIN_REPORT_BYTES, "{} bytes", written.len());
        assert_eq!(agent.generation(&own), Some(2), "on {}", agent.node);
        assert_eq!(
            agent.generation(&cluster_wide),
            Some(2),
            "on {}",
            agent.node
        );
    }
}

/// A policy that decides nothing here is in no report, so no agent writes its changes.
#[test]
fn edits_of_policies_that_decide_nothing_are_not_written() {
    let id = PolicyName::namespaced("shop", "near");
    let (mut snapshot, aggregate) = cluster(&[id]);
    let mut agent = Agent::new(1);
    for edit in 0..1000_u32 {
        let unused = attacker(usize::try_from(edit).unwrap() % POLICIES);
        snapshot.set_policy(policy(&unused, edit.into()));
        agent.turn(STEP * edit, &snapshot, &aggregate);
    }
    assert_eq!(agent.writes, 1);
    let named: Vec<&Arc<str>> = agent
        .written
        .iter()
        .flat_map(|written| &written.policies)
        .map(|one| &one.policy.name)
        .collect();
    assert_eq!(named, [&Arc::from("near")]);
}
