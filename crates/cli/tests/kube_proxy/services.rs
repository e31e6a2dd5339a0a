//! TestBuildServiceMap...: which Services have virtual servers at all, and what a change leaves.

use crate::objects::{rendered, service, slice, table};

#[test]
fn kp_ut_023_services_of_all_types_have_a_virtual_server_for_each_port_and_address() {
    let balancer = service(
        "balancer",
        "type: LoadBalancer, clusterIP: 10.96.0.13, ports: [{name: a, port: 8675, nodePort: 30061}, {name: b, port: 8676, nodePort: 30062}]",
    );
    let ingress = ", status: {loadBalancer: {ingress: [{ip: 203.0.113.3}]}}}\n";
    let balancer = format!("{}{ingress}", balancer.strip_suffix("}\n").unwrap());
    let objects = [
        service(
            "cluster",
            "clusterIP: 10.96.0.11, ports: [{name: a, port: 1234}, {name: b, port: 1235, protocol: UDP}]",
        ),
        service(
            "node",
            "type: NodePort, clusterIP: 10.96.0.12, ports: [{name: a, port: 345, nodePort: 30345}]",
        ),
        balancer,
    ];
    let expected = table(&[
        ("-t 10.96.0.11:1234", &[]),
        ("-u 10.96.0.11:1235", &[]),
        ("-t 10.96.0.12:345", &[]),
        ("-t 192.0.2.1:30345", &[]),
        ("-t 10.96.0.13:8675", &[]),
        ("-t 10.96.0.13:8676", &[]),
        ("-t 192.0.2.1:30061", &[]),
        ("-t 192.0.2.1:30062", &[]),
        ("-t 203.0.113.3:8675", &[]),
        ("-t 203.0.113.3:8676", &[]),
    ]);
    assert_eq!(rendered(&objects).0, expected);
    assert_eq!(rendered(&[]).0, table(&[]));
}

#[test]
fn kp_ut_024_and_025_headless_services_and_names_have_no_virtual_server() {
    let objects = [
        service("headless", "clusterIP: None, ports: [{port: 80}]"),
        service("bare", "clusterIP: None"),
        service(
            "name",
            "type: ExternalName, externalName: example.com, clusterIP: 10.96.0.14, ports: [{port: 80}]",
        ),
        slice("headless", "80/TCP", &["10.244.1.1@n1"]),
    ];
    assert_eq!(rendered(&objects).0, table(&[]));
}

/// The state after a change depends on the objects alone; the reconciler's own tests check the way.
#[test]
fn kp_ut_026_a_service_that_becomes_a_load_balancer_and_back_has_the_same_cluster_ip() {
    let ports = "clusterIP: 10.96.0.11, ports: [{port: 80, nodePort: 30080}]";
    let node_port = service("s", &format!("type: NodePort, {ports}"));
    let cluster = service("s", "clusterIP: 10.96.0.11, ports: [{port: 80}]");
    let own = ("-t 10.96.0.11:80", &[][..]);
    assert_eq!(rendered(&[cluster]).0, table(&[own]));
    assert_eq!(
        rendered(&[node_port]).0,
        table(&[own, ("-t 192.0.2.1:30080", &[])])
    );
}

#[test]
fn kp_ut_034_several_ports_of_one_address() {
    let ports = |ports: &str| {
        let spec = format!("clusterIP: 10.96.0.11, ports: [{ports}]");
        rendered(&[service("s", &spec)]).0
    };
    let two = ports("{name: a, port: 1234}, {name: b, port: 1235}");
    assert_eq!(
        two,
        table(&[("-t 10.96.0.11:1234", &[]), ("-t 10.96.0.11:1235", &[])])
    );
    let three =
        ports("{name: a, port: 1234}, {name: b, port: 1235}, {name: c, port: 1236, protocol: UDP}");
    assert_eq!(three.len(), 3);
    assert!(three.contains_key("-u 10.96.0.11:1236"));
}
