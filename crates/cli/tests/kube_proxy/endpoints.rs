//! Endpoint slices and traffic policies: which endpoints are real servers of the cluster IP,
//! and of the address for outside clients.

use crate::objects::{rendered, service, slice};

const CLUSTER_IP: &str = "-t 10.96.0.10:80";

/// The numbers of the endpoints at the cluster IP, and for outside clients at the load balancer
/// address; `None` if outside clients have the same as all.
fn chosen(spec: &str, endpoints: &[&str]) -> (Vec<u8>, Option<Vec<u8>>) {
    let objects = [
        service("web", &format!("clusterIP: 10.96.0.10, {spec}")),
        slice("web", "80/TCP", endpoints),
    ];
    let (servers, _) = rendered(&objects);
    let numbers = |key: &str| -> Option<Vec<u8>> {
        let reals = servers.get(key)?.iter();
        let last = |real: &String| real.split(['.', ':']).nth(3)?.parse().ok();
        reals.map(last).collect()
    };
    (numbers(CLUSTER_IP).unwrap(), numbers("-f"))
}

const INTERNAL: &str = "ports: [{port: 80}]";
const EXTERNAL: &str = "type: NodePort, ports: [{port: 80, nodePort: 30080}]";

fn with(policy: &str, spec: &str) -> String {
    format!("{policy}, {spec}")
}

#[test]
fn kp_ut_036_three_ready_endpoints_of_four_are_real_servers_and_none_without_a_slice() {
    let endpoints = ["10.0.1.1@n1", "10.0.1.2@n2", "10.0.1.3@n2", "10.0.1.4@n2!"];
    assert_eq!(chosen(INTERNAL, &endpoints), (vec![1, 2, 3], None));
    assert_eq!(chosen(INTERNAL, &[]), (vec![], None));
}

#[test]
fn kp_ut_041_internal_traffic_policy_local_has_the_local_endpoints() {
    let local = with("internalTrafficPolicy: Local", INTERNAL);
    let two = ["10.0.1.1@n2", "10.0.1.2@n2"];
    assert_eq!(chosen(INTERNAL, &two).0, [1, 2]);
    assert_eq!(chosen(&local, &two).0, [0; 0]);
    assert_eq!(chosen(&local, &["10.0.1.1@n1", "10.0.1.2@n2"]).0, [1]);
    let three = ["10.0.1.1@n1", "10.0.1.2@n1", "10.0.1.3@n2"];
    assert_eq!(chosen(&local, &three).0, [1, 2]);
}

/// Two ready endpoints, one of them local; two that serve while they terminate; one that does not
/// serve.
const MIXED: [&str; 5] = [
    "10.0.1.1@n1",
    "10.0.1.2@n2",
    "10.0.1.3@n1~",
    "10.0.1.4@n2~",
    "10.0.1.5@n1x",
];

#[test]
fn kp_ut_042_ready_endpoints_are_used_while_others_terminate() {
    assert_eq!(chosen(EXTERNAL, &MIXED), (vec![1, 2], None));
    assert_eq!(chosen(EXTERNAL, &[]), (vec![], None));
}

#[test]
fn kp_ut_043_with_external_traffic_policy_local_outside_clients_have_the_local_ready_ones() {
    let local = with("externalTrafficPolicy: Local", EXTERNAL);
    assert_eq!(chosen(&local, &MIXED), (vec![1, 2], Some(vec![1])));
}

#[test]
fn kp_ut_044_without_ready_endpoints_those_that_serve_are_used() {
    let endpoints = [
        "10.0.1.1@n1~",
        "10.0.1.2@n2~",
        "10.0.1.3@n1x",
        "10.0.1.4@n2!",
    ];
    assert_eq!(chosen(EXTERNAL, &endpoints), (vec![1, 2], None));
}

#[test]
fn kp_ut_045_of_local_endpoints_those_that_serve_are_used_although_others_are_ready_elsewhere() {
    let local = with("externalTrafficPolicy: Local", EXTERNAL);
    let endpoints = [
        "10.0.1.1@n1~",
        "10.0.1.2@n1x",
        "10.0.1.3@n2",
        "10.0.1.4@n2~",
    ];
    assert_eq!(chosen(&local, &endpoints), (vec![3], Some(vec![1])));
}
