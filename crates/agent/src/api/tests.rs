//! Tests the API over a real socket, with a loop that answers from files and a fake kernel.

mod limits;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use agent_api::client::{self, QueryError};
use agent_api::explain::ExplainInput;
use agent_api::scope;
use agent_api::status::{StatusView, TimeoutView, TimeoutsView};
use cluster::source::{Loaded, Options, read_text};
use dataplane::ipvs::Traffic;
use serde::Serialize;
use tokio::task::JoinHandle;
use topology_core::plan::Step;
use topology_core::resolve::{Viewpoint, resolve};
use topology_core::scheduler::Scheduler;
use topology_core::snapshot::Snapshot;
use topology_core::virtual_server::VirtualServerKey;

use super::admission::Admission;
use super::*;
use crate::endpoint_connections::EndpointConnections;
use crate::node_warning::{NodeWarning, Topic};
use crate::state::{
    AgentHandle, DrainState, FamilyCounts, KernelReal, KernelServer, LoopEnds, ProgramStatus,
    Pulse, Query, ServerState, Surroundings, channel,
};

/// Two Services; the cart's endpoint on n3 terminates, the one on n2 is not in the kernel.
const CLUSTER: &str = "
{apiVersion: v1, kind: Node, metadata: {name: n1, labels: {topology.kubernetes.io/zone: a}}}
---
{apiVersion: v1, kind: Node, metadata: {name: n2, labels: {topology.kubernetes.io/zone: a}}}
---
{apiVersion: v1, kind: Node, metadata: {name: n3, labels: {topology.kubernetes.io/zone: b}}}
---
apiVersion: v1
kind: Service
metadata: {name: cart, namespace: shop, annotations: {topology.ipvs-topo.io/weights: 'node=80,*=20'}}
spec: {clusterIP: 10.96.0.10, clusterIPs: [10.96.0.10], ports: [{name: http, port: 80}]}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec:
  clusterIP: 10.96.0.11
  clusterIPs: [10.96.0.11]
  externalIPs: [198.51.100.9]
  ports: [{name: http, port: 80}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: cart-1, namespace: shop, labels: {kubernetes.io/service-name: cart}}
addressType: IPv4
ports: [{name: http, protocol: TCP, port: 8080}]
endpoints:
- {addresses: [10.244.1.2], nodeName: n1, conditions: {ready: true}}
- {addresses: [10.244.2.2], nodeName: n2, conditions: {ready: true}}
- {addresses: [10.244.3.2], nodeName: n3, conditions: {ready: false, serving: true, terminating: true}}
";

/// A Node with labels, a policy that does not decide, one that cannot be used, and a drain.
const MORE: &str = "
---
{apiVersion: v1, kind: Node, metadata: {name: n4, labels: {topology.kubernetes.io/zone: b, example.com/rack: r1}}}
---
apiVersion: topology.ipvs-topo.io/v1alpha1
kind: ClusterTopologyPolicy
metadata: {name: everywhere}
spec: {mode: None}
---
apiVersion: topology.ipvs-topo.io/v1alpha1
kind: TopologyPolicy
metadata: {name: wrong, namespace: shop}
spec: {mode: Hard, levels: [{any: true}]}
---
apiVersion: topology.ipvs-topo.io/v1alpha1
kind: TopologyDrain
metadata: {name: node-2}
spec: {match: {key: node, values: [n2]}, expiresAt: 2026-11-22T10:00:00Z}
---
apiVersion: v1
kind: Service
metadata: {name: twin, namespace: shop}
spec: {clusterIP: 10.96.0.10, clusterIPs: [10.96.0.10], ports: [{name: http, port: 80}]}
";

fn loaded(text: &str) -> Loaded {
    read_text("cluster.yaml", text.as_bytes(), &Options::default()).unwrap()
}

fn explain_input(loaded: &Loaded, name: &ObjectName) -> Option<ExplainInput> {
    let mut warnings = loaded.warnings.iter();
    ExplainInput::of(&loaded.snapshot, &mut warnings, &Viewpoint::new("n1"), name)
}

fn kernel_real(address: &str, weight: u32, drain_left: Option<u64>) -> KernelReal {
    KernelReal {
        address: address.parse().unwrap(),
        port: 8080,
        weight,
        active: 12,
        inactive: 340,
        persistent: 0,
        traffic: Some(Traffic {
            connections: 1_000,
            connections_rate: 25,
            ..Traffic::default()
        }),
        drain: drain_left.map_or(DrainState::None, |left| {
            DrainState::UntilDeadline(Duration::from_secs(left))
        }),
    }
}

/// The state of a Service in the fake kernel: the cart lacks one real server, and the web is
/// missing.
fn state(snapshot: &Snapshot, name: &ObjectName) -> Option<ServiceState> {
    let service = snapshot.service(name)?;
    let resolution = resolve(snapshot, &Viewpoint::new("n1"), name);
    let server = |wanted: topology_core::resolve::ResolvedServer| {
        let kernel = (&*name.name == "cart").then(|| KernelServer {
            key: wanted.server.key,
            scheduler: "wrr".into(),
            persistence: None,
            real_servers: vec![
                kernel_real("10.244.3.2", 0, Some(42)),
                kernel_real("10.244.1.2", 4, None),
            ],
        });
        let status = if kernel.is_some() {
            ProgramStatus::Programmed
        } else {
            let error = "ipvsadm -A -t 10.96.0.11:80 -s wrr: out of memory".to_owned();
            ProgramStatus::Failed {
                error,
                retry_in: Duration::from_secs(3),
            }
        };
        ServerState {
            wanted,
            status,
            kernel,
        }
    };
    Some(ServiceState {
        name: name.clone(),
        servers: resolution.servers.into_iter().map(server).collect(),
        findings: resolution.findings,
        unprogrammed: service.unprogrammed.clone(),
    })
}

fn surroundings() -> Surroundings {
    let key = VirtualServerKey::Address {
        protocol: topology_core::model::Protocol::Tcp,
        address: "192.0.2.1".parse().unwrap(),
        port: 443,
    };
    let foreign = KernelServer {
        key,
        scheduler: "rr".into(),
        persistence: None,
        real_servers: vec![kernel_real("10.9.9.9", 1, None)],
    };
    Surroundings {
        foreign_servers: vec![foreign],
        foreign_tables: vec!["ip keepalived".to_owned()],
        routes: vec!["local 10.96.0.0/12 dev lo table local proto 173".to_owned()],
        warnings: [NodeWarning {
            topic: Topic::Settings,
            text: "net.ipv4.ip_forward is 0; pods cannot be reached; set it to 1".to_owned(),
        }]
        .into(),
        skipped_kinds: vec![("Secret".to_owned(), 2)],
        ..Surroundings::default()
    }
}

fn pulse() -> Pulse {
    Pulse {
        ready: true,
        input_ready: true,
        v4: FamilyCounts {
            virtual_servers: 1,
            active: 1,
            draining: 1,
        },
        foreign: 1,
        waiting: 1,
        services: 2,
        endpoints: 3,
        timeouts: Some(TimeoutsView {
            tcp: TimeoutView::of(Some(900), Some(86_400)),
            tcp_fin: TimeoutView::of(Some(120), None),
            udp: TimeoutView::of(Some(300), Some(120)),
        }),
        ..Pulse::default()
    }
}

/// Answers like the loop, until all handles are dropped.
async fn answer_questions(mut ends: LoopEnds, loaded: Loaded) {
    let snapshot = &loaded.snapshot;
    ends.pulse.send_replace(pulse());
    while let Some(query) = ends.queries.recv().await {
        let sent = match query {
            Query::Service(name, to) => to.send(state(snapshot, &name)).is_ok(),
            Query::ExplainInput(name, to) => to.send(explain_input(&loaded, &name)).is_ok(),
            Query::Missing(name, to) => {
                let mut warnings = loaded.warnings.iter();
                let words = scope::missing(&name, &loaded.ignored, &mut warnings);
                to.send(words).is_ok()
            }
            Query::Services(after, limit, to) => {
                let names = snapshot.services().map(|service| &service.name);
                let mut rest = names.filter(|name| Some(*name) > after.as_ref()).peekable();
                let page = rest
                    .by_ref()
                    .take(limit)
                    .filter_map(|name| state(snapshot, name));
                let services = page.collect();
                to.send(Page {
                    services,
                    more: rest.peek().is_some(),
                })
                .is_ok()
            }
            Query::Surroundings(to) => to.send(surroundings()).is_ok(),
            Query::Plan(to) => {
                let steps = state(snapshot, &ObjectName::new("shop", "web")).map(|state| {
                    let key = state.servers.first().unwrap().wanted.server.key;
                    vec![Step::AddServer {
                        key,
                        scheduler: Scheduler::Wrr,
                        persistence: None,
                    }]
                });
                to.send(Ok(steps.unwrap_or_default())).is_ok()
            }
            Query::Overview(..) | Query::DecisionSummary(_) | Query::Ping(_) => false,
        };
        assert!(sent, "the client waits for the answer");
    }
}

fn json<T: Serialize>(view: &T) -> String {
    serde_json::to_string_pretty(view).unwrap()
}

/// A socket with the API. The server ends with the test.
async fn serve() -> (tempfile::TempDir, PathBuf, JoinHandle<()>) {
    let loaded = loaded(CLUSTER);
    assert_eq!(loaded.warnings, []);
    serve_with(loaded).await
}

async fn serve_with(loaded: Loaded) -> (tempfile::TempDir, PathBuf, JoinHandle<()>) {
    let (handle, ends) = channel();
    tokio::spawn(answer_questions(ends, loaded));
    serve_loop(handle).await
}

/// Does the same for a loop that the test answers for.
async fn serve_loop(handle: AgentHandle) -> (tempfile::TempDir, PathBuf, JoinHandle<()>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("agent.sock");
    let socket::Socket { listener, file } = socket::listen(&path).await.unwrap();
    let api = Api {
        admission: Admission::new(EndpointConnections::default()),
        handle,
        node: "n1".into(),
        source: "/etc/cluster".into(),
        sync_status: None,
        started: Instant::now(),
    };
    let server = tokio::spawn(async move {
        let _file = file;
        match super::serve(listener, api).await {}
    });
    (folder, path, server)
}

async fn status(path: &std::path::Path) -> StatusView {
    let head = client::get(path, "/v1/status").await.unwrap();
    let page: PageView = client::get(path, "/v1/services").await.unwrap();
    assert_eq!(page.next, None);
    StatusView {
        head,
        services: page.services,
    }
}

#[tokio::test]
async fn status_shows_what_the_kernel_has_beside_what_is_wanted() {
    let (_folder, path, _server) = serve().await;
    let mut view = status(&path).await;
    view.head.agent.pid = 4242;
    view.head.agent.uptime_seconds = 0;
    view.head.agent.version = "0.0.0".to_owned();
    view.head.input.last_change_seconds = Some(95);
    view.head.kernel.last_pass_seconds = Some(8);
    // The crate `cli` tests the command's text with this file.
    insta::assert_snapshot!(json(&view));
}

#[tokio::test]
async fn every_real_server_has_its_state_and_its_connections() {
    let (_folder, path, _server) = serve().await;
    let view = status(&path).await;
    let cart = view.services.virtual_servers.first().unwrap();
    let states: Vec<_> = cart
        .real_servers
        .iter()
        .map(|real| {
            let active = real.connections.map(|connections| connections.active);
            (
                real.address.to_string(),
                real.state.as_str(),
                real.weight,
                active,
                real.drain_seconds_left,
            )
        })
        .collect();
    let expected = [
        ("10.244.1.2".to_owned(), "active", 4, Some(12), None),
        ("10.244.2.2".to_owned(), "missing", 1, None, None),
        ("10.244.3.2".to_owned(), "draining", 0, Some(12), Some(42)),
    ];
    assert_eq!(states, expected);
    assert_eq!(cart.excluded, [], "a draining endpoint is shown once");
    assert_eq!(cart.real_servers[2].reason, "terminating");
}

#[tokio::test]
async fn services_are_read_page_by_page_and_by_name() {
    let (_folder, path, _server) = serve().await;
    let get = |query: &'static str| {
        let path = path.clone();
        async move { client::get::<PageView>(&path, query).await }
    };
    let first = get("/v1/services?limit=1").await.unwrap();
    assert_eq!(first.next.as_deref(), Some("shop/cart"));
    let second = get("/v1/services?after=shop/cart&limit=1").await.unwrap();
    assert_eq!(
        (
            second.services.virtual_servers[0].service.as_str(),
            second.next
        ),
        ("shop/web", None)
    );
    assert_eq!(second.services.not_programmed.len(), 1);

    let web = get("/v1/services?name=shop/web").await.unwrap();
    assert_eq!(web.services.virtual_servers.len(), 1);
    let failure = get("/v1/services?name=shop/nope").await.unwrap_err();
    assert!(matches!(failure, QueryError::NotFound(_)));
    assert!(failure.to_string().contains("shop/nope"), "{failure}");
    let unclear = get("/v1/services?name=nope").await.unwrap_err();
    assert!(matches!(unclear, QueryError::Failed(_)));
    let unknown = get("/v2/services").await.unwrap_err();
    assert!(matches!(unknown, QueryError::NotFound(_)));
}

#[tokio::test]
async fn diff_and_explain_answer_in_the_words_of_their_commands() {
    let (_folder, path, _server) = serve().await;
    let diff: DiffView = client::get(&path, "/v1/diff").await.unwrap();
    assert!(!diff.equal);
    assert_eq!(diff.steps[0].command, "ipvsadm -A -t 10.96.0.11:80 -s wrr");
    let views: Vec<ExplainView> = client::get(&path, "/v1/explain?name=shop/cart")
        .await
        .unwrap();
    insta::assert_snapshot!(json(&views[0].stages));
}

#[tokio::test]
async fn the_agent_explains_the_same_as_explain_with_files() {
    let text = format!("{CLUSTER}{MORE}");
    let (_folder, path, _server) = serve_with(loaded(&text)).await;
    let asked: Vec<ExplainView> = client::get(&path, "/v1/explain?name=shop/cart")
        .await
        .unwrap();
    let cart = ObjectName::new("shop", "cart");
    let offline = explain_input(&loaded(&text), &cart)
        .unwrap()
        .explain()
        .unwrap();
    assert_eq!(json(&asked), json(&offline));

    let [view] = asked.as_slice() else {
        panic!("{asked:?}")
    };
    let node = view.node.as_ref().unwrap();
    assert_eq!(node.labels["topology.kubernetes.io/zone"], "a");
    let changes = view.what_if.as_ref().unwrap();
    assert!(
        changes
            .iter()
            .any(|one| one.change == "without TopologyDrain node-2"),
        "{changes:?}"
    );
    let codes: Vec<&str> = view.warnings.iter().map(|one| one.code.as_str()).collect();
    assert_eq!(codes, ["PolicyInvalid"]);
    assert_eq!(view.lost.len(), 1);
}

#[tokio::test]
async fn the_api_has_the_reason_why_a_service_has_no_virtual_server() {
    let (_folder, path, _server) = serve_with(loaded(&format!("{CLUSTER}{MORE}"))).await;
    for (name, words) in [
        ("shop/twin", ["has no virtual server", "shop/cart"]),
        ("shop/nope", ["the input has no Service", "shop/nope"]),
    ] {
        let failure = client::get::<Vec<ExplainView>>(&path, &format!("/v1/explain?name={name}"))
            .await
            .unwrap_err();
        assert!(matches!(failure, QueryError::NotFound(_)));
        for word in words {
            assert!(failure.to_string().contains(word), "{failure}");
        }
    }
}

/// One Service of each kind that no proxy serves, with a topology annotation, and one that cannot
/// be used.
const UNSERVED: &str = "
---
apiVersion: v1
kind: Service
metadata: {name: headless, namespace: shop, annotations: {topology.ipvs-topo.io/keys: zone}}
spec: {clusterIP: None, ports: [{port: 80}]}
---
apiVersion: v1
kind: Service
metadata: {name: alias, namespace: shop, annotations: {topology.ipvs-topo.io/keys: zone}}
spec: {type: ExternalName, externalName: example.com}
---
apiVersion: v1
kind: Service
metadata: {name: portless, namespace: shop}
spec: {clusterIP: 10.96.0.12, ports: []}
";

#[tokio::test]
async fn the_api_explains_services_that_no_proxy_serves() {
    let (_folder, path, _server) = serve_with(loaded(&format!("{CLUSTER}{UNSERVED}"))).await;
    for (name, words) in [
        (
            "headless",
            ["is headless, so", "no effect: the Service is headless"],
        ),
        (
            "alias",
            ["is of type ExternalName, so", "remove the annotation"],
        ),
        ("portless", ["no Service shop/portless", "no usable port"]),
    ] {
        for page in ["explain", "services"] {
            let query = format!("/v1/{page}?name=shop/{name}");
            let failure = client::get::<serde_json::Value>(&path, &query).await;
            let failure = failure.unwrap_err();
            assert!(matches!(failure, QueryError::NotFound(_)));
            for word in words {
                assert!(failure.to_string().contains(word), "{query}: {failure}");
            }
        }
    }
}

#[tokio::test]
async fn without_an_agent_the_message_names_the_socket_and_the_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("agent.sock");
    let failure = client::get::<PageView>(&path, "/v1/services")
        .await
        .unwrap_err();
    assert!(matches!(failure, QueryError::Failed(_)));
    let message = failure.to_string();
    assert!(
        message.contains("agent.sock") && message.contains("ipvs-topo agent --cluster"),
        "{message}"
    );
}
