//! The lab behaves as a real cluster.

use crate::cluster::{Namespace, kubectl, outside, text};
use crate::web;

/// Lines of `kubectl get pods`: node and address.
fn pods(namespace: &Namespace) -> Vec<(String, String)> {
    let columns = "-o=jsonpath={range .items[*]}{.spec.nodeName} {.status.podIP}{\"\\n\"}{end}";
    let listed = namespace.kubectl(&["get", "pods", "--selector=app=web", columns]);
    let mut pods: Vec<_> = listed
        .lines()
        .map(|line| line.split_once(' ').unwrap())
        .map(|(node, address)| (node.to_owned(), address.to_owned()))
        .collect();
    pods.sort();
    pods
}

#[test]
fn pods_of_our_own_images_run_in_three_zones_and_an_outsider_reaches_each() {
    let namespace = web::start();
    let pods = pods(&namespace);
    let nodes: Vec<&str> = pods.iter().map(|(node, _)| node.as_str()).collect();
    assert_eq!(nodes, ["n1", "n2", "n3"]);
    for (node, address) in &pods {
        let ask = format!("exec 3<>/dev/tcp/{address}/8080; cat <&3");
        let done = outside("timeout")
            .args(["10", "bash", "-c", &ask])
            .output()
            .unwrap();
        assert_eq!(text(&done), format!("{node}\n"));
    }
    let zones = kubectl(&[
        "get",
        "nodes",
        "-o=jsonpath={.items[*].metadata.labels.topology\\.kubernetes\\.io/zone}",
    ]);
    assert_eq!(zones, "z1 z2 z3");
}

#[test]
fn each_node_runs_another_of_the_kernels_that_are_supported() {
    let kernels = "-o=jsonpath={.items[*].status.nodeInfo.kernelVersion}";
    let kernels = kubectl(&["get", "nodes", kernels]);
    let kernels: Vec<&str> = kernels.split(' ').collect();
    let lines = [
        kernels[0].starts_with("6.1."),
        kernels[1].starts_with("6.12."),
    ];
    assert_eq!(lines, [true, true], "{kernels:?}");
    let newest: u32 = kernels[2].split('.').next().unwrap().parse().unwrap();
    assert!(newest >= 7, "{kernels:?}");
}

#[test]
fn the_agents_image_holds_an_agent_and_an_nft_that_start() {
    let namespace = Namespace::new();
    for (name, program, says) in [
        ("agent", "/usr/bin/ipvs-topo", "ipvs-topo "),
        ("nft", "/usr/bin/nft", "nftables v"),
    ] {
        let image = format!(
            "registry.invalid/ipvs-topo/agent:{}",
            env!("CARGO_PKG_VERSION")
        );
        let run = ["run", name, "--restart=Never", "--image", &image];
        let never = [
            "--image-pull-policy=Never",
            "--command",
            "--",
            program,
            "--version",
        ];
        namespace.kubectl(&[&run[..], &never].concat());
        let done = "--for=jsonpath={.status.phase}=Succeeded";
        let pod = format!("pod/{name}");
        namespace.kubectl(&["wait", done, "--timeout=120s", &pod]);
        let said = namespace.kubectl(&["logs", name]);
        assert!(said.starts_with(says), "{said}");
    }
}
