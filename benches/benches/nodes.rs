//! `cargo bench -p benches --bench nodes`: measures the memory of 5,000 Nodes with 30 labels each, with all labels and
//! with only those that policies use.
//!
//! A server in the process sends the Nodes in pages, so that only the stored objects grow. Each way is measured in its
//! own process, since an allocator keeps pages that were once in use.

#![expect(clippy::print_stdout, reason = "its output is the measurement")]

use std::process::Command;

use anyhow::{Context as _, Result, bail};
use axum::Router;
use axum::extract::Request;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use benches::resident_kib;
use cluster::api::{NodeSource, follow};
use cluster::index::Index;
use kube_io::Connection;
use serde_json::{Map, Value, json};

/// The argument with which this program runs the measured work.
const MEASURED: &str = "--hold";
const NODES: usize = 5_000;
const LABELS: usize = 30;
/// Nodes in a page.
const PAGE: usize = 200;
/// The Node of the agent.
const OWN: &str = "node-00000.example.internal";

fn main() -> Result<()> {
    let arguments: Vec<_> = std::env::args().collect();
    if let [_, first, labels] = arguments.as_slice()
        && first == MEASURED
    {
        let source = match &**labels {
            "all" => NodeSource::Whole,
            _ => NodeSource::Nodes { own: OWN.into() },
        };
        return hold(source);
    }
    println!("{NODES} Nodes with {LABELS} labels each, followed; resident memory");
    for labels in ["all", "those in use"] {
        println!("{labels}: {}", measured(labels)?);
    }
    Ok(())
}

/// Starts a process that stores those labels, and returns its output.
fn measured(labels: &str) -> Result<String> {
    let mut child = Command::new(std::env::current_exe()?);
    let output = child.arg(MEASURED).arg(labels).output()?;
    if !output.status.success() {
        bail!("{}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

/// Reads the Nodes as the agent does, and prints how much memory all pages but the first need.
fn hold(source: NodeSource) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()?;
    let mut index = Index::new(Vec::new());
    let before = runtime.block_on(async {
        let router = Router::new().fallback(async |request: Request| answer(request.uri()));
        let connection = Connection::of_client(kube::Client::new(router, "default"));
        let (mut watch, feed) = follow(connection, source);
        let take = async {
            let mut before = None;
            while index.completeness().is_none() {
                index.apply(watch.next().await.context("following ended")?);
                drop(index.snapshot_mut().take_dirty(OWN));
                if before.is_none() && index.snapshot().nodes().next().is_some() {
                    before = Some(resident_kib()?);
                }
            }
            before.context("no Nodes")
        };
        tokio::select! {
            before = take => before,
            () = feed => bail!("the feed ended"),
        }
    })?;
    let after = resident_kib()?;
    let nodes = index.snapshot().nodes();
    let (count, labels) = nodes.fold((0, 0), |(count, labels), node| {
        (count + 1, labels + node.labels.iter().count())
    });
    println!(
        "{:.1} MB for {count} Nodes with {labels} labels in all",
        (after - before) / 1_000.0 * 1.024
    );
    Ok(())
}

/// Serves Nodes and one policy in pages, and then watches without events.
fn answer(uri: &Uri) -> Response {
    let query = uri.query().unwrap_or_default();
    let value = |name: &str| query.split('&').find_map(|part| part.strip_prefix(name));
    if value("sendInitialEvents=").is_some() {
        let status = json!({"kind": "Status", "code": 422, "reason": "Invalid"});
        return (StatusCode::UNPROCESSABLE_ENTITY, status.to_string()).into_response();
    }
    if value("watch=").is_some() {
        return (StatusCode::TOO_MANY_REQUESTS, [("retry-after", "300")]).into_response();
    }
    let from = value("continue=").and_then(|token| token.parse().ok());
    let (items, next) = match uri.path() {
        "/api/v1/nodes" => page(from.unwrap_or_default()),
        path if path.ends_with("/clustertopologypolicies") => (vec![policy()], String::new()),
        _ => (Vec::new(), String::new()),
    };
    let metadata = json!({"resourceVersion": "1", "continue": next});
    json!({"metadata": metadata, "items": items})
        .to_string()
        .into_response()
}

/// Returns a page of Nodes, and the continue token.
fn page(from: usize) -> (Vec<Value>, String) {
    let next = (from + PAGE).min(NODES);
    let nodes = (from..next).map(node).collect();
    let token = if next < NODES {
        next.to_string()
    } else {
        String::new()
    };
    (nodes, token)
}

/// Creates a Node. Policies use its labels zone, region and rack. A sixth of the others have a unique value, like host
/// names and labels of cloud providers; the rest have one of a few values.
fn node(number: usize) -> Value {
    let mut labels: Map<String, Value> = (3..LABELS)
        .map(|label| {
            let value = if label % 6 == 0 {
                format!("{label}-i-{number:017x}")
            } else {
                format!("{label}-{}", number % 5)
            };
            (format!("node.example.com/label-{label}"), value.into())
        })
        .collect();
    let zone = format!(
        "region-1{}",
        ["a", "b", "c"].get(number % 3).unwrap_or(&"a")
    );
    labels.insert("topology.kubernetes.io/zone".to_owned(), zone.into());
    labels.insert(
        "topology.kubernetes.io/region".to_owned(),
        "region-1".into(),
    );
    labels.insert(
        "example.com/rack".to_owned(),
        format!("rack-{}", number / 20).into(),
    );
    let address = format!("172.16.{}.{}", number / 250, number % 250);
    json!({
        "metadata": {"name": format!("node-{number:05}.example.internal"), "labels": labels},
        "status": {
            "addresses": [{"type": "InternalIP", "address": address}],
            "allocatable": {"cpu": "3920m"}, "conditions": [{"type": "Ready", "status": "True"}],
        },
    })
}

/// A policy by rack and zone.
fn policy() -> Value {
    let levels = json!([{"key": "example.com/rack"}, {"key": "zone"}, {"key": "*"}]);
    json!({"metadata": {"name": "near"}, "spec": {"mode": "Prefer", "levels": levels}})
}
