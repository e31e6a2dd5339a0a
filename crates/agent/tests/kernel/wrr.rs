//! The order in which the kernel's `wrr` picks, against the model that explanations rely on (Q44).

use std::io::Read as _;

use topology_core::quantise::wrr;

use crate::lab::{Lab, NODE_V4, sh, try_connect};

/// As many as real servers in the longest list.
const SERVERS: u16 = 10;
const PICKS: usize = 500;

/// Twenty lists: those of the reference, then made-up ones of growing length and weight.
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
        let length = 2 + below(u32::from(SERVERS) - 1);
        let step = 1 + below(3);
        lists.push((0..length).map(|_| step * below(3 + 20 * number)).collect());
    }
    lists
}

/// Who answers, connection after connection; nobody knows whom a connection was for that broke before the answer.
fn picks(target: &str) -> std::io::Result<Vec<usize>> {
    let answer = |_| {
        let mut text = String::new();
        try_connect(target)?.read_to_string(&mut text)?;
        Ok(text.trim().parse().unwrap())
    };
    (0..PICKS).map(answer).collect()
}

/// Makes a virtual server with real servers in the order of `weights`; its address and port.
///
/// Addresses are used once: a client's port that comes again would meet the end of its last connection.
fn program(number: usize, weights: &[u32]) -> String {
    let target = format!("10.99.0.{}:80", number + 1);
    sh(&format!("ipvsadm -A -t {target} -s rr"));
    // The kernel puts a new real server at the head of its list.
    for (at, weight) in weights.iter().enumerate().rev() {
        let real = format!("10.245.0.{}:{}", number + 1, 8000 + at);
        sh(&format!("ipvsadm -a -t {target} -r {real} -m -w {weight}"));
    }
    // A scheduler that is set afresh starts at the head and at the largest weight.
    sh(&format!("ipvsadm -E -t {target} -s wrr"));
    target
}

#[test]
fn q44_alone_the_kernel_picks_as_the_model_does() {
    let mut lab = Lab::new();
    let pod = lab.pod();
    let serve = |number| {
        format!(
            "guest serve --listen 0.0.0.0:{} --name {number}",
            8000 + number
        )
    };
    let _servers: Vec<_> = (0..SERVERS)
        .map(|number| pod.spawn(&serve(number)))
        .collect();
    sh(&format!(
        "ip route add local 10.99.0.0/24 dev lo src {NODE_V4} table local
         ip route add 10.245.0.0/24 dev pod1"
    ));
    pod.sh("ip route add local 10.245.0.0/24 dev lo");
    let lists = lists();
    assert_eq!(lists.len(), 20);
    for (number, weights) in lists.iter().enumerate() {
        if weights.iter().all(|weight| *weight == 0) {
            let target = program(number, weights);
            assert!(try_connect(&target).is_err(), "{weights:?}");
            continue;
        }
        let expected: Vec<_> = wrr(weights).take(PICKS).collect();
        // A list in which a connection breaks, as on a busy machine, is begun anew.
        let attempt = |attempt| picks(&program(number + attempt * lists.len(), weights)).ok();
        let picked = (0..3).find_map(attempt);
        assert_eq!(picked.as_ref(), Some(&expected), "{weights:?}");
    }
}
