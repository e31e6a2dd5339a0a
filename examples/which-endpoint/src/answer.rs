//! Asks topology-core and writes the answer as a table.

use topology_core::resolve::{EndpointDecision, ResolvedServer, Viewpoint, resolve};

use crate::convert::Cluster;

const HEADER: [&str; 6] = ["ENDPOINT", "NODE", "LEVEL", "WEIGHT", "SHARE", "REASON"];

/// What a client on `node` gets of the Service.
pub(crate) fn answer(cluster: &Cluster, node: &str) -> String {
    let me = Viewpoint::new(node);
    let resolution = resolve(&cluster.snapshot, &me, &cluster.service);
    let mut lines: Vec<String> = resolution
        .findings
        .iter()
        .map(|finding| format!("warning: {finding}"))
        .collect();
    for server in &resolution.servers {
        lines.extend(table(server, &format!("{} from {node}", cluster.service)));
    }
    lines.join("\n") + "\n"
}

fn table(resolved: &ResolvedServer, what: &str) -> Vec<String> {
    let decision = &resolved.decision;
    let mut lines = vec![format!(
        "{what}: {} -s {}, mode {}",
        resolved.server.key,
        resolved.server.scheduler,
        decision.mode.as_str()
    )];
    lines.extend(decision.refusal.map(|why| format!("refused: {why}")));
    lines.extend(decision.notes.iter().map(|note| format!("note: {note}")));
    let mut rows = vec![HEADER.map(str::to_owned)];
    rows.extend(decision.endpoints.iter().map(row));
    lines.extend(aligned(&rows));
    lines
}

fn row(endpoint: &EndpointDecision) -> [String; 6] {
    let dash = || "-".to_owned();
    [
        std::net::SocketAddr::new(endpoint.address, endpoint.port).to_string(),
        endpoint.node.as_deref().map_or_else(dash, str::to_owned),
        endpoint
            .level
            .as_ref()
            .map_or_else(dash, ToString::to_string),
        endpoint.weight.to_string(),
        endpoint.share.to_string(),
        endpoint.reason.to_string(),
    ]
}

/// The rows with every column as wide as its widest cell.
fn aligned(rows: &[[String; 6]]) -> Vec<String> {
    let mut widths = [0; 6];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    let line = |row: &[String; 6]| {
        let cells = row.iter().zip(widths);
        let cells: Vec<String> = cells
            .map(|(cell, width)| format!("{cell:width$}"))
            .collect();
        cells.join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}
