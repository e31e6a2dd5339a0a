//! `explain --dns` and `render --dns` say what the server answers.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use hickory_proto::rr::RecordType;
use serde_json::Value;

use crate::client::{N1, N2, answers, over_udp, query};
use crate::offline::{Output, cluster, json, run_in};
use crate::program::Program;

/// The node `n3`, which has no pod range.
const N3: Ipv4Addr = Ipv4Addr::new(127, 0, 3, 1);

const HEADLESS: [&str; 7] = [
    "cart", "search", "plain", "bounded", "local", "hashed", "both",
];

/// How many answers hold these addresses, of one cycle.
type Cycle = BTreeMap<BTreeSet<String>, u64>;

fn levels(answer: &Value) -> Cycle {
    let levels = answer["levels"].as_array().unwrap().iter();
    levels
        .map(|level| {
            let addresses = level["addresses"].as_array().unwrap().iter();
            let addresses = addresses.map(|address| address.as_str().unwrap().to_owned());
            (addresses.collect(), level["answers"].as_u64().unwrap())
        })
        .collect()
}

/// Asks as often as the cycle says.
fn asked(program: &Program, client: Ipv4Addr, service: &str, answer: &Value) -> Cycle {
    let record_type = if answer["recordType"] == "A" {
        RecordType::A
    } else {
        RecordType::AAAA
    };
    let name = format!("{service}.shop.svc.cluster.local.");
    let question = query(&name, record_type);
    let mut counts = Cycle::new();
    for _ in 0..answer["cycle"].as_u64().unwrap() {
        let addresses = answers(&over_udp(client, program.address, &question));
        *counts.entry(addresses.into_iter().collect()).or_default() += 1;
    }
    counts
}

#[test]
fn a_cycle_of_answers_of_the_server_has_the_levels_and_shares_that_are_explained() {
    let program = Program::in_folder(cluster(), &[]);
    program.line_with("the cluster is read");
    let path = program.folder.path();
    let mut most_levels = 0;
    for (client, node) in [(N1, "n1"), (N2, "n2"), (N3, "n3")] {
        let address = client.to_string();
        let rendered = json(path, &["render", "--dns", "--node", node]);
        for service in HEADLESS {
            let name = format!("shop/{service}");
            let who = ["--client", &address, "--node", "n1"];
            let explained = json(path, &[&["explain", &name, "--dns"], &who[..]].concat());
            assert_eq!(explained["client"]["node"], node);
            let services = rendered["services"].as_array().unwrap();
            let same = services.iter().find(|one| one["service"] == *name).unwrap();
            let shown = explained["answers"].as_array().unwrap();
            assert_eq!(shown.len(), if service == "both" { 2 } else { 1 });
            for (answer, same) in shown.iter().zip(same["answers"].as_array().unwrap()) {
                assert_eq!(
                    (&answer["levels"], &answer["cycle"]),
                    (&same["levels"], &same["cycle"])
                );
                let levels = levels(answer);
                most_levels = most_levels.max(levels.len());
                let counted = asked(&program, client, service, answer);
                assert_eq!(counted, levels, "{service} for {client}: {answer}");
            }
        }
    }
    assert_eq!(most_levels, 3);
}

#[test]
fn shares_are_parts_of_the_cycle_and_no_scheduler_changes_them() {
    let folder = cluster();
    for (service, expected) in [
        ("cart", [0.8, 0.15, 0.05].as_slice()),
        ("hashed", &[0.99, 0.01]),
    ] {
        let name = format!("shop/{service}");
        let view = json(folder.path(), &["explain", &name, "--dns", "--node", "n1"]);
        let levels = view["answers"][0]["levels"].as_array().unwrap();
        let shares: Vec<f64> = levels
            .iter()
            .map(|one| one["share"].as_f64().unwrap())
            .collect();
        assert_eq!(shares, expected);
        let decision = &view["answers"][0]["decision"];
        assert_eq!(decision["stages"].as_array().unwrap().len(), 12);
        assert_eq!(decision["kind"], "DNS");
    }
}

fn fine(width: &str, words: &[&str]) -> String {
    let folder = cluster();
    let Output { code, text, errors } = run_in(width, folder.path(), words);
    assert_eq!(code, Some(0), "{words:?}: {errors}");
    let widest = text.lines().map(|line| line.chars().count()).max();
    assert!(widest <= width.parse().ok(), "{widest:?}\n{text}");
    text
}

#[test]
fn every_kind_of_answer_is_explained_in_80_columns() {
    for (name, words) in [
        (
            "weighted",
            &["shop/cart", "--client", "127.0.1.7", "--node", "n1"][..],
        ),
        ("both families", &["shop/both", "--node", "n3"]),
        ("port", &["shop/cart:http", "--client", "127.0.2.7"]),
        ("no data", &["shop/bounded", "--node", "n1"]),
        ("no name", &["shop/down", "--node", "n1"]),
        ("cluster ip", &["shop/web"]),
        ("external name", &["shop/away"]),
    ] {
        let text = fine("80", &[&["explain", "--dns"], words].concat());
        insta::assert_snapshot!(format!("explain {name}"), text);
    }
}

#[test]
fn a_node_is_rendered_in_80_columns_and_the_same_each_time() {
    let words = ["render", "--dns", "--node", "n1"];
    let text = fine("80", &words);
    assert_eq!(fine("80", &words), text);
    insta::assert_snapshot!("render n1", text);
    let named = fine(
        "80",
        &["render", "--dns", "--node", "n1", "shop/web", "shop/away"],
    );
    assert!(
        named.contains("www.example.com") && named.contains("fd00:96::10"),
        "{named}"
    );
}

#[test]
fn each_rule_that_places_a_client_is_named() {
    for (client, node, rule) in [
        ("127.0.1.7", "n1", 1),
        ("127.0.2.7", "n2", 2),
        ("127.0.3.1", "n3", 4),
        ("10.244.3.11", "n3", 5),
        ("192.0.2.1", "n1", 6),
    ] {
        let words = [
            "explain",
            "shop/cart",
            "--dns",
            "--client",
            client,
            "--node",
            "n1",
        ];
        let folder = cluster();
        let view = json(folder.path(), &words);
        assert_eq!(
            (&view["client"]["node"], &view["client"]["rule"]),
            (&node.into(), &rule.into())
        );
        let text = fine("120", &words);
        let line = text
            .lines()
            .find(|line| line.starts_with("Client "))
            .unwrap();
        assert!(
            line.contains(client) && line.ends_with(&format!("(rule {rule})")),
            "{line}"
        );
    }
}

#[test]
fn a_port_that_only_a_slice_has_is_explained() {
    let folder = cluster();
    let slice = "
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: cart-metrics, namespace: shop, labels: {kubernetes.io/service-name: cart}}
addressType: IPv4
ports: [{name: metrics, port: 9100}]
endpoints: [{addresses: [10.244.9.1], nodeName: n1}]
";
    std::fs::write(folder.path().join("metrics.yaml"), slice).unwrap();
    for port in ["metrics", "9100"] {
        let target = format!("shop/cart:{port}");
        let view = json(
            folder.path(),
            &["explain", &target, "--dns", "--node", "n1"],
        );
        let answer = &view["answers"][0];
        assert_eq!(answer["recordType"], "SRV", "{view}");
        assert_eq!(
            answer["levels"][0]["addresses"],
            serde_json::json!(["10.244.9.1:9100"])
        );
    }
}

#[test]
fn a_port_has_the_records_of_the_server() {
    let folder = cluster();
    let more = "
{apiVersion: v1, kind: Service, metadata: {name: late, namespace: shop}, spec: {clusterIP: None, ports: [{name: http, port: 80, targetPort: later}]}}
---
{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: late-1, namespace: shop, labels: {kubernetes.io/service-name: late}},
  addressType: IPv4, ports: [], endpoints: [{addresses: [10.244.9.1], nodeName: n1}]}
";
    std::fs::write(folder.path().join("late.yaml"), more).unwrap();
    let explained = |target: &str| {
        let view = json(folder.path(), &["explain", target, "--dns", "--node", "n1"]);
        let answers = view["answers"].as_array().unwrap().iter();
        let answers = answers.map(|answer| {
            let levels = answer["levels"].as_array().unwrap().iter();
            let addresses = levels.flat_map(|level| level["addresses"].as_array().unwrap());
            let addresses: Vec<&str> = addresses.map(|one| one.as_str().unwrap()).collect();
            let kind = answer["recordType"].as_str().unwrap();
            format!("{kind} {}", addresses.join(" ")).trim().to_owned()
        });
        let code = view["responseCode"].as_str().unwrap().to_owned();
        (code, answers.collect::<Vec<_>>())
    };
    let web = vec!["SRV 10.96.0.10:80 [fd00:96::10]:80".to_owned()];
    assert_eq!(explained("shop/web:http"), ("NOERROR".to_owned(), web));
    let (code, _) = explained("shop/late");
    assert_eq!(code, "NOERROR");
    let (code, answers) = explained("shop/late:http");
    assert_eq!((code.as_str(), answers.len()), ("NXDOMAIN", 0));
}

#[test]
fn a_name_that_does_not_exist_is_explained_with_its_reason() {
    let folder = cluster();
    let more = "
{apiVersion: v1, kind: Service, metadata: {name: alias, namespace: shop}, spec: {type: ExternalName, externalName: www.example.com, ports: [{name: http, port: 80}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: address, namespace: shop}, spec: {type: ExternalName, externalName: 192.0.2.1}}
---
{apiVersion: v1, kind: Service, metadata: {name: late, namespace: shop}, spec: {clusterIP: None, ports: [{name: http, port: 80, targetPort: later}]}}
---
{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: late-1, namespace: shop, labels: {kubernetes.io/service-name: late}},
  addressType: IPv4, ports: [], endpoints: [{addresses: [10.244.9.1], nodeName: n1}]}
---
{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: late-2, namespace: shop, labels: {kubernetes.io/service-name: late}},
  addressType: IPv4, ports: [{name: more, port: 81}], endpoints: [{addresses: [10.244.9.2], conditions: {ready: false}}]}
";
    std::fs::write(folder.path().join("more.yaml"), more).unwrap();
    for (target, expected) in [
        (
            "shop/alias:http",
            "a Service of type ExternalName has no names of ports",
        ),
        ("shop/address", "the external name is an IP address"),
        (
            "shop/late:http",
            "no EndpointSlice with a ready endpoint has the port",
        ),
        (
            "shop/late:more",
            "no EndpointSlice with a ready endpoint has the port",
        ),
        ("shop/down", "no endpoint is ready"),
    ] {
        let words = ["explain", target, "--dns", "--node", "n1"];
        let view = json(folder.path(), &words);
        assert_eq!(view["responseCode"], "NXDOMAIN", "{target}");
        assert_eq!(view["missing"], expected, "{target}");
        assert_eq!(view["cname"], Value::Null, "{target}");
        let Output { code, text, errors } = run_in("200", folder.path(), &words);
        assert_eq!(code, Some(0), "{target}: {errors}");
        let words = format!("the name does not exist: {expected}");
        let is_said = text.contains("NXDOMAIN") && text.contains(&words);
        assert!(is_said && !text.contains("CNAME"), "{target}: {text}");
    }
    let view = json(folder.path(), &["explain", "shop/alias", "--dns"]);
    assert_eq!(view["cname"], "www.example.com");
    assert_eq!(view["missing"], Value::Null);
}

#[test]
fn an_external_name_that_is_no_name_has_no_data() {
    let folder = cluster();
    let more = "{apiVersion: v1, kind: Service, metadata: {name: alias, namespace: shop}, spec: {type: ExternalName}}";
    std::fs::write(folder.path().join("more.yaml"), more).unwrap();
    let words = ["explain", "shop/alias", "--dns"];
    let view = json(folder.path(), &words);
    assert_eq!(view["responseCode"], "NOERROR");
    assert_eq!(view["cname"], Value::Null);
    let Output { text, .. } = run_in("80", folder.path(), &words);
    let is_said = text.contains("no data: the external name is no name");
    assert!(is_said && !text.contains("CNAME"), "{text}");
}

/// Its IPv4 endpoints are nearer, and one of the IPv6 endpoints belongs to a pod that IPv4 has farther away.
#[test]
fn the_srv_answers_of_both_families_are_explained_as_the_server_answers() {
    let slice = |family: &str, endpoints: &str| {
        format!(
            "---
{{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {{name: uneven-{}, namespace: shop, labels: {{kubernetes.io/service-name: uneven}}}},
  addressType: {family}, ports: [{{name: http, port: 8080}}], endpoints: [{endpoints}]}}
",
            family.to_lowercase()
        )
    };
    let yaml = |v6: &str| {
        let v4 = "{addresses: [10.244.1.20], nodeName: n1, hostname: uneven-0}, {addresses: [10.244.3.20], nodeName: n3, hostname: uneven-1}";
        format!(
            "{{apiVersion: v1, kind: Service, metadata: {{name: uneven, namespace: shop, annotations: {{topology.ipvs-topo.io/weights: 'node=3,*=1'}}}},
  spec: {{clusterIP: None, ports: [{{name: http, port: 80}}]}}}}
{}{}",
            slice("IPv4", v4),
            slice("IPv6", v6)
        )
    };
    let far = "{addresses: ['fd00:3::20'], nodeName: n3, hostname: uneven-1}";
    let hidden = "{addresses: ['fd00:1::20'], nodeName: n1, hostname: uneven-1}";
    let folder = cluster();
    let explained = |v6: &str| {
        std::fs::write(folder.path().join("uneven.yaml"), yaml(v6)).unwrap();
        let words = ["explain", "shop/uneven:http", "--dns", "--node", "n1"];
        let view = json(folder.path(), &words);
        let answers = view["answers"].as_array().unwrap().clone();
        let Output { text, .. } = run_in("80", folder.path(), &words);
        (answers, text)
    };
    let (answers, text) = explained(far);
    let [v4, v6] = &answers[..] else {
        panic!("two families, not {answers:?}");
    };
    let cycle = |addresses: &[(&str, u64)]| -> Cycle {
        let cycle = addresses.iter();
        cycle
            .map(|(address, answers)| ([(*address).to_owned()].into(), *answers))
            .collect()
    };
    let near = [("10.244.1.20:8080", 3), ("10.244.3.20:8080", 1)];
    assert_eq!(levels(v4), cycle(&near));
    assert_eq!(levels(v6), cycle(&[("[fd00:3::20]:8080", 1)]));
    assert_eq!(
        (&v6["cycle"], &v6["levels"][0]["share"]),
        (&4.into(), &0.25.into())
    );
    assert!(!text.contains("No answer has these endpoints"), "{text}");

    let (answers, text) = explained(hidden);
    assert_eq!(levels(&answers[0]), cycle(&near));
    assert_eq!(levels(&answers[1]), Cycle::new());
    assert_eq!(answers[1]["refusalCode"], "OtherFamily");
    assert!(text.contains("No answer has these endpoints"), "{text}");
}

#[test]
fn settings_of_virtual_servers_are_noted() {
    let folder = cluster();
    for command in [&["explain", "shop/cart"][..], &["render"]] {
        for (option, value) in [
            ("--scheduler", "rr"),
            ("--external-ip-ranges", "192.0.2.0/24"),
        ] {
            let words = [command, &["--dns", "--node", "n1", option, value]].concat();
            let Output { code, errors, .. } = run_in("80", folder.path(), &words);
            assert_eq!(code, Some(0), "{errors}");
            let note = format!("note: {option} has no effect on answers of DNS\n");
            assert_eq!(errors, note);
        }
    }
}

#[track_caller]
fn refused(words: &[&str], message: &str) {
    let folder = cluster();
    let Output { code, text, errors } = run_in("80", folder.path(), words);
    assert_eq!((code, text.as_str()), (Some(2), ""), "{words:?}: {errors}");
    assert!(errors.contains(message), "{words:?}: {errors}");
}

#[test]
fn wrong_questions_exit_with_2_and_say_what_to_write() {
    let n1 = ["--node", "n1"].as_slice();
    for (target, more, message) in [
        ("shop/no", n1, "the input has no Service shop/no"),
        ("shop/cart", &[], "add --client IP, or --node NAME"),
        ("shop/cart", &["--client", "n1"], "such as 10.244.1.7"),
        (
            "shop/cart",
            &["--client", "192.0.2.1"],
            "--client 192.0.2.1: no Node has the address",
        ),
        (
            "shop/cart:x",
            n1,
            "Service shop/cart has no port x; it has http (80)",
        ),
        ("shop/cart", &["--socket", "/run/x"], "cannot be used with"),
    ] {
        refused(&[&["explain", target, "--dns"], more].concat(), message);
    }
    for (more, message) in [
        (&["-o", "save"][..], "use -o table or -o json"),
        (&["-n", "bank"], "no Service to show in namespace bank"),
        (&["shop/no"], "the input has no Service shop/no"),
    ] {
        refused(&[&["render", "--dns"], n1, more].concat(), message);
    }
}

#[test]
fn without_dns_a_message_says_how_to_ask() {
    let n1 = ["--node", "n1"].as_slice();
    let hint = "`ipvs-topo explain --dns` shows what DNS answers";
    for words in [
        ["explain", "shop/cart"],
        ["explain", "shop/away"],
        ["render", "shop/cart"],
    ] {
        refused(&[&words, n1].concat(), hint);
    }
    let client = ["explain", "shop/cart", "--client", "127.0.1.7"];
    refused(&[&client, n1].concat(), "--dns");
}

#[test]
fn a_node_that_does_not_exist_is_a_warning() {
    let folder = cluster();
    for words in [&["explain", "shop/cart"][..], &["render"]] {
        let words = [words, &["--dns", "--node", "n9", "--strict"]].concat();
        let Output { code, text, errors } = run_in("80", folder.path(), &words);
        assert_eq!(code, Some(2), "{errors}");
        assert!(
            format!("{text}{errors}").contains("there is no Node n9"),
            "{text}{errors}"
        );
    }
}
