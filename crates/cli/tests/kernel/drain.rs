//! Connections of removed endpoints continue until they are closed or the deadline is over.

use std::net::{TcpListener, TcpStream};

use serde_json::Value;

use crate::agent::{Node, kernel, wait_kernel};
use crate::lab::{Lab, Place, other_end, sh, talk, wait_until};
use crate::yaml::{NODES, Service, slice, web};

const PORTS: &[(&str, u16, u16)] = &[("TCP", 80, 8080)];

fn setup(lab: &mut Lab, arguments: &[&str]) -> (Node, Place, Place, Place) {
    let (client, stays, leaves) = (lab.pod(), lab.pod(), lab.pod());
    let node = Node::new()
        .with(&["--service-cidr", "10.96.0.0/12"])
        .with(arguments);
    let service = web("web", &["10.96.0.10"]);
    node.write("nodes.yaml", NODES);
    node.write("service.yaml", &service.yaml());
    (node, client, stays, leaves)
}

fn endpoints(node: &Node, pods: &[&Place]) {
    let lines: Vec<_> = pods.iter().map(|pod| format!("{} n1", pod.v4)).collect();
    node.write("v4.yaml", &slice("web", "web-4", PORTS, &lines));
}

fn real(pod: &Place, weight: u32) -> String {
    format!("-a -t 10.96.0.10:80 -r {}:8080 -m -w {weight}", pod.v4)
}

/// State and remaining seconds of a real server, from `status`.
fn shown(node: &Node, pod: &Place) -> (String, Option<u64>) {
    let socket = node.socket();
    let status = sh(&format!(
        "ipvs-topo status t/web -o json --socket {}",
        socket.display()
    ));
    let status: Value = serde_json::from_str(&status).unwrap();
    let reals = status["virtualServers"][0]["realServers"]
        .as_array()
        .unwrap();
    let is_pod = |real: &&Value| real["address"] == pod.v4.to_string();
    let real = reals.iter().find(is_pod).unwrap();
    let state = real["state"].as_str().unwrap().to_owned();
    (state, real["drainSecondsLeft"].as_u64())
}

#[test]
fn pain_04_a_connection_of_a_draining_endpoint_continues_and_new_ones_go_elsewhere() {
    let mut lab = Lab::new();
    let (mut node, client, stays, leaves) = setup(&mut lab, &[]);
    let _leaving = leaves.spawn(&format!(
        "guest serve --listen {}:8080 --name leaves --hold",
        leaves.v4
    ));
    leaves.wait_for_server(&format!("{}:8080", leaves.v4));
    endpoints(&node, &[&leaves]);
    node.start();
    wait_kernel(&["-A -t 10.96.0.10:80 -s wrr", &real(&leaves, 1)]);
    let held = client.connect("10.96.0.10:80");
    wait_until("the connection", || {
        sh("ipvsadm -Ln").contains("Masq    1      1")
    });

    let _staying = stays.serve(8080, "stays");
    endpoints(&node, &[&stays]);
    wait_kernel(&[
        "-A -t 10.96.0.10:80 -s wrr",
        &real(&stays, 1),
        &real(&leaves, 0),
    ]);
    let answers = client.sh("guest load --target 10.96.0.10:80 --connections 20 -o json");
    assert!(answers.contains("\"stays\":20"), "{answers}");
    assert!(
        sh("ipvsadm -Ln").contains("Masq    0      1"),
        "the old connection continues"
    );

    // When the endpoint returns, its weight is raised, and the connection continues.
    endpoints(&node, &[&stays, &leaves]);
    wait_kernel(&[
        "-A -t 10.96.0.10:80 -s wrr",
        &real(&stays, 1),
        &real(&leaves, 1),
    ]);
    assert!(
        sh("ipvsadm -Ln").contains("Masq    1      1"),
        "edited, not deleted and added"
    );
    endpoints(&node, &[&stays]);
    wait_kernel(&[
        "-A -t 10.96.0.10:80 -s wrr",
        &real(&stays, 1),
        &real(&leaves, 0),
    ]);

    drop(held);
    // The kernel keeps the closed connection for up to two minutes (FIN_WAIT, TIME_WAIT). Another
    // test checks the deletion at the deadline.
    assert!(kernel().contains(&real(&leaves, 0)));
}

#[test]
fn d9_without_connections_a_real_server_is_deleted_at_once() {
    let mut lab = Lab::new();
    let (mut node, _client, stays, leaves) = setup(&mut lab, &[]);
    endpoints(&node, &[&stays, &leaves]);
    node.start();
    wait_kernel(&[
        "-A -t 10.96.0.10:80 -s wrr",
        &real(&stays, 1),
        &real(&leaves, 1),
    ]);
    endpoints(&node, &[&stays]);
    wait_kernel(&["-A -t 10.96.0.10:80 -s wrr", &real(&stays, 1)]);
}

#[test]
fn d9_the_deadline_ends_a_drain_even_across_a_restart() {
    let mut lab = Lab::new();
    let (mut node, client, stays, leaves) = setup(&mut lab, &["--drain-timeout", "10s"]);
    let _servers = [&stays, &leaves].map(|pod| {
        let listen = format!("{}:8080", pod.v4);
        let server = pod.spawn(&format!("guest serve --listen {listen} --name pod --hold"));
        pod.wait_for_server(&listen);
        server
    });
    endpoints(&node, &[&stays, &leaves]);
    node.start();
    let _held = [
        client.connect("10.96.0.10:80"),
        client.connect("10.96.0.10:80"),
    ];
    wait_until("the connection", || {
        sh("ipvsadm -Ln").contains("Masq    1      1")
    });
    endpoints(&node, &[&stays]);
    wait_kernel(&[
        "-A -t 10.96.0.10:80 -s wrr",
        &real(&stays, 1),
        &real(&leaves, 0),
    ]);
    node.kill();
    node.start();
    assert!(
        kernel().contains(&real(&leaves, 0)),
        "the new agent continues the drain"
    );
    let (state, left) = shown(&node, &leaves);
    assert_eq!(state, "draining");
    assert!(left.is_some_and(|left| left < 10), "{left:?}");
    assert_eq!(shown(&node, &stays), ("active".to_owned(), None));
    wait_kernel(&["-A -t 10.96.0.10:80 -s wrr", &real(&stays, 1)]);
}

/// A real server's deadline in the file, in milliseconds since boot.
fn deadline(node: &Node, pod: &Place) -> Option<u64> {
    let record = std::fs::read_to_string(node.state().join("draining")).unwrap();
    let real = format!(" -r {}:8080", pod.v4);
    let last = record.lines().rfind(|line| line.contains(&real))?;
    let until = last.split(" until ").nth(1)?;
    Some(until.split(' ').next().unwrap().parse().unwrap())
}

/// Milliseconds since boot.
fn uptime() -> u64 {
    let uptime = std::fs::read_to_string("/proc/uptime").unwrap();
    let whole = uptime.split(' ').next().unwrap().replace('.', "");
    whole.parse::<u64>().unwrap() * 10
}

/// A connection with each of two real servers: first that of `one`.
fn connect_both(client: &Place, one: &TcpListener, other: &TcpListener) -> [[TcpStream; 2]; 2] {
    let held = [(); 2].map(|()| client.connect("10.96.0.10:80"));
    let list = sh("ipvsadm -Ln --connection");
    let at_one = |held: &TcpStream| {
        let end = format!("{} ", held.local_addr().unwrap());
        let line = list.lines().find(|line| line.contains(&end)).unwrap();
        line.contains(&one.local_addr().unwrap().to_string())
    };
    let [first, second] = held;
    let (to_one, to_other) = if at_one(&first) {
        (first, second)
    } else {
        (second, first)
    };
    let served = [other_end(one, &to_one), other_end(other, &to_other)];
    let [at_one, at_other] = served;
    [[to_one, at_one], [to_other, at_other]]
}

#[test]
fn d9_repeated_kills_of_the_agent_do_not_change_a_deadline() {
    let mut lab = Lab::new();
    let (mut node, client, stays, leaves) = setup(&mut lab, &["--drain-timeout", "20s"]);
    let [one, other] = [&stays, &leaves].map(|pod| pod.listen(8080));
    endpoints(&node, &[&stays, &leaves]);
    node.start();
    let [kept, leaving] = connect_both(&client, &one, &other);
    endpoints(&node, &[&stays]);
    wait_until("the drain", || kernel().contains(&real(&leaves, 0)));
    let until = deadline(&node, &leaves).expect("a deadline");
    let mut restarts = 0;
    // Each agent runs for less than the drain timeout.
    wait_until("the end of the drain", || {
        node.kill();
        node.start();
        restarts += 1;
        if uptime() < until {
            assert_eq!(
                deadline(&node, &leaves),
                Some(until),
                "after {restarts} restarts"
            );
            talk(&leaving[0], &leaving[1]);
        }
        !kernel().contains(&real(&leaves, 0))
    });
    assert!(restarts > 1 && uptime() >= until, "{restarts} restarts");
    assert_eq!(deadline(&node, &leaves), None);
    talk(&kept[0], &kept[1]);
}

#[test]
fn d9_a_restart_gives_no_deadline_to_an_endpoint_that_is_no_longer_chosen() {
    let mut lab = Lab::new();
    let (mut node, client, far, leaves) = setup(&mut lab, &["--drain-timeout", "2s"]);
    let here = lab.pod();
    let [one, other] = [&far, &leaves].map(|pod| pod.listen(8080));
    let place = |node: &Node, pods: &[(&Place, &str)]| {
        let lines: Vec<_> = pods
            .iter()
            .map(|(pod, node)| format!("{} {node}", pod.v4))
            .collect();
        node.write("v4.yaml", &slice("web", "web-4", PORTS, &lines));
    };
    place(&node, &[(&far, "n2"), (&leaves, "n2")]);
    node.start();
    let [waiting, leaving] = connect_both(&client, &one, &other);
    let local = Service {
        spec: "  internalTrafficPolicy: Local\n",
        ..web("web", &["10.96.0.10"])
    };
    place(&node, &[(&far, "n2"), (&leaves, "n2"), (&here, "n1")]);
    node.write("service.yaml", &local.yaml());
    let drained = [
        "-A -t 10.96.0.10:80 -s wrr",
        &real(&here, 1),
        &real(&far, 0),
        &real(&leaves, 0),
    ];
    wait_kernel(&drained);
    node.kill();
    node.start();
    assert_eq!([&far, &leaves].map(|pod| deadline(&node, pod)), [None; 2]);
    assert_eq!(shown(&node, &far), ("waiting".to_owned(), None));
    talk(&leaving[0], &leaving[1]);
    place(&node, &[(&far, "n2"), (&here, "n1")]);
    wait_kernel(&drained[..3]);
    // One drain timeout is over. The other real server remains after a further restart.
    node.kill();
    node.start();
    wait_kernel(&drained[..3]);
    talk(&waiting[0], &waiting[1]);
    assert_eq!(deadline(&node, &far), None);
}

/// Number of real servers with weight 0.
fn weightless() -> usize {
    let lines = kernel();
    lines.iter().filter(|line| line.ends_with("-w 0")).count()
}

#[test]
fn d8_a_long_rolling_update_deletes_idle_endpoints_later() {
    let _lab = Lab::new();
    let mut node = Node::new().with(&["--service-cidr", "10.96.0.0/12", "--drain-timeout", "20s"]);
    node.write("nodes.yaml", NODES);
    node.write("web.yaml", &web("web", &["10.96.0.10"]).yaml());
    let roll = |node: &Node, round: usize| {
        let pods: Vec<_> = (0..600)
            .map(|pod| format!("10.244.{}.{} n2", 10 * round + pod / 200, pod % 200))
            .collect();
        node.write("slice.yaml", &slice("web", "web-4", PORTS, &pods));
    };
    let wait_round = |round: usize| {
        let first = format!(
            "-a -t 10.96.0.10:80 -r 10.244.{}.0:8080 -m -w 1",
            10 * round
        );
        wait_until("the next endpoints", || kernel().contains(&first));
    };
    roll(&node, 0);
    node.start();
    roll(&node, 1);
    wait_round(1);
    wait_until("the first to go at once", || kernel().len() == 601);
    roll(&node, 2);
    wait_round(2);
    wait_until("the next to wait", || {
        (kernel().len(), weightless()) == (1_201, 600)
    });
    roll(&node, 1);
    wait_round(1);
    wait_until("them to return", || {
        (kernel().len(), weightless()) == (1_201, 600)
    });
    wait_until("the rest to go", || {
        (kernel().len(), weightless()) == (601, 0)
    });
}
