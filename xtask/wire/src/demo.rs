//! Records that the demo in the guest sends to the host, which prints and verifies them.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::proc_ip_vs::RealServer;
use crate::{Endpoint, RequestCounts, View};

/// The endpoints to which the connections of one client went.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Distribution {
    pub client: String,
    /// The Service, `namespace/name`.
    pub service: String,
    pub address: String,
    /// Its policy as text.
    pub policy: String,
    pub load: LoadSummary,
    /// Every endpoint, nearest level first, then those without connections.
    pub servers: Vec<EndpointHits>,
}

impl Distribution {
    /// Combines the desired shares of `view`, the kernel's `table` and the counts of the client on the node `client`.
    /// `absent` endpoints existed before.
    pub fn new(
        client: &str,
        view: &View,
        table: &BTreeMap<SocketAddr, RealServer>,
        tally: &RequestCounts,
        absent: &[&Endpoint],
    ) -> Self {
        let server = |endpoint: &Endpoint, level: Option<&str>, wanted| EndpointHits {
            address: endpoint.address().to_string(),
            node: endpoint.node().to_owned(),
            zone: endpoint.zone().to_owned(),
            level: level.map(str::to_owned),
            weight: table.get(&endpoint.address()).map(|real| real.weight),
            wanted,
            hits: tally.hits(&endpoint.address().to_string()),
        };
        let present = view
            .endpoints()
            .map(|endpoint| server(endpoint, endpoint.level(), view.wanted(endpoint)));
        let absent = absent.iter().map(|endpoint| server(endpoint, None, 0.0));
        Self {
            client: client.to_owned(),
            service: view.service().to_owned(),
            address: view.target().to_string(),
            policy: view.policy().to_owned(),
            load: LoadSummary::from(tally),
            servers: present.chain(absent).collect(),
        }
    }
}

/// One endpoint in a [`Distribution`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EndpointHits {
    pub address: String,
    pub node: String,
    pub zone: String,
    /// The level that selected it; `None` if none did.
    pub level: Option<String>,
    /// Its weight in the kernel; `None` when the kernel has no such real server.
    pub weight: Option<u32>,
    /// The share of new connections that the policy gives it, 0 to 1.
    pub wanted: f64,
    pub hits: u64,
}

/// Requests of one client, one new connection each.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadSummary {
    pub requests: u64,
    /// Requests without a complete answer.
    pub failed: u64,
    /// Causes of failures with counts.
    pub errors: Vec<String>,
    /// Duration of all of them together.
    pub seconds: f64,
}

impl From<&RequestCounts> for LoadSummary {
    fn from(tally: &RequestCounts) -> Self {
        let errors = tally.errors.iter();
        Self {
            requests: tally.requests,
            failed: tally.failed,
            errors: errors
                .map(|(cause, count)| format!("{count} x {cause}"))
                .collect(),
            seconds: tally.seconds,
        }
    }
}

/// A change of the cluster under load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClusterChange {
    /// A heading that says what changed.
    pub what: String,
    /// From the changed file to the last changed weight in the kernel.
    pub milliseconds: f64,
    /// The client's requests from before the change until after it.
    pub load: LoadSummary,
}
