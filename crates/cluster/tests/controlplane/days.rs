//! Faults between a client and the real API server: a busy or broken server, certificates, clocks.
//! Each fault makes a warning, which ends with its cause.

use std::process::Command;
use std::time::{Duration, Instant};

use cluster::api::Phase;
use kube_io::{Access, Connection, Patch};
use serde_json::{Value, json};

use crate::follower::Follower;
use crate::following::create;
use crate::gate::{Gate, Proxy};
use crate::kubectl::{Namespace, installed, server, variable};

/// Writes a certificate of the control plane's authority; returns the path of its files without
/// their extensions.
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

/// A user in the administrators' group, with a certificate.
pub(crate) fn user(name: &str, begins: &str, ends: &str) -> Value {
    let identity = ["--user", name, "--group", "system:masters"];
    let validity = ["--begins", begins, "--ends", ends];
    let files = certify(name, &[identity, validity].concat());
    json!({"client-certificate": format!("{files}.crt"), "client-key": format!("{files}.key")})
}

/// A follower behind a gate; its index has a Service of the namespace.
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

    /// Opens the gate: the follower gets the changes since then, and nothing was deleted.
    fn recovers(&mut self, namespace: &str) {
        create(namespace, "b");
        self.gate.open();
        self.follower.until_service(namespace, "b");
        assert_eq!(self.follower.state("services").error, None);
        self.follower.assert_nothing_deleted(namespace);
    }
}

#[test]
fn a_busy_or_broken_server_gets_few_requests_and_nothing_is_deleted() {
    const COLLECTIONS: usize = 8;
    let namespaces = [Namespace::new(), Namespace::new()];
    let [mut busy, mut broken] =
        [("busy", 0), ("broken", 1)].map(|(name, at)| Behind::new(name, &namespaces[at].0));
    let retry = "retry-after: 2\r\n";
    busy.gate.answer("", 429, retry, "too many of you");
    broken.gate.answer("", 503, "", "etcd is away");
    let start = Instant::now();
    let follower = &mut busy.follower;
    follower.until_warned(&["services: TooManyRequests (429): too many of you"]);
    let follower = &mut broken.follower;
    follower.until_warned(&["services: Unavailable (503): etcd is away"]);
    for second in 1..=60 {
        for behind in [&mut busy, &mut broken] {
            behind.follower.until("the next second", |_| {
                (start.elapsed() >= Duration::from_secs(second)).then_some(())
            });
            assert_eq!(behind.follower.state("services").phase, Phase::Stale);
        }
    }
    // Each collection is requested at once, and again after at least 0.4, 0.8, 1.6, 3.2, 6.4 and
    // then 10 s: ten times, and an eleventh time if the test took longer. The longest waits are
    // three times as long, so each of the seven collections that are always read is requested at
    // least five times. `Retry-After` of 2 s does not increase these counts.
    let rare = 7 * 5..=COLLECTIONS * 11;
    for behind in [&busy, &broken] {
        let requests = behind.gate.answered();
        assert!(rare.contains(&requests), "{requests} in a minute");
    }
    busy.recovers(&namespaces[0].0);
    broken.recovers(&namespaces[1].0);
}

#[test]
fn d13_a_server_that_loses_all_services_or_slices_for_a_while_deletes_none() {
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
        behind
            .follower
            .until("the services of the last list", |me| {
                (me.state(name).doubted == 0).then_some(())
            });
        behind.follower.assert_nothing_deleted(&namespace.0);
    }
}

#[test]
fn an_early_or_expired_client_certificate_is_reported_and_its_successor_is_used() {
    installed();
    let namespace = Namespace::new();
    let gate = Gate::before(server().trim_start_matches("https://"));
    let address = format!("https://{}", gate.address());
    let words = [
        "services: Unauthorized (401)",
        "expired",
        "a clock is wrong",
    ];
    // The first certificate is not valid yet, and the second expires soon.
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
    // The server keeps open connections and refuses the next one.
    gate.cut();
    late.until_warned(&words);
    assert_eq!(late.state("services").phase, Phase::Stale);

    user(&names[1], "-1h", "1h");
    create(&namespace.0, "b");
    late.until_service(&namespace.0, "b");
    late.until_no_warnings();
    late.assert_nothing_deleted(&namespace.0);
}

fn slice(address: &str, ready: bool) -> Value {
    json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": {"name": "flapping", "labels": {"kubernetes.io/service-name": "a"}},
        "ports": [{"name": "", "protocol": "TCP", "port": 80}],
        "endpoints": [{"addresses": [address], "conditions": {"ready": ready}}],
    })
}

/// Changes a slice `times` times; the last change sets another address.
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
fn a_slice_that_changes_a_thousand_times_causes_no_request() {
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
    // Before Kubernetes 1.34 the watch is a separate request after the list.
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
    //! The server refuses the connections of all other tests meanwhile.

    use super::{Follower, Phase, certify, variable};
    use crate::kubectl::{eventually, kubectl};

    /// The certificate and key of the API server, which are restored when this is dropped.
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
    fn a_server_certificate_that_is_an_hour_off_is_reported_and_open_watches_continue() {
        let mut running = Follower::administrator();
        running.until_whole();
        let serving = Serving::new();
        let mut starting = Vec::new();
        for (begins, ends, fault, remedy) in [
            ("1h", "2h", "not valid yet", "; check this machine's clock"),
            (
                "-2h",
                "-1h",
                "expired",
                "renew the certificate, and check this machine's clock",
            ),
        ] {
            let validity = ["--begins", begins, "--ends", ends];
            certify(
                "apiserver",
                &[&["--address", "127.0.0.1"], &validity[..]].concat(),
            );
            eventually("the refusal of its certificate", || {
                let refused = kubectl(&["get", "--raw=/readyz"]).err()?;
                let text = if begins == "1h" {
                    "is before"
                } else {
                    "is after"
                };
                refused.contains(text).then_some(())
            });
            let mut follower = Follower::administrator();
            follower.until_warned(&["services: Certificate: ", fault, remedy]);
            assert_eq!(follower.state("services").phase, Phase::Listing);
            starting.push(follower);
        }
        running.until("the watch after the change", |me| {
            (me.state("services").phase == Phase::Following).then_some(())
        });
        drop(serving);
        for follower in &mut starting {
            follower.until_whole();
            follower.until_no_warnings();
        }
        eventually("the server", || kubectl(&["get", "--raw=/readyz"]).ok());
    }
}
