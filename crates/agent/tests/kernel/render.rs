//! What `render -o save` prints is what the agent of the same node programs.

use std::process::Command;

use crate::agent::{Node, kernel};
use crate::lab::{Lab, sh, wait_until};

#[test]
fn render_of_every_example_equals_ipvsadm_save() {
    let examples: Vec<_> = std::fs::read_dir("/examples")
        .expect("the guest has the examples")
        .collect();
    assert!(!examples.is_empty());
    for example in examples {
        let folder = example.unwrap().path();
        let _lab = Lab::new();
        let output = Command::new("ipvs-topo")
            .args(["render", "--node", "n1", "-o", "save", "--cluster"])
            .arg(&folder)
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
        let mut node = Node::new();
        node.copy(&folder);
        node.start();
        assert_eq!(kernel(), rendered, "{}", folder.display());
        node.kill();
        sh("ipvsadm -C");
        wait_until("an empty kernel", || kernel().is_empty());
    }
}
