//! `render -o save` prints what the agent of the same node programs.

use std::path::Path;
use std::process::Command;

use crate::agent::{Node, kernel};
use crate::lab::{Lab, sh, wait_until};

/// Moves the example's drain: it began an hour ago and ends in an hour.
fn put_in_force(drain: &Path) {
    let drain = drain.display();
    sh(&format!(
        "time() {{ date -u -d @$(($(date +%s) + $1)) +%FT%TZ; }}
        sed -i \"s/creationTimestamp: .*/creationTimestamp: $(time -3600)/
            s/expiresAt: .*/expiresAt: $(time 3600)/\" {drain}"
    ));
}

#[test]
fn render_of_every_example_equals_ipvsadm_save() {
    let examples: Vec<_> = std::fs::read_dir("/examples")
        .expect("the guest has the examples")
        .collect();
    assert!(!examples.is_empty());
    for example in examples {
        let folder = example.unwrap().path();
        let _lab = Lab::new();
        let mut node = Node::new();
        node.copy(&folder);
        let drain = node.cluster().join("drain.yaml");
        if drain.exists() {
            put_in_force(&drain);
        }
        let output = Command::new("ipvs-topo")
            .args(["render", "--node", "n1", "-o", "save", "--cluster"])
            .arg(node.cluster())
            .output()
            .unwrap();
        let rendered = String::from_utf8(output.stdout).unwrap();
        assert!(
            output.status.success(),
            "{}: {}",
            folder.display(),
            String::from_utf8_lossy(&output.stderr)
        );
        let rendered: Vec<_> = rendered.lines().map(str::to_owned).collect();
        node.start();
        assert_eq!(kernel(), rendered, "{}", folder.display());
        let cluster = node.cluster();
        let cluster = cluster.display();
        // The command of the document.
        sh(&format!(
            "cd $(mktemp -d)
            ipvs-topo render --cluster {cluster} --node n1 -o save >wanted 2>/dev/null
            ipvsadm-save -n | LC_ALL=C sort | diff wanted -"
        ));
        let state = node.state();
        let diff = format!(
            "ipvs-topo diff --cluster {cluster} --node n1 --state-dir {} 2>/dev/null",
            state.display()
        );
        assert_eq!(sh(&diff), "no difference\n", "{}", folder.display());
        node.kill();
        sh("ipvsadm -C");
        let missing = sh(&format!("{diff} || test $? = 1"));
        assert!(missing.lines().count() >= rendered.len(), "{missing}");
        wait_until("an empty kernel", || kernel().is_empty());
    }
}
