//! Endpoints that leave finish what they have.

use crate::agent::{Node, kernel, wait_kernel};
use crate::lab::{Lab, Place, sh, wait_until};
use crate::yaml::{NODES, slice, web};

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

#[test]
fn pain_04_a_connection_of_a_leaving_endpoint_lives_on_and_new_ones_go_elsewhere() {
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
        "the old connection still stands"
    );

    // It comes back: the weight is raised again, the connection never noticed.
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
    // The kernel keeps the closing connection for a while (FIN_WAIT, TIME_WAIT: two minutes), so
    // only its deletion at the deadline is waited for, in another test.
    assert!(kernel().contains(&real(&leaves, 0)));
}

#[test]
fn d9_without_connections_it_goes_at_once() {
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
        "draining is taken up again, not undone"
    );
    wait_kernel(&["-A -t 10.96.0.10:80 -s wrr", &real(&stays, 1)]);
}

/// How many real servers have no weight.
fn weightless() -> usize {
    let lines = kernel();
    lines.iter().filter(|line| line.ends_with("-w 0")).count()
}

#[test]
fn d8_a_long_rolling_update_leaves_idle_endpoints_for_later() {
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
