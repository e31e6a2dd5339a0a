//! Way C: a `CoreDNS` in each zone prefers the endpoints of its zone, without the servers of this project.

use crate::cluster::{NODES, install, kubectl};
use crate::cluster_dns::{
    CLUSTER_DNS, COREDNS, Objects, SYSTEM, addresses, coredns_on, create_cart, indented,
    lines_below, replaced, wait_for_rollout, wait_until_cart_is, wait_until_serving,
};

#[test]
fn coredns_of_a_zone_prefers_the_endpoints_there() {
    install();
    let _coredns = Objects::apply(coredns_of_zones());
    for zone in ["z1", "z2", "z3"] {
        wait_for_rollout(&format!("deployment/coredns-{zone}"));
    }
    let servers = addresses(SYSTEM, "k8s-app=kube-dns");
    wait_until_serving(|node| servers.get(node).cloned().into_iter().collect());
    let _cart = create_cart("");
    for node in NODES {
        wait_until_cart_is(&[node], node, CLUSTER_DNS);
    }
    let here = "--field-selector=spec.nodeName=n1";
    let shared = "--namespace=shared";
    kubectl(&[shared, "label", "pods", "--selector=app=web", here, "cart-"]);
    wait_until_cart_is(&["n2", "n3"], "n1", CLUSTER_DNS);
    for node in ["n2", "n3"] {
        wait_until_cart_is(&[node], node, CLUSTER_DNS);
    }
}

/// A Deployment for each zone, and cluster DNS that prefers the client's zone.
fn coredns_of_zones() -> String {
    let (shared, deployment) = COREDNS.rsplit_once("---\n").unwrap();
    let (before, rest) = shared.split_once("        kubernetes ").unwrap();
    let (_, after) = rest.split_once("        }\n").unwrap();
    let lines = replaced(lines_below("### C. "), "cart.shop.", "cart.shared.");
    let shared = format!("{before}{}{after}", indented(&lines, 8));
    let address = format!("clusterIP: {CLUSTER_DNS}\n");
    // The name of PreferSameZone that Kubernetes 1.33 has, too.
    let nearest = format!("{address}  trafficDistribution: PreferClose\n");
    let mut objects = coredns_on("", &replaced(&shared, &address, &nearest));
    for (zone, node) in ["z1", "z2", "z3"].into_iter().zip(NODES) {
        let labels = format!("{{k8s-app: kube-dns, zone: {zone}}}");
        let of_zone = replaced(deployment, "{k8s-app: kube-dns}", &labels);
        let name = format!("  name: coredns-{zone}\n  namespace");
        let of_zone = replaced(&of_zone, "  name: coredns\n  namespace", &name);
        let variable = format!("env: [{{name: ZONE, value: {zone}}}]\n        args:");
        let of_zone = replaced(&of_zone, "args:", &variable);
        objects += "---\n";
        objects += &coredns_on(node, &of_zone);
    }
    objects
}
