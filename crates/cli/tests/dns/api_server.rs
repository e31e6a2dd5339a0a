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

fn event(event_type: &str, object: &Value) -> String {
    format!("{}\n", json!({"type": event_type, "object": object}))
}

impl ApiServer {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let world = Arc::<Mutex<World>>::default();
        let shared = Arc::clone(&world);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let world = Arc::clone(&shared);
                std::thread::spawn(move || serve(stream, &world));
            }
        });
        Self { url, world }
    }
}

/// Answers one request: the list as events, and then a watch that stays open.
fn serve(mut stream: TcpStream, world: &Mutex<World>) {
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
    let server = ApiServer::start();
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("config");
    let config = json!({
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c"}}],
        "clusters": [{"name": "c", "cluster": {"server": server.url}}],
    });
    std::fs::write(&kubeconfig, config.to_string()).unwrap();
    let path = kubeconfig.to_str().unwrap().to_owned();
    let options = [&METRICS[..], &["--kubeconfig", &path]].concat();
    let program = Program::start(folder, &options);
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
