//! The order of the kernel's `wrr`, compared with the model in explanations (Q44).

use std::net::UdpSocket;
use std::time::Duration;

use topology_core::quantise::wrr;

use crate::lab::{NODE_V4, sh};

/// Real servers of the longest list.
const SERVERS: usize = 10;
const PICKS: usize = 500;
const FIRST_PORT: usize = 8000;
/// Far fewer datagrams than fit into a socket's buffer.
const RECEIVE_EVERY: usize = 50;

/// Twenty lists: those of the reference, then generated ones of growing length and weight.
fn lists() -> Vec<Vec<u32>> {
    let mut lists: Vec<Vec<u32>> = vec![
        vec![4, 3, 2],
        vec![5, 1],
        vec![96, 6, 6, 6, 1, 1, 1, 1, 1, 1],
        vec![20, 20, 20, 3, 3, 3, 3, 3],
        vec![20, 10],
        vec![0, 7, 0, 7],
        vec![1, 1, 1],
        vec![65_535, 1],
    ];
    let mut state = 44_u32;
    let mut below = |limit: u32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) % limit
    };
    for number in 0..12 {
        let length = 2 + below(u32::try_from(SERVERS).unwrap() - 1);
        let step = 1 + below(3);
        lists.push((0..length).map(|_| step * below(3 + 20 * number)).collect());
    }
    lists
}

/// Creates a virtual server with these real servers; returns its address and port.
fn program(number: usize, weights: &[u32]) -> String {
    let target = format!("10.99.0.{}:80", number + 1);
    sh(&format!("ipvsadm -A -u {target} -s rr"));
    // The kernel inserts a new real server at the head of its list.
    for (at, weight) in weights.iter().enumerate().rev() {
        let real = format!("10.245.0.{}:{}", number + 1, FIRST_PORT + at);
        sh(&format!("ipvsadm -a -u {target} -r {real} -m -w {weight}"));
    }
    // A newly set scheduler starts at the head and at the largest weight.
    sh(&format!("ipvsadm -E -u {target} -s wrr"));
    target
}

/// Sends a datagram from each of [`PICKS`] ports, each a new connection for the kernel; returns the
/// receiver of each.
fn picks(target: &str, servers: &[UdpSocket]) -> Vec<Option<usize>> {
    let clients: Vec<_> = (0..PICKS)
        .map(|_| UdpSocket::bind((NODE_V4, 0)).unwrap())
        .collect();
    let mut picked = vec![None; PICKS];
    for (number, client) in clients.iter().enumerate() {
        // A list with only zero weights refuses the datagram.
        let _refused = client.send_to(&number.to_be_bytes(), target);
        if number % RECEIVE_EVERY == 0 {
            receive(servers, &mut picked);
        }
    }
    std::thread::sleep(Duration::from_millis(100));
    receive(servers, &mut picked);
    picked
}

/// Records the receiver of each datagram that has arrived.
fn receive(servers: &[UdpSocket], picked: &mut [Option<usize>]) {
    let mut number = [0; size_of::<usize>()];
    for (at, server) in servers.iter().enumerate() {
        while server.recv(&mut number).is_ok() {
            picked[usize::from_be_bytes(number)] = Some(at);
        }
    }
}

fn server(at: usize) -> UdpSocket {
    let port = u16::try_from(FIRST_PORT + at).unwrap();
    let socket = UdpSocket::bind(("0.0.0.0", port)).unwrap();
    socket.set_nonblocking(true).unwrap();
    socket
}

#[test]
fn q44_the_kernel_picks_as_the_model_does() {
    sh(&format!(
        "ip address add {NODE_V4}/32 dev lo
         ip route add local 10.99.0.0/24 dev lo src {NODE_V4} table local
         ip route add local 10.245.0.0/24 dev lo table local"
    ));
    let servers: Vec<_> = (0..SERVERS).map(server).collect();
    let lists = lists();
    assert_eq!(lists.len(), 20);
    for (number, weights) in lists.iter().enumerate() {
        let mut expected: Vec<_> = wrr(weights).take(PICKS).map(Some).collect();
        expected.resize(PICKS, None);
        let picked = picks(&program(number, weights), &servers);
        assert_eq!(picked, expected, "{weights:?}");
    }
}
