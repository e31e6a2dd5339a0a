//! A real announcer: `MetalLB` in layer 2 mode attracts the traffic of a load balancer address to one node, with the
//! agents as the only node proxy.

use std::collections::BTreeSet;
use std::time::Instant;

use crate::cluster::{
    NODES, Namespace, address_of, install, on_node, print_duration, wait_until_served,
};
use crate::metallb::{self, MetalLb, TaintedNode};
use crate::outsider::{self, ArpClient, PeerAnswer};

/// A Service, and the nodes of its pods.
const SERVICE: &str = "announced";
const WITH_POD: [&str; 2] = ["n1", "n2"];

/// A Service that `MetalLB` announces, and a client.
struct Announcement {
    metallb: MetalLb,
    namespace: Namespace,
    arp: ArpClient,
    address: String,
}

impl Announcement {
    fn start() -> Self {
        install();
        let metallb = MetalLb::install();
        let namespace = Namespace::new();
        let objects =
            include_str!("metallb/announced.yaml").replace("VERSION", env!("CARGO_PKG_VERSION"));
        namespace.apply(&objects);
        let rollout = ["rollout", "status", "daemonset/announced"];
        namespace.kubectl(&[&rollout[..], &["--timeout=180s"]].concat());
        let address = metallb::wait_for("MetalLB assigns no address", || {
            let ingress = "-o=jsonpath={.status.loadBalancer.ingress[0].ip}";
            let address = namespace.kubectl(&["get", "service", SERVICE, ingress]);
            let is_assigned = !address.is_empty();
            is_assigned.then_some(address).ok_or_else(String::new)
        });
        // Any of them could have the traffic.
        wait_until_served(&format!("{address}:80"));
        Self {
            metallb,
            namespace,
            arp: ArpClient::new(),
            address,
        }
    }

    /// Waits until `MetalLB` announces the address on one node that `may_announce`, and no other node answers.
    fn announcer(&self, may_announce: impl Fn(&str) -> bool) -> &'static str {
        let found = metallb::wait_for("no node alone announces", || {
            let announcing = self.metallb.announcing(&self.address);
            let answering = self.answering();
            let mut nodes = announcing.iter().copied();
            match (nodes.next(), nodes.next()) {
                (Some(node), None) if may_announce(node) && answering == announcing => Ok(node),
                _ => Err(format!("{announcing:?} announce, {answering:?} answer")),
            }
        });
        assert_eq!(self.answering(), BTreeSet::from([found]));
        found
    }

    fn answering(&self) -> BTreeSet<&'static str> {
        self.arp.answering(&self.address)
    }

    /// Waits until ten connections are answered as `expected`, and repeats them.
    fn connects(&self, what: &str, expected: impl Fn(&[PeerAnswer]) -> bool) {
        let connect = || outsider::connect(&self.address);
        metallb::wait_for(what, || {
            let answers = connect();
            let is_expected = expected(&answers);
            is_expected.then_some(()).ok_or(format!("{answers:?}"))
        });
        let answers = connect();
        assert!(expected(&answers), "{what}: {answers:?}");
    }

    /// Every connection ends at the pod of `node`, which sees the client's own address.
    fn connects_only_to(&self, node: &str) {
        self.connects("not only the announcing node's pod answers", |answers| {
            let is_kept =
                |answer: &PeerAnswer| answer.node == node && answer.client == outsider::ADDRESS;
            answers.len() == 10 && answers.iter().all(is_kept)
        });
    }

    /// Both pods answer. That of another node than `announcer` sees the announcing node's address.
    fn connects_through(&self, announcer: &str) {
        let address = address_of(announcer);
        self.connects("no traffic through the announcing node", |answers| {
            let nodes: BTreeSet<_> = answers.iter().map(|answer| &*answer.node).collect();
            let is_through =
                |answer: &PeerAnswer| answer.node == announcer || answer.client == address;
            nodes == BTreeSet::from(WITH_POD) && answers.iter().all(is_through)
        });
    }
}

/// Plays a scene, and prints its duration.
fn scene<T>(name: &str, play: impl FnOnce() -> T) -> T {
    let began = Instant::now();
    let result = play();
    print_duration(name, began);
    result
}

#[test]
fn alone_only_the_node_that_metallb_elects_answers_arp_and_has_the_traffic() {
    let announcement = scene("the start of MetalLB and a Service", Announcement::start);
    scene("each node answers for its own address", || {
        for node in NODES {
            let answering = announcement.arp.answering(&address_of(node));
            assert_eq!(answering, BTreeSet::from([node]));
        }
    });
    scene("externalTrafficPolicy: Cluster", || {
        let announcer = announcement.announcer(|_| true);
        announcement.connects_through(announcer);
    });
    let announcer = scene("externalTrafficPolicy: Local", || {
        let local = r#"{"spec": {"externalTrafficPolicy": "Local"}}"#;
        let patch = ["patch", "service", SERVICE, "--patch", local];
        announcement.namespace.kubectl(&patch);
        let announcer = announcement.announcer(|node| WITH_POD.contains(&node));
        announcement.connects_only_to(announcer);
        announcer
    });
    scene("the announcing speaker is deleted", || {
        let _away = TaintedNode::new(announcer);
        metallb::delete_speaker(announcer);
        let next = announcement.announcer(|node| node != announcer);
        announcement.connects_only_to(next);
    });
    scene("the agents' ARP chains are deleted and return", || {
        every_node_answers_without_the_agents_chain(&announcement);
    });
}

/// The agents write it again in their next periodic check.
fn every_node_answers_without_the_agents_chain(announcement: &Announcement) {
    metallb::wait_for("a node is silent without the chain", || {
        for node in NODES {
            on_node(node, "nft delete table arp ipvs-topo 2>/dev/null || true");
        }
        let answering = announcement.answering();
        let is_expected = answering == BTreeSet::from(NODES);
        is_expected
            .then_some(())
            .ok_or(format!("{answering:?} answer"))
    });
    announcement.announcer(|_| true);
}
