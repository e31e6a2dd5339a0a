//! Bad days on the way to the real API server: busy, broken, certificates and clocks. What an operator reads, and that
//! it ends by itself when the cause does.

use std::process::Command;
use std::time::{Duration, Instant};

use cluster::api::Phase;
use kube_io::{Access, Connection, Patch};
use serde_json::{Value, json};

use crate::follower::Follower;
use crate::following::create;
use crate::gate::{Gate, Proxy};
use crate::kubectl::{Namespace, installed, server, variable};

/// Writes a certificate of the control plane's authority. Its files' name without their endings.
fn certify(name: &str, more: &[&str]) -> String {
    let folder = variable("CONTROLPLANE_FOLDER");
    let status = Command::new(variable("CONTROLPLANE_PROGRAM"))
        .args(["certify", "--folder", &folder, "--name", name])
        .args(more)
        .status()
        .unwrap();
    assert!(status.success());
    format!("{folder}/{name}")
}

/// A user of the administrators' group, known by a certificate.
pub(crate) fn user(name: &str, begins: &str, ends: &str) -> Value {
    let who = ["--user", name, "--group", "system:masters"];
    let when = ["--begins", begins, "--ends", ends];
    let files = certify(name, &[who, when].concat());
    json!({"client-certificate": format!("{files}.crt"), "client-key": format!("{files}.key")})
}

/// Somebody who comes through a gate, and knows a Service of the namespace.
struct Behind {
    gate: Gate,
    follower: Follower,
    _proxy: Proxy,
    _folder: tempfile::TempDir,
}

impl Behind {
    fn new(name: &str, namespace: &str) -> Self {
        installed();
        let proxy = Proxy::start(&variable("KUBECONFIG"));
        let gate = Gate::before(&proxy.address);
        let folder = tempfile::tempdir().unwrap();
        let mut follower = Follower::new(name, &gate.kubeconfig(folder.path()));
        create(namespace, "a");
        follower.until_whole();
        follower.until_service(namespace, "a");
        Self {
            gate,
            follower,
            _proxy: proxy,
            _folder: folder,
        }
    }

    /// Opens the gate: what was written meanwhile arrives, and nothing was lost.
    fn recovers(&mut self, namespace: &str) {
        create(namespace, "b");
        self.gate.open();
        self.follower.until_service(namespace, "b");
        assert_eq!(self.follower.state("services").error, None);
        self.follower.assert_nothing_gone(namespace);
    }
}

#[test]
fn a_minute_of_a_busy_and_of_a_broken_server_costs_few_requests_and_removes_nothing() {
    /// Collections that are read.
    const COLLECTIONS: usize = 8;
    let namespaces = [Namespace::new(), Namespace::new()];
    let [mut busy, mut broken] =
        [("busy", 0), ("broken", 1)].map(|(name, at)| Behind::new(name, &namespaces[at].0));
    let retry = "retry-after: 2\r\n";
    busy.gate.answer("", 429, retry, "too many of you");
    broken.gate.answer("", 503, "", "etcd is away");
    let began = Instant::now();
    let follower = &mut busy.follower;
    follower.until_warned(&["services: TooManyRequests (429): too many of you"]);
    let follower = &mut broken.follower;
    follower.until_warned(&["services: Unavailable (503): etcd is away"]);
    for second in 1..=60 {
        for one in [&mut busy, &mut broken] {
            one.follower.until("the next second", |_| {
                (began.elapsed() >= Duration::from_secs(second)).then_some(())
            });
            assert_eq!(one.follower.state("services").phase, Phase::Stale);
        }
    }
    // Each at once, and again after waits of at least 0.4, 0.8, 1.6, 3.2, 6.4 and then 10 s: ten times, and an eleventh
    // if this took longer. The longest waits are three times that: five times at least, of the seven collections that
    // are always read. Two seconds that a server asks for make none of these counts larger.
    let rare = 7 * 5..=COLLECTIONS * 11;
    for one in [&busy, &broken] {
        let asked = one.gate.answered();
        assert!(rare.contains(&asked), "{asked} in a minute");
    }
    busy.recovers(&namespaces[0].0);
    broken.recovers(&namespaces[1].0);
}

#[test]
fn d13_a_server_that_has_lost_all_services_and_slices_for_a_while_removes_none() {
    for (collection, name) in [
        ("/services?", "services"),
        ("/endpointslices?", "endpointslices.discovery.k8s.io"),
    ] {
        let namespace = Namespace::new();
        let mut behind = Behind::new(name, &namespace.0);
        behind.follower.until("a slice", |me| {
            (me.index.snapshot().slice_names().next().is_some()).then_some(())
        });
        behind.gate.loses(collection);
        let lacks = format!("the last list of {name} lacks");
        behind.follower.until_warned(&[&lacks]);
        assert!(behind.follower.state(name).doubted > 0);
        behind.gate.open();
        behind.follower.until("the end of the doubt", |me| {
            (me.state(name).doubted == 0).then_some(())
        });
        behind.follower.assert_nothing_gone(&namespace.0);
    }
}

#[test]
fn a_certificate_that_is_not_valid_yet_or_no_longer_is_told_and_its_successor_is_taken() {
    installed();
    let namespace = Namespace::new();
    let gate = Gate::before(server().trim_start_matches("https://"));
    let address = format!("https://{}", gate.address());
    let words = [
        "services: Unauthorized (401)",
        "expired",
        "a clock is wrong",
    ];
    // For the server the one's clock is ahead, and the other's certificate ends soon.
    let names = ["early", "late"].map(|name| format!("{name}-{}", namespace.0));
    let mut early = Follower::at(&address, "early", &user(&names[0], "10s", "1h"));
    let mut late = Follower::at(&address, "late", &user(&names[1], "-1h", "20s"));
    let end = Instant::now() + Duration::from_secs(21);
    create(&namespace.0, "a");
    late.until_whole();
    late.until_service(&namespace.0, "a");
    early.until_warned(&words);
    early.until_whole();
    std::thread::sleep(end.saturating_duration_since(Instant::now()));
    // What is open stays open; the next connection is refused.
    gate.cut();
    late.until_warned(&words);
    assert_eq!(late.state("services").phase, Phase::Stale);

    user(&names[1], "-1h", "1h");
    create(&namespace.0, "b");
    late.until_service(&namespace.0, "b");
    late.until_untroubled();
    late.assert_nothing_gone(&namespace.0);
}

/// A slice with one endpoint.
fn slice(address: &str, ready: bool) -> Value {
    json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": {"name": "flapping", "labels": {"kubernetes.io/service-name": "a"}},
        "ports": [{"name": "", "protocol": "TCP", "port": 80}],
        "endpoints": [{"addresses": [address], "conditions": {"ready": ready}}],
    })
}

/// Changes a slice so often, and ends with another address.
async fn flap(namespace: &str, times: usize) {
    let access = Access::kubeconfig(variable("KUBECONFIG").as_ref(), "tests");
    let api = Connection::open(&access).await.unwrap();
    let path = format!("/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices");
    api.create(&path, &slice("10.244.1.1", true)).await.unwrap();
    let path = format!("{path}/flapping");
    for time in 1..=times {
        let address = if time < times {
            "10.244.1.1"
        } else {
            "10.244.1.2"
        };
        let change = json!({"endpoints": slice(address, time % 2 == 0)["endpoints"]});
        api.patch(&path, Patch::Merge, &change).await.unwrap();
    }
}

#[test]
fn a_slice_that_changes_a_thousand_times_costs_no_request() {
    const SLICES: &str = "endpointslices.discovery.k8s.io";
    let namespace = Namespace::new();
    let mut follower = Follower::administrator();
    follower.until_whole();
    let written = namespace.0.clone();
    let flapping = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_all().build().unwrap();
        runtime.block_on(flap(&written, 1000));
    });
    let service = topology_core::model::ObjectName::new(&*namespace.0, "a");
    // Before 1.34 the watch is a request of its own, after those for the list.
    follower.until("the watch", |me| {
        me.index.snapshot().slices(&service).first().map(drop)
    });
    let before = follower.requests(SLICES);
    follower.until("the last change", |me| {
        let slices = me.index.snapshot().slices(&service);
        let endpoint = slices.first()?.endpoints.first()?;
        (endpoint.address.to_string() == "10.244.1.2" && endpoint.ready).then_some(())
    });
    flapping.join().unwrap();
    assert_eq!(follower.requests(SLICES), before);
}

mod alone {
    //! New connections of everybody else are refused meanwhile.

    use super::{Follower, Phase, certify, variable};
    use crate::kubectl::{eventually, kubectl};

    /// What the API server shows its clients; put back in the end.
    struct Serving([(String, Vec<u8>); 2]);

    impl Serving {
        fn new() -> Self {
            Self(["key", "crt"].map(|ending| {
                let path = format!("{}/apiserver.{ending}", variable("CONTROLPLANE_FOLDER"));
                let bytes = std::fs::read(&path).unwrap();
                (path, bytes)
            }))
        }
    }

    impl Drop for Serving {
        fn drop(&mut self) {
            for (path, bytes) in &self.0 {
                drop(std::fs::write(path, bytes));
            }
        }
    }

    #[test]
    fn a_server_whose_clock_differs_by_an_hour_is_named_and_who_follows_goes_on() {
        let mut running = Follower::administrator();
        running.until_whole();
        let serving = Serving::new();
        let mut starting = Vec::new();
        for (begins, ends, told, remedy) in [
            ("1h", "2h", "not valid yet", "; check this machine's clock"),
            (
                "-2h",
                "-1h",
                "expired",
                "renew the certificate, and check this machine's clock",
            ),
        ] {
            let when = ["--begins", begins, "--ends", ends];
            certify(
                "apiserver",
                &[&["--address", "127.0.0.1"], &when[..]].concat(),
            );
            eventually("the refusal of its certificate", || {
                let refused = kubectl(&["get", "--raw=/readyz"]).err()?;
                let is_it = if begins == "1h" {
                    "is before"
                } else {
                    "is after"
                };
                refused.contains(is_it).then_some(())
            });
            let mut one = Follower::administrator();
            one.until_warned(&["services: Certificate: ", told, remedy]);
            assert_eq!(one.state("services").phase, Phase::Listing);
            starting.push(one);
        }
        running.until("another look", |me| {
            (me.state("services").phase == Phase::Following).then_some(())
        });
        drop(serving);
        for one in &mut starting {
            one.until_whole();
            one.until_untroubled();
        }
        eventually("the server", || kubectl(&["get", "--raw=/readyz"]).ok());
    }
}
