//! Service and namespace arguments, kubectl's names, the node flag, and the order in `simulate`.

#![expect(
    clippy::unwrap_used,
    reason = "a test says what it expects by failing loudly"
)]

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn run(words: &[&str]) -> Output {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../manifests/examples/shop");
    Command::new(env!("CARGO_BIN_EXE_ipvs-topo"))
        .args(words)
        .arg("--cluster")
        .arg(folder)
        .env_remove("COLUMNS")
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

#[track_caller]
fn fine(words: &[&str]) -> (String, String) {
    let output = run(words);
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{words:?}: {errors}");
    (String::from_utf8(output.stdout).unwrap(), errors)
}

/// Three Services in two zones. `bank/pay` has an invalid port, and `shop/web` an invalid slice.
const BUSY: &str = "
{apiVersion: v1, kind: Node, metadata: {name: n1, labels: {topology.kubernetes.io/zone: a}}}
---
{apiVersion: v1, kind: Node, metadata: {name: n2, labels: {topology.kubernetes.io/zone: b}}}
---
{apiVersion: v1, kind: Service, metadata: {name: pay, namespace: bank},
  spec: {clusterIP: 10.96.0.1, ports: [{name: a, port: 80}, {name: b, port: 0}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: cart, namespace: shop, annotations: {topology.ipvs-topo.io/keys: 'node,zone,*'}},
  spec: {clusterIP: 10.96.0.2, ports: [{name: a, port: 80}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop}, spec: {clusterIP: 10.96.0.3, ports: [{name: a, port: 80}]}}
---
{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: pay-1, namespace: bank, labels: {kubernetes.io/service-name: pay}},
  addressType: IPv4, ports: [{name: a, port: 8080}], endpoints: [{addresses: [10.244.0.1], nodeName: n1}, {addresses: [10.244.1.1], nodeName: n2}]}
---
{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: cart-1, namespace: shop, labels: {kubernetes.io/service-name: cart}},
  addressType: IPv4, ports: [{name: a, port: 8080}], endpoints: [{addresses: [10.244.0.2], nodeName: n1}]}
---
{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: web-1, namespace: shop, labels: {kubernetes.io/service-name: web}},
  addressType: IPv4, ports: [{name: a, port: 8080}],
  endpoints: [{addresses: [10.244.0.3], nodeName: n1}, {addresses: [10.244.1.3], nodeName: n2}, {addresses: [odd], nodeName: n2}]}
";

/// Exit code, output and errors of a command on [`BUSY`].
fn of_busy(words: &[&str]) -> (Option<i32>, String, String) {
    of_text(BUSY, words)
}

/// Exit code, output and errors of a command on a cluster.
fn of_text(cluster: &str, words: &[&str]) -> (Option<i32>, String, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cluster.yaml");
    fs::write(&path, cluster).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_ipvs-topo"))
        .args(words)
        .arg("--cluster")
        .arg(path)
        .env("COLUMNS", "100")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (
        output.status.code(),
        text(output.stdout),
        text(output.stderr),
    )
}

#[test]
fn one_service_or_one_namespace_is_rendered() {
    let heads = |words: &[&str]| {
        let (code, lines, errors) =
            of_busy(&[&["render", "--node-name", "n1", "-o", "save"], words].concat());
        assert_eq!(code, Some(0), "{errors}");
        let heads = lines.lines().filter(|line| line.starts_with("-A"));
        let heads = heads.filter_map(|line| line.split([' ', ':']).nth(2));
        heads.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(heads(&[]), ["10.96.0.1", "10.96.0.2", "10.96.0.3"]);
    assert_eq!(heads(&["shop/web"]), ["10.96.0.3"]);
    assert_eq!(heads(&["shop/web", "bank/pay"]), ["10.96.0.1", "10.96.0.3"]);
    assert_eq!(heads(&["-n", "shop"]), ["10.96.0.2", "10.96.0.3"]);
    assert_eq!(heads(&["-n", "bank"]), ["10.96.0.1"]);
    for words in [["shop/till"].as_slice(), &["-n", "tools"]] {
        for command in [&["render", "--node", "n1"][..], &["simulate"]] {
            let (code, _, errors) = of_busy(&[command, words].concat());
            assert_eq!(code, Some(2), "{words:?}");
            assert!(errors.contains("the input has no Service"), "{errors}");
        }
    }
}

#[test]
fn only_warnings_about_the_requested_services_are_printed_and_counted() {
    for command in [&["render", "--node", "n1"][..], &["simulate"]] {
        for (services, expected) in [
            (
                &[][..],
                &["Service bank/pay", "EndpointSlice shop/web-1"][..],
            ),
            (&["-n", "bank"], &["Service bank/pay"]),
            (&["shop/web"], &["EndpointSlice shop/web-1"]),
            (&["shop/cart"], &[]),
        ] {
            let words = [command, services, &["--strict"]].concat();
            let (code, _, errors) = of_busy(&words);
            let warnings = errors.lines().filter(|line| line.starts_with("warning: "));
            let objects = warnings.filter_map(|line| line.split(": ").nth(2));
            assert_eq!(objects.collect::<Vec<_>>(), expected, "{words:?}: {errors}");
            assert_eq!(
                code,
                Some(if expected.is_empty() { 0 } else { 2 }),
                "{words:?}"
            );
        }
    }
}

const CHANGED: [&str; 3] = ["simulate", "--set", "shop/web:keys=zone,*"];

#[test]
fn avoided_domains_are_part_of_the_policy_text() {
    let set = |what: &str| {
        let set = format!("shop/web:avoid={what}");
        let (_, view, _) = of_busy(&["simulate", "shop/web", "--set", &set, "-o", "json"]);
        let view: serde_json::Value = serde_json::from_str(&view).unwrap();
        view["services"][0]["changedPolicy"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert_eq!(
        set("node,zone:soft"),
        "every ready endpoint alike (no policy); not on this node; not in this zone if others remain"
    );
}

#[test]
fn services_that_change_are_listed_before_and_after_and_the_rest_is_counted() {
    let (_, text, _) = of_busy(&CHANGED);
    let (_, table) = text
        .split_once("Services that change, before -> after\n")
        .unwrap();
    let rows: Vec<Vec<&str>> = table
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(rows.len(), 3, "{table}");
    assert_eq!(rows[0][..3], ["SERVICE", "IN", "ZONE"]);
    assert_eq!(
        rows[1][..6],
        ["shop/web:a", "50.0", "%", "->", "100", "%"],
        "{table}"
    );
    assert_eq!(
        rows[2].join(" "),
        "2 virtual servers without a change; -o json has all"
    );
    let (_, same, _) = of_busy(&["simulate", "--set", "shop/web:scheduler="]);
    let is_complete =
        same.contains("No Service changes\n  3 virtual servers without a change; -o json has all");
    assert!(is_complete, "{same}");
}

#[test]
fn the_page_shows_services_that_change_first_and_folds_the_others() {
    let (_, page, _) = of_busy(&[&CHANGED[..], &["-o", "html"]].concat());
    let mut order: Vec<(usize, &str)> = Vec::new();
    for shown in [
        "<b>bank/pay:a</b>",
        "<b>shop/cart:a</b>",
        "<b>shop/web:a</b>",
        "<details class=\"same\"><summary>2 virtual servers without a change</summary>",
    ] {
        let places: Vec<_> = page.match_indices(shown).collect();
        assert_eq!(places.len(), 1, "{shown}");
        order.extend(places);
    }
    order.sort_unstable();
    let order: Vec<&str> = order
        .iter()
        .filter_map(|(_, shown)| shown.split(['>', '<']).nth(2))
        .collect();
    let expected = ["shop/web:a", "", "bank/pay:a", "shop/cart:a"];
    assert_eq!(
        order, expected,
        "both others are even, so their names decide"
    );
}

#[test]
fn only_problems_of_this_cluster_are_red_on_the_page() {
    let red = |words: &[&str]| {
        let (_, page, _) = of_busy(&[&["simulate", "-o", "html"], words].concat());
        let (_, body) = page.split_once("<main>").unwrap();
        let (body, _) = body.split_once("<script>").unwrap();
        let red = body.matches("warn").count() + body.matches(" over\"").count();
        (red, body.contains("Level node is empty for 50.0 %"))
    };
    // An empty level of a preference is not a problem: clients elsewhere use the next level.
    assert_eq!(red(&["shop/cart"]), (0, true));
    assert_eq!(red(&["shop/web"]), (0, false));
    let (refused, _) = red(&[
        "shop/web",
        "--set",
        "shop/web:keys=node",
        "--scale",
        "shop/web=b:0",
    ]);
    assert!(refused > 0, "clients of n2 must be refused");
    let (overloaded, _) = red(&[
        "shop/web",
        "--set",
        "shop/web:keys=zone,*",
        "--scale",
        "shop/web=b:3",
    ]);
    assert!(
        overloaded > 0,
        "the endpoint of zone a has twice an even load"
    );
}

#[test]
fn explain_takes_a_service_as_kubectl_names_it() {
    let (expected, _) = fine(&["explain", "shop/cart", "--node", "n1"]);
    for name in ["svc/cart", "service/cart"] {
        let (text, _) = fine(&["explain", name, "-n", "shop", "--node", "n1"]);
        assert_eq!(text, expected);
    }
}

#[test]
fn a_policy_that_selects_nothing_gives_a_warning_and_changes_no_service() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("policy.yaml");
    let policy = "apiVersion: topology.ipvs-topo.io/v1alpha1\nkind: TopologyPolicy\n\
         metadata: {name: near, namespace: shop}\n\
         spec: {mode: Prefer, levels: [{key: zone}, {any: true}], serviceSelector: {matchLabels: {app: none}}}\n";
    fs::write(&path, policy).unwrap();
    let words = ["simulate", "--policy", path.to_str().unwrap()];
    let (_, warnings) = fine(&words);
    assert!(warnings.contains("TopologyPolicy shop/near"), "{warnings}");
    assert!(
        warnings.contains("has no effect") || warnings.contains("no Service"),
        "{warnings}"
    );
}

#[test]
fn the_page_shows_its_time_command_and_source() {
    let change = "shop/cart:weights=zone=90,*=10";
    let (page, _) = fine(&["simulate", "-o", "html", "--set", change]);
    assert!(
        page.contains(concat!("ipvs-topo ", env!("CARGO_PKG_VERSION"), " from ")),
        "{page}"
    );
    assert!(page.contains("simulate -o html --set &#39;shop/cart:weights=zone=90,*=10&#39;"));
    assert!(page.contains("examples/shop"));
    let (_, made) = page.split_once("<p>Made ").unwrap();
    let (made, _) = made.split_once(" by ").unwrap();
    let now = jiff::Timestamp::now();
    let written: jiff::Timestamp = format!("{}Z", made.replace(" UTC", ":00").replace(' ', "T"))
        .parse()
        .unwrap();
    assert!((now - written).get_seconds().abs() < 120, "{made}");
}

#[test]
fn the_kubeconfig_is_found_where_kubectl_finds_it() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join(".kube/config");
    fs::create_dir(home.path().join(".kube")).unwrap();
    let config = "{apiVersion: v1, kind: Config, current-context: gone, contexts: [], \
                  clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]}";
    fs::write(&file, config).unwrap();
    let other = home.path().join("other");
    fs::write(&other, config.replace("gone", "lost")).unwrap();
    let other = other.to_str().unwrap();
    let failed = |variable: Option<&str>, words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ipvs-topo"));
        command.args(["render", "--node", "n1"]).args(words);
        command.env("HOME", home.path()).env_remove("KUBECONFIG");
        command.env_remove("KUBERNETES_SERVICE_HOST");
        command.envs(variable.map(|files| ("KUBECONFIG", files)));
        let output = command.stdin(Stdio::null()).output().unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{errors}");
        errors
    };
    let shown = file.to_str().unwrap();
    let cases = [
        (
            failed(None, &[]),
            format!("{shown}: it has no context \"gone\"; "),
        ),
        (
            failed(None, &["--context", "mine"]),
            format!("{shown}: it has no context \"mine\"; "),
        ),
        (
            failed(Some(other), &[]),
            format!("{other}: it has no context \"lost\"; "),
        ),
        (
            failed(Some(&format!("/nowhere:{other}:{shown}")), &[]),
            "it has no context \"lost\"; ".to_owned(),
        ),
        (
            failed(None, &["--kubeconfig", other]),
            format!("{other}: it has no context \"lost\"; "),
        ),
        (
            failed(Some("/nowhere"), &["--as", "jane"]),
            "no API server is known: neither KUBECONFIG nor ~/.kube/config".to_owned(),
        ),
        (
            failed(Some("/nowhere"), &["--context", "mine"]),
            "--context mine: neither KUBECONFIG nor ~/.kube/config".to_owned(),
        ),
    ];
    for (errors, expected) in cases {
        assert!(
            errors.contains(&expected),
            "{expected:?} is missing in: {errors}"
        );
    }
}

const EXTERNAL_IP: &str = "
{apiVersion: v1, kind: Node, metadata: {name: n1}}
---
{apiVersion: v1, kind: Service, metadata: {name: mail, namespace: shop},
  spec: {clusterIP: 10.96.0.1, externalIPs: [198.51.100.25], ports: [{name: smtp, port: 25}]}}
---
{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: mail-1, namespace: shop, labels: {kubernetes.io/service-name: mail}},
  addressType: IPv4, ports: [{name: smtp, port: 2525}], endpoints: [{addresses: [10.244.0.1], nodeName: n1}]}
";

#[test]
fn cve_2020_8554_an_external_ip_is_served_only_in_an_allowed_range() {
    let allowed = ["--external-ip-ranges", "198.51.100.0/24"];
    let other = ["--external-ip-ranges", "203.0.113.0/24,2001:db8::/64"];
    for (ranges, served) in [(&[][..], false), (&other, false), (&allowed, true)] {
        let words = [&["render", "--node", "n1", "-o", "json"], ranges].concat();
        let (code, json, errors) = of_text(EXTERNAL_IP, &words);
        assert_eq!(code, Some(0), "{errors}");
        let view: serde_json::Value = serde_json::from_str(&json).unwrap();
        let servers = view["virtualServers"].as_array().unwrap().iter();
        let kinds: Vec<_> = servers.map(|server| server["kind"].as_str()).collect();
        let reason = view.pointer("/notProgrammed/0/reason");
        if served {
            assert_eq!(kinds, [Some("ClusterIP"), Some("ExternalIP")]);
            assert_eq!(reason, None);
        } else {
            assert_eq!(kinds, [Some("ClusterIP")]);
            assert_eq!(
                reason.unwrap(),
                "external IP 198.51.100.25 is in no range of --external-ip-ranges, so it is not programmed"
            );
        }
        for (command, shown) in [
            (&["simulate", "shop/mail"][..], "shop/mail:smtp ExternalIP"),
            (
                &["explain", "--node", "n1", "shop/mail"],
                "198.51.100.25:25",
            ),
        ] {
            let (code, text, errors) = of_text(EXTERNAL_IP, &[command, ranges].concat());
            assert_eq!(code, Some(0), "{errors}");
            assert_eq!(text.contains(shown), served, "{text}");
        }
    }
}

/// A pod range, a Node's address, a Pod and an endpoint outside of both, and a Node that does not exist.
const PLACES: &str = "
{apiVersion: v1, kind: Node, metadata: {name: n1, labels: {topology.kubernetes.io/zone: a, example.com/rack: r1}},
  spec: {podCIDRs: [10.244.0.0/16]}, status: {addresses: [{type: InternalIP, address: 192.0.2.1}]}}
---
{apiVersion: v1, kind: Node, metadata: {name: n2},
  spec: {podCIDRs: [10.244.2.0/24, 'fd00:2::/64']}, status: {addresses: [{type: InternalIP, address: 'fd00::2'}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: cart, namespace: shop},
  spec: {clusterIP: None, ports: [{name: a, port: 80}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop},
  spec: {clusterIP: 10.96.0.3, ports: [{name: a, port: 80}]}}
---
{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice,
  metadata: {name: cart-1, namespace: shop, labels: {kubernetes.io/service-name: cart}},
  addressType: IPv4, ports: [{name: a, port: 8080}],
  endpoints: [{addresses: [10.0.0.7], nodeName: n1}, {addresses: [10.0.0.8], nodeName: gone}, {addresses: [10.0.0.9]}]}
---
{apiVersion: topology.ipvs-topo.io/v1alpha1, kind: PodMap, metadata: {name: n2},
  spec: {pods: {10.0.0.5: shop/cart-5, 10.244.2.5: shop/cart-6, 10.244.1.5: shop/stale}}}
";

#[test]
fn locate_names_the_node_and_the_object_that_says_so() {
    for (address, node, source, detail) in [
        ("10.244.1.1", "n1", "podRange", "10.244.0.0/16"),
        ("10.244.2.1", "n2", "podRange", "10.244.2.0/24"),
        ("::ffff:10.244.2.1", "n2", "podRange", "10.244.2.0/24"),
        ("fd00:2::1", "n2", "podRange", "fd00:2::/64"),
        ("10.0.0.5", "n2", "podMap", "shop/cart-5"),
        ("10.244.2.5", "n2", "podRange", "shop/cart-6"),
        ("192.0.2.1", "n1", "nodeAddress", "is an address of Node"),
        ("fd00::2", "n2", "nodeAddress", "is an address of Node"),
        ("10.0.0.7", "n1", "endpoint", "shop/cart"),
        ("10.0.0.8", "gone", "endpoint", "shop/cart"),
    ] {
        let (code, text, errors) = of_text(PLACES, &["locate", address]);
        assert_eq!((code, errors.as_str()), (Some(0), ""), "{address}");
        assert!(text.contains(&format!("on node {node}\n")), "{text}");
        assert!(text.contains(detail), "{text}");
        let (code, text, _) = of_text(PLACES, &["locate", address, "-o", "json"]);
        assert_eq!(code, Some(0), "{address}");
        let view: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            (&view["node"], &view["source"]),
            (&node.into(), &source.into()),
            "{text}"
        );
        let labels = match node {
            "n1" => {
                serde_json::json!({"topology.kubernetes.io/zone": "a", "example.com/rack": "r1"})
            }
            "n2" => serde_json::json!({}),
            _ => serde_json::Value::Null,
        };
        assert_eq!(view["labels"], labels, "{text}");
    }
    let (_, text, _) = of_text(PLACES, &["locate", "10.244.1.5"]);
    assert!(!text.contains("stale"), "{text}");
    let (_, text, _) = of_text(PLACES, &["locate", "10.244.1.1"]);
    assert!(text.contains("example.com/rack             r1\n"), "{text}");
}

#[test]
fn locate_exits_2_for_an_address_without_a_node() {
    for (address, why) in [
        ("10.0.0.9", "no EndpointSlice has it with a nodeName"),
        ("203.0.113.1", "no Node has 203.0.113.1"),
        ("10.96.0.3", "a cluster IP of Service shop/web"),
        ("10.244.1", "not an IP address"),
    ] {
        let (code, text, errors) = of_text(PLACES, &["locate", address]);
        assert_eq!((code, text.as_str()), (Some(2), ""), "{address}");
        assert!(errors.contains(why), "{errors}");
    }
}

#[test]
fn locate_reports_a_pod_range_that_is_not_valid() {
    let cluster = PLACES.replace("10.244.2.0/24", "10.244.2.0");
    let (code, text, errors) = of_text(&cluster, &["locate", "10.244.2.1"]);
    assert_eq!(code, Some(0), "{errors}");
    assert!(text.contains("on node n1\n"), "{text}");
    assert!(text.contains("podCIDRs"), "{text}");
    let (code, _, errors) = of_text(&cluster, &["locate", "10.244.2.1", "--strict"]);
    assert_eq!(code, Some(2));
    assert!(
        errors.contains("1 warning, and --strict makes it an error"),
        "{errors}"
    );
    let (code, _, errors) = of_text(&cluster, &["locate", "203.0.113.1"]);
    assert_eq!(code, Some(2));
    assert!(errors.contains("podCIDRs"), "{errors}");
}
