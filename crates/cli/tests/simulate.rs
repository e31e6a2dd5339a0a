//! `simulate` as users and scripts run it, and its page in a browser.

#![expect(
    clippy::unwrap_used,
    reason = "a test says what it expects by failing loudly"
)]

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn simulate(example: &str, more: &[&str]) -> Output {
    in_columns("80", example, more)
}

fn in_columns(columns: &str, example: &str, more: &[&str]) -> Output {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../manifests/examples")
        .join(example);
    let mut command = Command::new(env!("CARGO_BIN_EXE_ipvs-topo"));
    command
        .arg("simulate")
        .arg("--cluster")
        .arg(folder)
        .args(more);
    command
        .env("COLUMNS", columns)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn text(output: &Output) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{errors}");
    assert_eq!(errors, "");
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn every_example_as_a_table_of_80_columns() {
    for example in [
        "shop",
        "prefer",
        "hard-rack",
        "hints",
        "topology-keys",
        "internal-local",
        "dual-stack",
        "list",
        "session-affinity",
        "udp-sctp",
        "policy-balanced",
        "policy-default",
        "policy-edge",
        "policy-thresholds",
        "drain",
    ] {
        // At this time the drain of the example is active.
        let now = ["--price", "0.02", "--now", "2026-11-22T09:00:00Z"];
        let table = text(&simulate(example, &now));
        let widest = table.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(80), "{example}: {widest:?}\n{table}");
        insta::assert_snapshot!(format!("simulate {example}"), table);
    }
}

#[test]
fn zones_that_do_not_fit_are_a_list_under_a_heading_of_its_own() {
    for (more, title) in [
        (&[][..], "From one zone to another, percent of all traffic"),
        (
            &["--drain", "zone=b"],
            "From one zone to another, changed, percent of all traffic",
        ),
    ] {
        let table = text(&in_columns("30", "shop", more));
        assert!(table.contains(title), "{table}");
        assert!(table.contains("\n  c to a: "), "{table}");
        assert!(!table.contains("(row)"), "{table}");
    }
}

#[test]
fn a_change_is_shown_beside_the_present_state() {
    let changed = [
        "--set",
        "shop/cart:weights=zone=90,*=10",
        "--scale",
        "shop/cart=b:3",
    ];
    insta::assert_snapshot!("simulate shop changed", text(&simulate("shop", &changed)));
}

#[test]
fn annotations_that_are_not_named_stay() {
    let view = json(&["--set", "shop/cart:empty-tier=renormalize"]);
    assert_eq!(
        view["services"][0]["changedPolicy"],
        serde_json::Value::Null,
        "{view}"
    );
    let gone = text(&simulate(
        "shop",
        &["--set", "shop/cart:weights=", "-o", "json"],
    ));
    let view: serde_json::Value = serde_json::from_str(&gone).unwrap();
    assert_eq!(
        view["services"][0]["changedPolicy"],
        "every ready endpoint alike (no policy)"
    );
    assert!(
        (view["total"]["changed"]["inZone"].as_f64().unwrap() - 0.375).abs() < 1e-9,
        "{gone}"
    );
}

#[test]
fn tried_annotations_combine_with_topology_keys_as_real_ones() {
    let policies = |keys: &str, annotations: &str, set: &str| {
        let folder = tempfile::tempdir().unwrap();
        let text = format!(
            "{{apiVersion: v1, kind: Node, metadata: {{name: n1, labels: {{topology.kubernetes.io/zone: a}}}}}}\n---\n\
             {{apiVersion: v1, kind: Service, metadata: {{name: s, namespace: t, annotations: {{{annotations}}}}}, \
             spec: {{clusterIP: 10.96.0.1, ports: [{{port: 80}}]{keys}}}}}\n"
        );
        fs::write(folder.path().join("a.yaml"), text).unwrap();
        let folder = folder.path().to_string_lossy();
        let output = simulate(&folder, &["--set", set, "-o", "json"]);
        let view: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let policy = |name: &str| view["services"][0][name].as_str().map(str::to_owned);
        (policy("policy").unwrap(), policy("changedPolicy"))
    };
    let keys = ", topologyKeys: [topology.kubernetes.io/zone, '*']";
    let (before, after) = policies(keys, "", "t/s:scheduler=mh");
    assert_eq!(
        (before.contains("topologyKeys"), after),
        (true, None),
        "{before}"
    );
    let weights = "topology.ipvs-topo.io/weights: zone=90";
    let (weighed, after) = policies(keys, weights, "t/s:weights=");
    assert!(!weighed.contains("topologyKeys"), "{weighed}");
    assert_eq!(after, Some(before.clone()));
    let scheduler = "topology.ipvs-topo.io/scheduler: mh";
    assert_eq!(policies(keys, scheduler, "t/s:scheduler="), (before, None));
}

/// The folder has a Service with hard `topologyKeys`, so the annotation alone is valid.
#[test]
fn a_tried_on_no_match_is_about_the_topology_keys_of_the_service() {
    let folder = tempfile::tempdir().unwrap();
    let text = "{apiVersion: v1, kind: Node, metadata: {name: n1, labels: {topology.kubernetes.io/zone: a}}}\n---\n\
         {apiVersion: v1, kind: Service, metadata: {name: s, namespace: t}, \
         spec: {clusterIP: 10.96.0.1, ports: [{port: 80}], topologyKeys: [topology.kubernetes.io/zone]}}\n";
    fs::write(folder.path().join("a.yaml"), text).unwrap();
    let folder = folder.path().to_string_lossy();
    let output = simulate(&folder, &["--set", "t/s:on-no-match=drop"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}

#[test]
fn traffic_distribution_is_tried_with_the_hints_that_kubernetes_would_write() {
    let plain = ["--set", "shop/cart:weights="];
    let in_zone = |value: &str| {
        let set = format!("shop/cart:trafficDistribution={value}");
        let view = json(&[&plain[..], &["--set", &set]].concat());
        view["total"]["changed"]["inZone"].as_f64().unwrap()
    };
    let even = in_zone("");
    for value in ["PreferSameZone", "PreferClose", "PreferSameNode"] {
        assert!(in_zone(value) > even + 0.2, "{value}");
    }
    let rival = json(&plain);
    let others = rival["total"]["others"].as_array().unwrap();
    let close = others.iter().find(|one| one["name"] == "PreferSameZone");
    let close = close.unwrap()["inZone"].as_f64().unwrap();
    assert!((in_zone("PreferSameZone") - close).abs() < 1e-9);
    let removed = ["--set", "shop/orders:trafficDistribution="];
    let removed = text(&simulate(
        "hints",
        &[&removed[..], &["-o", "json"]].concat(),
    ));
    let removed: serde_json::Value = serde_json::from_str(&removed).unwrap();
    let in_zone = |state: &str| removed["total"][state]["inZone"].as_f64().unwrap();
    assert!(in_zone("changed") < in_zone("asIs"), "{removed}");
}

#[test]
fn a_policy_file_and_a_drain_are_tried_without_a_cluster() {
    let folder = tempfile::tempdir().unwrap();
    let policy = folder.path().join("policy.yaml");
    let text = "apiVersion: topology.ipvs-topo.io/v1alpha1
kind: ClusterTopologyPolicy
metadata: {name: even}
spec:
  enforcement: Override
  mode: Balanced
  levels: [{key: zone}, {any: true}]
";
    fs::write(&policy, text).unwrap();
    let policy = policy.to_string_lossy();
    let view = json(&["--policy", &policy]);
    let most = view["total"]["changed"]["loadMax"].as_f64().unwrap();
    assert!((0.99..1.01).contains(&most), "{most}");
    let drained = json(&["--drain", "zone=b"]);
    let gone = &drained["services"][0]["endpoints"][3];
    assert_eq!(
        (&gone["zone"], &gone["changed"]),
        (&"b".into(), &0.0.into()),
        "{gone}"
    );
}

#[test]
fn a_service_that_is_not_programmed_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let shop = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../manifests/examples/shop");
    let read = |name: &str| fs::read_to_string(shop.join(name)).unwrap();
    let service = read("service.yaml");
    let twin = service.replace("name: cart", "name: twin");
    assert_ne!(service, twin);
    let all = [
        read("nodes.yaml"),
        read("endpointslice.yaml"),
        service,
        twin,
    ];
    fs::write(folder.path().join("shop.yaml"), all.join("\n---\n")).unwrap();
    let output = simulate(&folder.path().to_string_lossy(), &["-o", "json"]);
    let view: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(view["services"].as_array().unwrap().len(), 1);
    assert_eq!(view["warnings"][0]["code"], "FrontendTaken", "{view}");
    assert!(
        view["warnings"][0]["remedy"]
            .as_str()
            .unwrap()
            .contains("another address or port")
    );
}

fn json(arguments: &[&str]) -> serde_json::Value {
    let output = text(&simulate("shop", &[arguments, &["-o", "json"]].concat()));
    serde_json::from_str(&output).unwrap()
}

#[test]
fn measured_rates_weigh_nodes_and_make_gib() {
    let folder = tempfile::tempdir().unwrap();
    let rates = folder.path().join("rates.csv");
    fs::write(
        &rates,
        "service,node,gib\nshop/cart,n1,10\n*,n3,30 # a busy node\n",
    )
    .unwrap();
    let rates = rates.to_string_lossy();
    let output = text(&simulate(
        "shop",
        &["--demand", &rates, "--price", "2", "-o", "json"],
    ));
    let view: serde_json::Value = serde_json::from_str(&output).unwrap();
    let total = &view["total"]["asIs"];
    // From n1 5 % of 10 GiB leave zone a; from n3 the level zone is empty, so 20 % of 30 GiB leave
    // zone b.
    let gib = total["crossGib"].as_f64().unwrap();
    assert!((gib - 6.5).abs() < 1e-9, "{gib}");
    assert!((total["cost"].as_f64().unwrap() - 13.0).abs() < 1e-9);
}

#[test]
fn only_a_heading_is_no_rate_and_an_amount_has_a_limit() {
    let folder = tempfile::tempdir().unwrap();
    let rates = folder.path().join("rates.csv");
    let of = |lines: &str| {
        fs::write(&rates, lines).unwrap();
        let output = simulate("shop", &["--demand", &rates.to_string_lossy()]);
        (
            output.status.code(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    assert_eq!(of("service node gib\nshop/cart n1 1e15\n").0, Some(0));
    for (line, expected) in [
        (
            "services/cart,n1,1",
            "the input has no Service services/cart",
        ),
        ("shop/cart,n1,1e16", "write GiB as a number up to"),
        ("shop/cart,n1,NaN", "write GiB as a number up to"),
    ] {
        let (code, errors) = of(&format!("service,node,gib\n{line}\n"));
        assert_eq!(code, Some(2), "{errors}");
        assert!(errors.contains("rates.csv:2: "), "{errors}");
        assert!(errors.contains(expected), "{errors}");
    }
}

#[test]
fn a_policy_that_cannot_be_used_is_refused_with_its_field() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("policy.yaml");
    let policy = "apiVersion: topology.ipvs-topo.io/v1alpha1\nkind: ClusterTopologyPolicy\nmetadata: {name: p}\n\
                  spec: {mode: Prefered, levels: [{key: zone}, {any: true}]}\n";
    fs::write(&path, policy).unwrap();
    let output = simulate("shop", &["--policy", &path.to_string_lossy()]);
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{errors}");
    let expected = "policy.yaml:4: ClusterTopologyPolicy p: spec.mode: `Prefered`";
    assert!(errors.contains(expected), "{errors}");
}

#[test]
fn a_missing_object_is_one_clear_sentence_and_exit_2() {
    let cases: [(&[&str], &[&str]); 10] = [
        (&["--drain", "zone=x"], &["no Node has zone=x", "a, b, c"]),
        (&["--drain", "*=x"], &["zone=b"]),
        (
            &["--set", "shop/nope:weights=zone=1"],
            &["no Service shop/nope"],
        ),
        (
            &["--set", "shop/cart:weights=zone"],
            &["shop/cart", "weights", "node=80"],
        ),
        (
            &["--scale", "shop/cart=x:3"],
            &["no Node is in zone x", "a, b, c"],
        ),
        (
            &["--policy", "/nowhere"],
            &["/nowhere", "name an existing file"],
        ),
        (
            &["--demand", "/nowhere"],
            &["/nowhere", "shop/cart,n1,12.5"],
        ),
        (
            &["--demand", "cpu"],
            &["status.allocatable.cpu", "--demand nodes"],
        ),
        (&["shop/nope"], &["no Service shop/nope"]),
        (&["--price", "free"], &["0.01"]),
    ];
    for (arguments, words) in cases {
        let output = simulate("shop", arguments);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(
            (output.status.code(), output.stdout.as_slice()),
            (Some(2), b"".as_slice()),
            "{errors}"
        );
        for word in words {
            assert!(errors.contains(word), "{word:?} is missing in: {errors}");
        }
    }
}

/// Opens the page in chromium, which `cargo xtask test` installs. Its script must run, and its text
/// must match the table.
#[test]
fn the_page_opens_in_a_browser_without_an_error() {
    let page = text(&simulate(
        "shop",
        &["--set", "shop/cart:weights=zone=90,*=10", "-o", "html"],
    ));
    for forbidden in ["http://", "https://", "<link", "<img", " src="] {
        assert!(!page.contains(forbidden), "{forbidden}");
    }
    let browser = ["chromium", "chromium-browser", "google-chrome"]
        .into_iter()
        .find(|name| runs(name))
        .expect("no browser: install the Debian package chromium");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("page.html");
    let probe = "<script>document.body.append('cells ' + document.querySelectorAll('.heat td.stays').length \
        + ', bars ' + document.querySelectorAll('.bar').length + ', open ' + document.querySelectorAll('details[open]').length)</script>";
    fs::write(&file, format!("{page}{probe}")).unwrap();
    let output = Command::new(browser)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--virtual-time-budget=2000",
            "--dump-dom",
        ])
        .arg(format!(
            "--user-data-dir={}",
            folder.path().join("profile").display()
        ))
        .arg(format!("file://{}", file.display()))
        .output()
        .unwrap();
    let shown = String::from_utf8_lossy(&output.stdout);
    let problems = String::from_utf8_lossy(&output.stderr);
    assert!(!problems.contains("Uncaught"), "{problems}");
    for words in [
        "cells 6, bars 12, open 1",
        "shop/cart:http",
        "90 % in this zone, 10 % anywhere",
        "47.5",
        "PreferSameZone",
    ] {
        assert!(
            shown.contains(words),
            "{words:?} is missing in the page as {browser} shows it:\n{shown}"
        );
    }
}

fn runs(program: &str) -> bool {
    let output = Command::new(program)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    output.is_ok_and(|status| status.success())
}

/// A headless Service of another proxy, and one that other proxies serve, on two nodes in two zones.
const BY_DNS: &str = "
{apiVersion: v1, kind: Node, metadata: {name: n1, labels: {topology.kubernetes.io/zone: a}}}
---
{apiVersion: v1, kind: Node, metadata: {name: n2, labels: {topology.kubernetes.io/zone: b}}}
---
{apiVersion: v1, kind: Service, metadata: {name: db, namespace: t, labels: {service.kubernetes.io/service-proxy-name: x},
  annotations: {topology.ipvs-topo.io/weights: 'zone=70,*=30'}}, spec: {clusterIP: None, ports: [{name: sql, port: 5432}, {name: admin, port: 1}]}}
---
{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: db-1, namespace: t,
  labels: {kubernetes.io/service-name: db, service.kubernetes.io/headless: '', service.kubernetes.io/service-proxy-name: x}},
  addressType: IPv4, ports: [{name: sql, port: 5432}], endpoints: [{addresses: [10.244.1.1], nodeName: n1}, {addresses: [10.244.2.1], nodeName: n2}]}
---
{apiVersion: v1, kind: Service, metadata: {name: other, namespace: t, labels: {service.kubernetes.io/service-proxy-name: x}},
  spec: {clusterIP: 10.96.0.2, ports: [{port: 80}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: away, namespace: t}, spec: {type: ExternalName, externalName: example.com}}
";

#[test]
fn the_clients_of_headless_services_take_part_as_those_of_virtual_servers() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.yaml"), BY_DNS).unwrap();
    let folder = folder.path().to_str().unwrap();
    let output = text(&simulate(folder, &["-o", "json"]));
    let view: serde_json::Value = serde_json::from_str(&output).unwrap();
    let services = view["services"].as_array().unwrap();
    let [db] = services.as_slice() else {
        panic!("only t/db, not {output}");
    };
    assert_eq!(
        [
            &db["service"],
            &db["kind"],
            &db["frontend"],
            &db["portName"]
        ],
        ["t/db", "DNS", "A", ""]
    );
    let flows = &view["total"]["asIs"]["flows"];
    for (from, to, part) in [(0, 0, 0.35), (0, 1, 0.15), (1, 0, 0.15), (1, 1, 0.35)] {
        let found = flows[from][to].as_f64().unwrap();
        assert!((found - part).abs() < 1e-9, "{flows}");
    }
    let others = view["total"]["others"].as_array().unwrap();
    let uniform = others[0]["inZone"].as_f64().unwrap();
    assert!((uniform - 0.5).abs() < 1e-9, "{others:?}");
    insta::assert_snapshot!("simulate headless", text(&simulate(folder, &[])));
    let set = ["--set", "t/db:weights=zone=1", "t/db"];
    insta::assert_snapshot!("simulate headless changed", text(&simulate(folder, &set)));
    let page = text(&simulate(folder, &["-o", "html"]));
    assert!(
        page.contains("t/db DNS") && page.contains("1 DNS name"),
        "{page}"
    );
    assert!(!page.contains("10.244.1.1:0"), "{page}");
}
