//! Chains of other programs that drop forwarded packets.

use crate::external::{NODE_PORT, World, attempt, tcp, udp};
use crate::lab::{sh, wait_until};

#[test]
fn a_forward_policy_of_drop_is_reported_with_a_remedy_that_helps_and_nothing_is_changed() {
    let world = World::start(&["--check-period", "1s"], &NODE_PORT);
    let client = Some(&world.client);
    let targets = [tcp("10.96.0.10", 80), udp("10.96.0.10", 53)];
    for target in &targets {
        assert_eq!(attempt(client, target), Ok(()));
    }
    assert!(!world.node.log().contains("dropped by default"));

    // As Docker with the nft backend of iptables.
    sh("nft -f - <<'EOF'
add table ip filter
add chain ip filter FORWARD { type filter hook forward priority 0; policy drop; }
EOF");
    let chain = || sh("nft list chain ip filter FORWARD");
    let before = chain();
    world.node.wait_log("dropped by default");
    let line = world.node.only_line("dropped by default");
    assert!(line.contains("`ip filter FORWARD`"), "{line}");
    assert_eq!(chain(), before);
    for target in &targets {
        assert!(attempt(client, target).is_err(), "{target:?}");
    }

    let (_, remedy) = line.split_once("`nft insert").unwrap();
    let (remedy, _) = remedy.split_once('`').unwrap();
    sh(&format!("nft insert{remedy}"));
    for target in &targets {
        wait_until("an answer", || attempt(client, target).is_ok());
    }
    let status = |words: &str| {
        let socket = world.node.socket();
        let line = format!("ipvs-topo status -o json --socket {}", socket.display());
        sh(&line).contains(words)
    };
    assert!(status("ForwardPolicy"));
    sh("nft delete table ip filter");
    wait_until("no warning", || !status("ForwardPolicy"));
}
