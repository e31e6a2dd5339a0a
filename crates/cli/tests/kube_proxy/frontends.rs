//! Node ports, load balancers and the other frontends: which addresses have a virtual server, and
//! with which endpoints.

use crate::objects::{NODES, rendered, rendered_with, service, slice, table};

const BOTH: &[&str] = &["10.244.1.1:80", "10.244.2.1:80"];
const LOCAL: &[&str] = &["10.244.1.1:80"];

/// A Service of one TCP port with its fields, and two endpoints, the first of them on n1.
fn web(spec: &str) -> [String; 2] {
    [
        service("web", &format!("clusterIP: 10.96.0.10, {spec}")),
        slice("web", "80/TCP", &["10.244.1.1@n1", "10.244.2.1@n2"]),
    ]
}

const NODE_PORT: &str = "type: NodePort, ports: [{port: 80, nodePort: 30080}]";

#[test]
fn kp_ut_004_a_node_port_has_the_endpoints_of_its_family_at_the_cluster_ip_and_the_node() {
    let mut objects = web(NODE_PORT).to_vec();
    objects.push(slice("web", "80/TCP", &["fd00:10:244::1@n1"]));
    let expected = table(&[("-t 10.96.0.10:80", BOTH), ("-t 192.0.2.1:30080", BOTH)]);
    assert_eq!(rendered(&objects).0, expected);
}

#[test]
fn kp_ut_005_and_006_node_ports_of_udp_with_and_without_endpoints() {
    let spec = "type: NodePort, clusterIP: 10.96.0.10, ports: [{protocol: UDP, port: 53, nodePort: 30053}]";
    let service = service("dns", spec);
    let keys = ["-u 10.96.0.10:53", "-u 192.0.2.1:30053"];
    let with = slice("dns", "53/UDP", &["10.244.2.1@n2"]);
    let (servers, _) = rendered(&[service.clone(), with]);
    assert_eq!(
        servers,
        table(&keys.map(|key| (key, &["10.244.2.1:53"][..])))
    );
    assert_eq!(
        rendered(&[service]).0,
        table(&keys.map(|key| (key, &[][..])))
    );
}

/// Every address of the node, and its local endpoints alone for outside clients.
#[test]
fn kp_ut_007_and_008_node_ports_of_sctp_at_several_addresses_of_the_node() {
    let nodes = NODES.replacen(
        "{type: InternalIP, address: 192.0.2.1}",
        "{type: InternalIP, address: 192.0.2.1}, {type: InternalIP, address: 198.51.100.1}",
        1,
    );
    let keys = [
        "--sctp-service 10.96.0.10:80",
        "--sctp-service 192.0.2.1:30080",
        "--sctp-service 198.51.100.1:30080",
    ];
    let port = "type: NodePort, clusterIP: 10.96.0.10, ports: [{protocol: SCTP, port: 80, nodePort: 30080}]";
    let pods = slice("web", "80/SCTP", &["10.244.1.1@n1", "10.244.2.1@n2"]);
    let (servers, _) = rendered_with(&nodes, &[service("web", port), pods.clone()], &[]);
    assert_eq!(servers, table(&keys.map(|key| (key, BOTH))));
    let local = service("web", &format!("externalTrafficPolicy: Local, {port}"));
    let (servers, _) = rendered_with(&nodes, &[local, pods], &[]);
    let mut expected = table(&keys.map(|key| (key, BOTH)));
    expected.extend(table(&[("-f", LOCAL)]));
    assert_eq!(servers, expected);
}

#[test]
fn kp_ut_009_a_node_port_of_ipv6_and_nothing_in_ipv6_for_a_service_of_ipv4() {
    let spec = "type: NodePort, clusterIP: 'fd00:10:96::a', ports: [{port: 80, nodePort: 30080}]";
    let objects = [
        service("web", spec),
        slice(
            "web",
            "80/TCP",
            &["fd00:10:244:1::1@n1", "fd00:10:244:2::1@n2"],
        ),
        slice("web", "80/TCP", &["10.244.1.1@n1"]),
    ];
    let reals: &[&str] = &["[fd00:10:244:1::1]:80", "[fd00:10:244:2::1]:80"];
    let expected = table(&[
        ("-t [2001:db8::1]:30080", reals),
        ("-t [fd00:10:96::a]:80", reals),
    ]);
    assert_eq!(rendered(&objects).0, expected);
    let (servers, _) = rendered(&web(NODE_PORT));
    assert!(servers.keys().all(|key| !key.contains('[')), "{servers:?}");
}

#[test]
fn kp_ut_011_and_012_each_family_has_the_cluster_ip_and_the_endpoints_of_its_own() {
    let spec = "clusterIP: 10.96.0.10, clusterIPs: [10.96.0.10, 'fd00:10:96::a'], ipFamilies: [IPv4, IPv6], ports: [{port: 80}]";
    let dual = service("dual", spec);
    let six = service("six", "clusterIP: 'fd00:10:96::b', ports: [{port: 80}]");
    let four = service("four", "clusterIP: 10.96.0.11, ports: [{port: 80}]");
    let objects = [
        dual,
        slice("dual", "80/TCP", &["10.244.1.1@n1"]),
        slice("dual", "80/TCP", &["fd00:10:244::1@n1"]),
        six,
        slice("six", "80/TCP", &["10.244.1.2@n1"]),
        four,
    ];
    let expected = table(&[
        ("-t 10.96.0.10:80", LOCAL),
        ("-t 10.96.0.11:80", &[]),
        ("-t [fd00:10:96::a]:80", &["[fd00:10:244::1]:80"]),
        ("-t [fd00:10:96::b]:80", &[]),
    ]);
    assert_eq!(rendered(&objects).0, expected);
}

/// A load balancer address beside the cluster IP and the node port.
fn balanced(more: &str, ingress: &str) -> [String; 2] {
    let [service, slice] = web(&format!(
        "type: LoadBalancer, {more}ports: [{{port: 80, nodePort: 30080}}]"
    ));
    let status = format!("}}, status: {{loadBalancer: {{ingress: [{ingress}]}}}}}}\n");
    let service = service.strip_suffix("}}\n").unwrap();
    [format!("{service}{status}"), slice]
}

/// An address of the other family is skipped, as is a loopback address, which kube-proxy accepts.
#[test]
fn kp_ut_014_and_015_external_ips_of_the_family_with_and_without_endpoints() {
    let [service, pods] =
        web("externalIPs: [50.60.70.81, '2012::51', 127.0.0.1], ports: [{port: 80}]");
    let allowed = ["--external-ip-ranges=0.0.0.0/0,::/0"];
    let keys = ["-t 10.96.0.10:80", "-t 50.60.70.81:80"];
    let (servers, _) = rendered_with(NODES, &[service.clone(), pods], &allowed);
    assert_eq!(servers, table(&keys.map(|key| (key, BOTH))));
    let (servers, _) = rendered_with(NODES, &[service], &allowed);
    assert_eq!(servers, table(&keys.map(|key| (key, &[][..]))));
}

#[test]
fn kp_ut_017_a_load_balancer_address_has_all_endpoints() {
    let (servers, _) = rendered(&balanced("", "{ip: 203.0.113.7}"));
    let expected = table(&[
        ("-t 10.96.0.10:80", BOTH),
        ("-t 192.0.2.1:30080", BOTH),
        ("-t 203.0.113.7:80", BOTH),
    ]);
    assert_eq!(servers, expected);
}

#[test]
fn kp_ut_018_a_range_selects_the_addresses_with_node_ports() {
    let nodes = NODES.replacen(
        "{type: InternalIP, address: 192.0.2.1}",
        "{type: InternalIP, address: 192.0.2.1}, {type: InternalIP, address: 100.101.102.103}",
        1,
    );
    let local = web(&format!("externalTrafficPolicy: Local, {NODE_PORT}"));
    let options = ["--nodeport-addresses=100.101.102.0/24"];
    let (servers, _) = rendered_with(&nodes, &local, &options);
    let expected = table(&[
        ("-f", LOCAL),
        ("-t 10.96.0.10:80", BOTH),
        ("-t 100.101.102.103:30080", BOTH),
    ]);
    assert_eq!(servers, expected);
}

/// Outside clients have the local endpoints by a mark; kube-proxy's ipvs mode gives them to all.
#[test]
fn kp_ut_022_external_traffic_policy_local_gives_outside_clients_the_local_endpoints() {
    let (servers, _) = rendered(&balanced(
        "externalTrafficPolicy: Local, ",
        "{ip: 203.0.113.7}",
    ));
    let expected = table(&[
        ("-f", LOCAL),
        ("-t 10.96.0.10:80", BOTH),
        ("-t 192.0.2.1:30080", BOTH),
        ("-t 203.0.113.7:80", BOTH),
    ]);
    assert_eq!(servers, expected);
}

#[test]
fn kp_ut_049_an_address_of_mode_proxy_has_no_virtual_server_in_either_family() {
    for (address, key) in [
        ("203.0.113.7", "-t 203.0.113.7:80"),
        ("'2001:db8:1::7'", "-t [2001:db8:1::7]:80"),
    ] {
        let has = |ingress: String| {
            let more = "clusterIPs: [10.96.0.10, 'fd00:10:96::a'], ipFamilies: [IPv4, IPv6], ";
            rendered(&balanced(more, &ingress)).0.contains_key(key)
        };
        assert!(has(format!("{{ip: {address}}}")));
        assert!(has(format!("{{ip: {address}, ipMode: VIP}}")));
        assert!(!has(format!("{{ip: {address}, ipMode: Proxy}}")));
    }
}
