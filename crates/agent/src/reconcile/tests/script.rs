//! Helpers that describe a cluster in few words and run the loop without files.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use cluster::event::{Batch, Completeness, Event};
use cluster::object::Object;
use dataplane::crash_point::CrashPoint;
use dataplane::infrastructure::NodeNetwork;
use dataplane::ipvs::IpvsTimeouts;
use dataplane::routes::address_monitor::RemovedAddresses;
use dataplane::sysctl::ConntrackSettings;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use topology_core::hints::HintMode;
use topology_core::model::{
    Endpoint, EndpointSlice, Family, Faults, Frontend, Labels, Node, NodePortAddresses, ObjectName,
    Protocol, Service, ServicePort, SlicePort, TrafficPolicy,
};
use topology_core::scheduler::Scheduler;
use topology_core::snapshot::MarkMask;

use super::fake::{Shared, World};
use crate::agent_config::{AgentConfig, DetectLocal, Estimation, StrictArp};
use crate::endpoint_connections::EndpointConnections;
use crate::metrics::Metrics;
use crate::reconcile::{InfrastructureChanges, Parts, Reconciler};
use crate::state;

/// One loop over a world.
pub(super) struct Loop {
    pub(super) reconciler: Reconciler<Shared, Shared>,
    pub(super) shared: Shared,
    pub(super) handle: state::AgentHandle,
    /// The queries through the handle, for a loop that runs.
    pub(super) queries: mpsc::Receiver<state::Query>,
    pub(super) network: watch::Sender<NodeNetwork>,
    /// Where the watches are connected to.
    pub(super) peers: watch::Sender<Vec<SocketAddr>>,
    pub(super) connections: EndpointConnections,
}

impl Loop {
    /// A new loop without input.
    pub(super) fn over(shared: &Shared) -> Self {
        Self::with(shared, |_| {})
    }

    pub(super) fn with(shared: &Shared, change: impl FnOnce(&mut AgentConfig)) -> Self {
        let (handle, ends) = state::channel();
        let mut config = AgentConfig {
            mapped: false,
            node: "n1".into(),
            service_cidrs: vec!["10.96.0.0/12".parse().unwrap()],
            node_ips: Vec::new(),
            cluster_cidrs: Vec::new(),
            strict_arp: StrictArp::default(),
            estimation: Estimation::default(),
            ipvs_timeouts: IpvsTimeouts::default(),
            conntrack: ConntrackSettings::default(),
            detect_local: DetectLocal::default(),
            masquerade_all: false,
            node_port_addresses: NodePortAddresses::default(),
            mark_mask: MarkMask::default(),
            scheduler: Scheduler::default(),
            check_period: Duration::from_secs(60),
            drain_timeout: Duration::from_secs(900),
            state_dir: PathBuf::new(),
            ports: BTreeSet::new(),
            sysctl_dir: PathBuf::new(),
            adopt: false,
            crash_after: None,
        };
        change(&mut config);
        let booted = *(shared.0.borrow_mut().booted).get_or_insert_with(Instant::now);
        // The batch of the previous process ended with it.
        shared.0.borrow_mut().forgetting = None;
        shared.0.borrow_mut().known_routes.clear();
        let network = watch::Sender::new(NodeNetwork::default());
        let peers = watch::Sender::new(Vec::new());
        let infrastructure = InfrastructureChanges {
            network: network.subscribe(),
            api_servers: Some(peers.subscribe()),
        };
        let parts = Parts {
            kernel: shared.clone(),
            host: shared.clone(),
            infrastructure,
            endpoint_connections: ends.endpoint_connections.clone(),
            ours: shared.0.borrow().record.iter().copied().collect(),
            deadlines: shared.0.borrow().saved_deadlines(),
            marks: shared.0.borrow().saved_marks(),
            epoch: booted,
            metrics: Metrics::new(),
            pulse: ends.pulse,
            health_ports: ends.health_ports,
            loopback_ports: ends.loopback_ports,
            crash_point: Arc::new(CrashPoint::new(None)),
        };
        let shared = Shared(Rc::clone(&shared.0));
        Self {
            reconciler: Reconciler::new(config, parts),
            shared,
            handle,
            queries: ends.queries,
            network,
            peers,
            connections: ends.endpoint_connections,
        }
    }

    /// Reads the kernel's table, as during the first list of the cluster.
    pub(super) async fn read_kernel(&mut self) {
        while self.reconciler.initial_read.is_partly_read() {
            self.reconciler.read_on().await;
        }
    }

    /// Sends all objects of the cluster and starts.
    pub(super) async fn start(&mut self, objects: Vec<Object>) {
        self.start_with(objects, Completeness::Whole).await;
    }

    pub(super) async fn start_with(&mut self, objects: Vec<Object>, completeness: Completeness) {
        self.say(Event::Begin);
        for object in objects {
            self.say(Event::Apply(object));
        }
        self.say(Event::Complete(completeness));
        self.reconciler.start().await;
        self.reconciler.publish();
    }

    /// Sends one event without a pass.
    pub(super) fn say(&mut self, event: Event) {
        self.reconciler.absorb(Batch {
            events: vec![event],
            reports: Vec::new(),
        });
    }

    /// Sends changes and runs a pass.
    pub(super) async fn apply(&mut self, objects: impl IntoIterator<Item = Object>) {
        for object in objects {
            self.say(Event::Apply(object));
        }
        self.reconciler.pass_dirty().await;
        self.reconciler.publish();
    }

    pub(super) async fn delete(&mut self, object: &Object) {
        self.say(Event::Delete(object.key()));
        self.reconciler.pass_dirty().await;
        self.reconciler.publish();
    }

    /// Moves time forward and does what is due, until nothing is.
    pub(super) async fn settle(&mut self, for_milliseconds: u64) {
        let until = self.reconciler.now() + for_milliseconds;
        while let Some(due) = self.reconciler.agenda.next().filter(|due| *due <= until) {
            let wait = due.saturating_sub(self.reconciler.now());
            tokio::time::advance(Duration::from_millis(wait)).await;
            self.reconciler.handle_due().await;
            self.reconciler.publish();
        }
    }

    /// One whole periodic comparison.
    pub(super) async fn check(&mut self) {
        self.reconciler.begin_check().await;
        while self.reconciler.check.is_running() {
            self.reconciler.check_on().await;
        }
        self.settle(100).await;
        self.reconciler.publish();
    }

    /// The journal since the last call.
    pub(super) fn journal(&self) -> Vec<String> {
        std::mem::take(&mut self.world().journal)
    }

    pub(super) fn world(&self) -> std::cell::RefMut<'_, World> {
        self.shared.0.borrow_mut()
    }

    pub(super) fn save(&self) -> Vec<String> {
        self.world().save()
    }
}

/// A notification about new addresses.
pub(super) fn added() -> RemovedAddresses {
    RemovedAddresses::These(BTreeSet::new())
}

/// A Service in the namespace `t`; ports as `80/TCP`.
pub(super) fn service(name: &str, ip: &str, ports: &[&str]) -> Object {
    Object::Service(Service {
        labels: Labels::default(),
        named_policy: None,
        faults: Faults::None,
        name: ObjectName::new("t", name),
        created: None,
        frontends: vec![Frontend::cluster_ip(ip.parse().unwrap())],
        ports: ports.iter().map(|text| service_port(text)).collect(),
        session_affinity: None,
        internal_traffic_policy: TrafficPolicy::Cluster,
        external_traffic_policy: TrafficPolicy::Cluster,
        source_ranges: None,
        health_check_node_port: None,
        policy: None,
        topology_keys: None,
        hint_mode: HintMode::Nothing,
        external_name: None,
        publish_not_ready_addresses: false,
        unprogrammed: Vec::new(),
    })
}

/// Its endpoints, as `10.244.1.1@n1`, at the same ports.
pub(super) fn slice(service: &str, ports: &[&str], endpoints: &[&str]) -> Object {
    let slice_port = |text: &&str| {
        let ServicePort {
            name,
            protocol,
            port,
            ..
        } = service_port(text);
        SlicePort {
            name,
            protocol,
            port,
        }
    };
    Object::EndpointSlice(EndpointSlice {
        name: ObjectName::new("t", format!("{service}-1")),
        service: service.into(),
        family: Family::V4,
        ports: ports.iter().map(slice_port).collect(),
        endpoints: endpoints.iter().map(|text| endpoint(text)).collect(),
        hostnames: std::collections::BTreeMap::default(),
    })
}

pub(super) fn node(name: &str, address: &str) -> Object {
    Object::Node(Node {
        addresses: vec![address.parse().unwrap()],
        ..Node::new(name)
    })
}

fn service_port(text: &str) -> ServicePort {
    let (port, protocol) = text.split_once('/').unwrap();
    let protocol = match protocol {
        "UDP" => Protocol::Udp,
        _ => Protocol::Tcp,
    };
    let name = text.to_lowercase().replace('/', "-");
    ServicePort::new(name, protocol, port.parse().unwrap())
}

fn endpoint(text: &str) -> Endpoint {
    let (address, node) = text.split_once('@').unwrap();
    Endpoint {
        address: address.parse().unwrap(),
        node: Some(node.into()),
        zone: None,
        ready: true,
        serving: true,
        terminating: false,
        hints: None,
    }
}
