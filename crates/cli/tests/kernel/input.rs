//! Each kind of invalid input gives one clear message, and valid objects are still served.

use crate::agent::{Node, kernel, wait_kernel};
use crate::lab::{Lab, wait_until};
use crate::yaml::{NODES, Service, slice, web};

const BOMB: &str = include_str!("../../../cluster/tests/cases/bomb/input/bomb.yaml");
const DEEP: &str = include_str!("../../../cluster/tests/cases/bomb/input/deep.yaml");

/// A node with one valid Service.
fn node() -> Node {
    let node = Node::new().with(&["--service-cidr", "10.96.0.0/12"]);
    let endpoints = ["10.244.1.1 n1", "10.244.2.1 n3"];
    let service = Service {
        annotations: "topology.ipvs-topo.io/weights: 'node=80,*=20'",
        ..web("good", &["10.96.0.10"])
    };
    node.write("nodes.yaml", NODES);
    node.write("good.yaml", &service.yaml());
    node.write(
        "slice.yaml",
        &slice("good", "good-4", &[("TCP", 80, 8080)], &endpoints),
    );
    node
}

const GOOD: [&str; 3] = [
    "-A -t 10.96.0.10:80 -s wrr",
    "-a -t 10.96.0.10:80 -r 10.244.1.1:8080 -m -w 4",
    "-a -t 10.96.0.10:80 -r 10.244.2.1:8080 -m -w 1",
];

#[test]
fn a_yaml_bomb_is_reported_and_valid_files_are_served() {
    let _lab = Lab::new();
    let mut node = node();
    node.start();
    wait_kernel(&GOOD);
    node.write("bomb.yaml", BOMB);
    node.write("deep.yaml", DEEP);
    for (file, words) in [
        ("bomb.yaml", "aliases expand to more than"),
        ("deep.yaml", "nested more than 64 levels deep"),
    ] {
        node.wait_log(words);
        let log = node.log();
        let mut said = log.lines().filter(|line| line.contains(words));
        let line = said.next().unwrap();
        assert!(line.contains(file) && line.contains("WARN"), "{line}");
        assert!(line.contains("write objects as `kubectl get -o yaml` does"));
        assert_eq!(said.next(), None);
    }
    node.write("other.yaml", &web("other", &["10.96.0.11"]).yaml());
    let all = [&GOOD[..], &["-A -t 10.96.0.11:80 -s wrr"]].concat();
    wait_kernel(&all);
    // The files are also skipped at the start.
    node.kill();
    node.start();
    wait_kernel(&all);
}

/// Annotations without their prefix, and a part of the expected message.
type Fault = (&'static [(&'static str, &'static str)], &'static str);

const FAULTS: &[Fault] = &[
    (&[("weights", "node=80,zone=x")], "is out of range"),
    (&[("weights", "zone=10001")], "is out of range"),
    (&[("weights", "zone")], "has no weight"),
    (&[("keys", "zone,zone")], "level `zone` is listed twice"),
    (&[("keys", "*,zone")], "`*` comes before another level"),
    (&[("keys", "-rack")], "is not a label key"),
    (&[("keys", "node,,zone")], "a level is empty"),
    (
        &[("keys", "a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q")],
        "at most 16 are allowed",
    ),
    (
        &[("keys", "zone"), ("weights", "zone=1")],
        "keep one of them",
    ),
    (&[("mode", "Hard"), ("keys", "zone")], "in lower case"),
    (
        &[("mode", "hard"), ("keys", "zone,*")],
        "remove `*`, or use mode prefer",
    ),
    (
        &[("mode", "prefer"), ("keys", "zone")],
        "end the keys with `*`",
    ),
    (&[("mode", "weighted"), ("keys", "zone")], "needs weights"),
    (&[("mode", "hard")], "needs keys"),
    (&[("mode", "balanced")], "needs keys, such as keys: zone,*"),
    (
        &[("empty-tier", "cascade")],
        "needs weights or keys beside it",
    ),
    (&[("weight", "zone=1")], "unknown annotation"),
    (&[("policy", "Near")], "give the name of a TopologyPolicy"),
    (
        &[("policy", "near"), ("keys", "zone")],
        "the named policy decides alone",
    ),
    (
        &[("weights", "*=1"), ("empty-tier", "Cascade")],
        "use cascade or renormalize",
    ),
    (
        &[("weights", "*=1"), ("weighting", "share")],
        "use tier-share or endpoint-bias",
    ),
    (
        &[("weights", "zone=1,*=1"), ("min-ready", "zone=0")],
        "from 1 to 10000 or 0% to 100%",
    ),
    (
        &[("weights", "zone=1,*=1"), ("min-ready", "node=2")],
        "level `node` is not in the list",
    ),
    (
        &[("weights", "*=1"), ("overprovision", "99")],
        "a percentage from 100 to 10000, or off",
    ),
    (
        &[("weights", "*=1"), ("max-overload", "-1")],
        "a percentage from 0 to 10000, or off",
    ),
    (
        &[("weights", "*=1"), ("avoid", "*")],
        "would avoid every endpoint",
    ),
    (
        &[("weights", "zone=1"), ("on-no-match", "Drop")],
        "use reject or drop",
    ),
    (
        &[("weights", "*=1"), ("slow-start", "30s")],
        "whole seconds from 0 to 86400",
    ),
    (
        &[("weights", "*=1"), ("scheduler", "WRR")],
        "is not a scheduler",
    ),
];

#[test]
fn every_invalid_annotation_is_reported_once_and_ignored() {
    let _lab = Lab::new();
    let mut node = node();
    node.start();
    for (number, (annotations, _)) in FAULTS.iter().enumerate() {
        let lines: Vec<_> = annotations
            .iter()
            .map(|(name, value)| format!("topology.ipvs-topo.io/{name}: '{value}'"))
            .collect();
        let (name, ip) = (format!("bad{number}"), format!("10.96.1.{number}"));
        let (ips, annotations) = ([ip.as_str()], lines.join(", "));
        let service = Service {
            annotations: &annotations,
            ..web(&name, &ips)
        };
        node.write(&format!("{name}.yaml"), &service.yaml());
    }
    let servers = || {
        kernel()
            .iter()
            .filter(|line| line.starts_with("-A"))
            .count()
    };
    wait_until("every Service", || servers() == FAULTS.len() + 1);
    let (log, held) = (node.log(), kernel());
    for (number, (annotations, words)) in FAULTS.iter().enumerate() {
        let object = format!("bad{number}.yaml:");
        let about = log.lines().filter(|line| line.contains(&object));
        let said: Vec<_> = about.filter(|line| line.contains(words)).collect();
        assert_eq!(said.len(), 1, "{words}: {log}");
        for part in [
            "WARN",
            "topology.ipvs-topo.io/",
            &format!("Service t/bad{number}"),
        ] {
            assert!(said[0].contains(part), "{part}: {}", said[0]);
        }
        let server = format!("-A -t 10.96.1.{number}:80 -s wrr");
        assert!(held.contains(&server), "{annotations:?}");
    }
    assert!(GOOD.iter().all(|line| held.iter().any(|held| held == line)));
}
