//! The program reads the cluster from an API server, here a small stand-in.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hickory_proto::rr::RecordType;
use serde_json::{Value, json};

use crate::client::{CART, N1, N2, answers, over_udp, query};
use crate::program::{PATIENCE, Program};
use crate::scrape::{METRICS, Scrape};

const NODES: &str = "/api/v1/nodes";
const SERVICES: &str = "/api/v1/services";
const SLICES: &str = "/apis/discovery.k8s.io/v1/endpointslices";
const MAPS: &str = "/apis/topology.ipvs-topo.io/v1alpha1/topologymaps";

/// The objects at a path; `None` if the server does not know it.
type ServedObjects = fn(&str) -> Option<Vec<Value>>;

#[derive(Default)]
struct World {
    /// The requests, with their queries.
    seen: Vec<String>,
    /// The open watch of slices.
    slices: Option<TcpStream>,
}

struct ApiServer {
    url: String,
    world: Arc<Mutex<World>>,
}

fn node(name: &str, zone: &str, range: &str) -> Value {
    json!({
        "metadata": {"name": name, "labels": {"topology.kubernetes.io/zone": zone}},
        "spec": {"podCIDRs": [range]},
    })
}

fn slice(version: u64, addresses: &[(&str, &str)]) -> Value {
    let endpoints = addresses
        .iter()
        .map(|(address, node)| json!({"addresses": [address], "nodeName": node}));
    json!({
        "metadata": {
            "name": "cart-1", "namespace": "shop", "resourceVersion": version.to_string(),
            "labels": {"kubernetes.io/service-name": "cart", "service.kubernetes.io/headless": ""},
        },
        "addressType": "IPv4",
        "ports": [{"name": "http", "port": 8080}],
        "endpoints": endpoints.collect::<Vec<_>>(),
    })
}

fn objects(path: &str) -> Option<Vec<Value>> {
    match path {
        NODES => Some(vec![
            node("n1", "a", "127.0.1.0/24"),
            node("n2", "b", "127.0.2.0/24"),
        ]),
        SERVICES => Some(vec![json!({
            "metadata": {"name": "cart", "namespace": "shop", "annotations": {"topology.ipvs-topo.io/keys": "zone,*"}},
            "spec": {"clusterIP": "None", "clusterIPs": ["None"], "ports": [{"name": "http", "port": 80}]},
        })]),
        SLICES => {
            let both = [("10.244.1.10", "n1"), ("10.244.2.10", "n2")];
            Some(vec![slice(2, &both)])
        }
        _ => None,
    }
}

/// The server has the other Node only in the map.
fn mapped_objects(path: &str) -> Option<Vec<Value>> {
    match path {
        NODES => Some(vec![node("n1", "a", "127.0.1.0/24")]),
        MAPS => Some(vec![json!({
            "metadata": {"name": "shard-0"},
            "spec": {
                "shard": 0,
                "keys": [
                    "topology.kubernetes.io/zone",
                    "topology.kubernetes.io/region",
                    "topology.ipvs-topo.io/capacity",
                ],
                "nodes": {
                    "n1": {"v": ["a", "", ""], "podCIDRs": ["127.0.1.0/24"], "ready": true},
                    "n2": {"v": ["b", "", ""], "podCIDRs": ["127.0.2.0/24", "fd00:2::/64"], "ready": true},
                },
            },
        })]),
        other => objects(other),
    }
}

fn event(event_type: &str, object: &Value) -> String {
    format!("{}\n", json!({"type": event_type, "object": object}))
}

impl ApiServer {
    fn start(objects: ServedObjects) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let world = Arc::<Mutex<World>>::default();
        let shared = Arc::clone(&world);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let world = Arc::clone(&shared);
                std::thread::spawn(move || serve(stream, objects, &world));
            }
        });
        Self { url, world }
    }

    /// Starts the program with these options, and waits until it has read the cluster.
    fn program(&self, options: &[&str]) -> Program {
        let folder = tempfile::tempdir().unwrap();
        let kubeconfig = folder.path().join("config");
        let config = json!({
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "c"}}],
            "clusters": [{"name": "c", "cluster": {"server": self.url}}],
        });
        std::fs::write(&kubeconfig, config.to_string()).unwrap();
        let path = kubeconfig.to_str().unwrap().to_owned();
        Program::start(folder, &[options, &["--kubeconfig", &path]].concat())
    }

    /// The requests for a collection.
    fn requests(&self, path: &str) -> Vec<String> {
        let world = self.world.lock().unwrap();
        let seen = world.seen.iter();
        seen.filter(|target| target.split('?').next() == Some(path))
            .cloned()
            .collect()
    }
}

/// Answers one request: the list as events, and then a watch that stays open.
fn serve(mut stream: TcpStream, objects: ServedObjects, world: &Mutex<World>) {
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    let Some(Ok(request)) = lines.next() else {
        return;
    };
    let target = request.split(' ').nth(1).unwrap().to_owned();
    lines.map_while(Result::ok).find(String::is_empty);
    let path = target.split('?').next().unwrap().to_owned();
    let mut world = world.lock().unwrap();
    world.seen.push(target);
    let Some(objects) = objects(&path) else {
        let body = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        drop(stream.write_all(body.as_bytes()));
        return;
    };
    let mut text =
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n".to_owned();
    for object in &objects {
        text += &event("ADDED", object);
    }
    let end = json!({"resourceVersion": "2", "annotations": {"k8s.io/initial-events-end": "true"}});
    text += &event("BOOKMARK", &json!({"metadata": end}));
    stream.write_all(text.as_bytes()).unwrap();
    if path == SLICES {
        world.slices = Some(stream);
    } else {
        // Held open until the test ends.
        std::mem::forget(stream);
    }
}

#[test]
fn headless_services_of_an_api_server_are_answered_and_followed() {
    let server = ApiServer::start(objects);
    let program = server.program(&METRICS);
    program.line_with("the cluster is read: 1 Services");
    let question = query(CART, RecordType::A);
    let ask = |client| answers(&over_udp(client, program.address, &question));
    assert_eq!(ask(N1), ["10.244.1.10"]);
    assert_eq!(ask(N2), ["10.244.2.10"]);

    let metrics = Scrape::of(&program);
    let behind = metrics.series("ipvs_topo_api_behind");
    assert!(behind.contains(&"input=\"services\"} 0"), "{behind:?}");
    let host = server.url.strip_prefix("http://").unwrap();
    let lists =
        format!("rest_client_requests_total{{code=\"200\",method=\"GET\",host=\"{host}\"}}");
    assert_eq!(metrics.value(&lists), "3");

    let changed = event("MODIFIED", &slice(3, &[("10.244.1.11", "n1")]));
    let mut world = server.world.lock().unwrap();
    let stream = world.slices.as_mut().unwrap();
    stream.write_all(changed.as_bytes()).unwrap();
    let sent = Instant::now();
    while ask(N2) != ["10.244.1.11"] {
        assert!(sent.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(
        world
            .seen
            .iter()
            .all(|target| !target.contains("labelSelector")),
        "{:?}",
        world.seen
    );
}

#[test]
fn a_client_of_the_pod_range_of_another_node_is_placed_by_the_map() {
    let server = ApiServer::start(mapped_objects);
    let program = server.program(&["--node-source", "map"]);
    program.line_with("the cluster is read: 1 Services");
    let question = query(CART, RecordType::A);
    let ask = |client| answers(&over_udp(client, program.address, &question));
    assert_eq!(ask(N1), ["10.244.1.10"]);
    assert_eq!(ask(N2), ["10.244.2.10"]);
    let nodes = server.requests(NODES);
    assert!(
        nodes
            .iter()
            .all(|request| request.contains("fieldSelector=metadata.name%3Dn1")),
        "{nodes:?}"
    );
    assert_eq!(server.requests(MAPS).len(), 1);
    assert_eq!(program.more_lines(), [""; 0]);
}

#[test]
fn without_a_map_the_nodes_are_read_and_the_log_says_so() {
    let server = ApiServer::start(objects);
    let program = server.program(&["--node-source", "map"]);
    let warning = program.line_with("cannot replace the Nodes");
    assert!(
        warning.contains("there is no TopologyMap; until it can, all Nodes are read"),
        "{warning}"
    );
    let question = query(CART, RecordType::A);
    let ask = |client| answers(&over_udp(client, program.address, &question));
    let started = Instant::now();
    while ask(N2) != ["10.244.2.10"] {
        assert!(started.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(ask(N1), ["10.244.1.10"]);
    let nodes = server.requests(NODES);
    assert!(
        nodes
            .iter()
            .any(|request| !request.contains("fieldSelector")),
        "{nodes:?}"
    );
}
