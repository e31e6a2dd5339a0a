//! `render` reads every YAML block of the documents without a warning, and the pages that tests define are up to date.

#![expect(
    clippy::unwrap_used,
    reason = "a test says what it expects by failing loudly"
)]

#[path = "controlplane/kube_proxy/differences.rs"]
mod differences;
#[path = "controlplane/coredns/differences.rs"]
#[expect(dead_code, reason = "the comparison knows the differences")]
mod dns_differences;
#[path = "kernel/packets/page.rs"]
mod packets;
#[path = "kernel/packets/rules.rs"]
mod rules;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Text around a block that shows only the annotations of a Service.
const SERVICE: (&str, &str) = (
    "apiVersion: v1\nkind: Service\n",
    "  name: cart\n  namespace: shop\nspec: {clusterIP: 10.96.0.10, clusterIPs: [10.96.0.10], ports: [{name: http, port: 80}]}\n",
);

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn documents() -> Vec<PathBuf> {
    let folder = fs::read_dir(root().join("docs")).unwrap();
    let files = folder.map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = files
        .filter(|path| path.extension().is_some_and(|end| end == "md"))
        .collect();
    files.push(root().join("README.md"));
    files
}

fn blocks(text: &str) -> Vec<String> {
    let parts = text.split("```yaml\n").skip(1);
    parts
        .map(|part| part.split("```").next().unwrap().to_owned())
        .collect()
}

/// A time at which the drains of the documents are active.
const NOW: &str = "2026-11-22T09:00:00Z";

/// A block as an API server returns it, with a creation time.
fn whole(block: &str) -> String {
    if block.starts_with("metadata:") {
        return format!("{}{block}{}", SERVICE.0, SERVICE.1);
    }
    let created = "metadata:\n  creationTimestamp: \"2026-11-22T08:00:00Z\"\n";
    if block.contains("kind: Topology") {
        block.replace("metadata:\n", created)
    } else {
        block.to_owned()
    }
}

#[test]
fn every_yaml_block_is_read_without_a_warning() {
    let nodes = fs::read_to_string(root().join("manifests/examples/shop/nodes.yaml")).unwrap();
    let mut count = 0;
    for path in documents() {
        for block in blocks(&fs::read_to_string(&path).unwrap()) {
            let folder = tempfile::tempdir().unwrap();
            let input = whole(&block);
            fs::write(
                folder.path().join("block.yaml"),
                format!("{nodes}---\n{input}"),
            )
            .unwrap();
            let output = Command::new(env!("CARGO_BIN_EXE_ipvs-topo"))
                .args([
                    "render",
                    "-o",
                    "save",
                    "--node",
                    "n1",
                    "--now",
                    NOW,
                    "--cluster",
                ])
                .arg(folder.path())
                .stdin(Stdio::null())
                .output()
                .unwrap();
            let errors = String::from_utf8_lossy(&output.stderr);
            assert_eq!(
                (output.status.code(), &*errors),
                (Some(0), ""),
                "{}:\n{input}",
                path.display()
            );
            if input.contains("kind: Service\n") {
                assert!(
                    output.stdout.starts_with(b"-A -t "),
                    "{}:\n{input}",
                    path.display()
                );
            }
            count += 1;
        }
    }
    assert!(count >= 5, "only {count} blocks were found");
}

/// With `WRITE_PAGES=1` in the environment the test writes the pages.
#[test]
fn the_pages_that_tests_define_are_up_to_date() {
    for (name, page) in [
        ("docs/differences.md", differences::page()),
        ("docs/dns-differences.md", dns_differences::page()),
        ("docs/packets.md", packets::page()),
    ] {
        let path = root().join(name);
        if std::env::var_os("WRITE_PAGES").is_some() {
            fs::write(&path, &page).unwrap();
        }
        let written = fs::read_to_string(&path).unwrap_or_default();
        assert!(
            written == page,
            "{name} is not up to date: run `WRITE_PAGES=1 cargo test -p cli --test docs`"
        );
    }
}
