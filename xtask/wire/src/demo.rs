//! What the demo in the guest tells the host that draws it.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::table::Real;
use crate::{Endpoint, Tally, View};

/// Where the connections of one client went.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Picture {
    /// The node of the client.
    pub client: String,
    /// The Service, `namespace/name`.
    pub service: String,
    /// Its virtual address and port.
    pub address: String,
    /// Its policy in words.
    pub policy: String,
    /// The connections behind the hits.
    pub load: Load,
    /// Every endpoint, nearest level first, then those that take nothing.
    pub servers: Vec<Server>,
}

impl Picture {
    /// What `view` wants, what the kernel's `table` holds, and what the client on the node `client`
    /// counted; `absent` endpoints were there before.
    pub fn new(
        client: &str,
        view: &View,
        table: &BTreeMap<SocketAddr, Real>,
        tally: &Tally,
        absent: &[&Endpoint],
    ) -> Self {
        let server = |endpoint: &Endpoint, level: Option<&str>, wanted| Server {
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
            load: Load::from(tally),
            servers: present.chain(absent).collect(),
        }
    }
}

/// One endpoint in a [`Picture`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Server {
    /// Address and port.
    pub address: String,
    /// Its node.
    pub node: String,
    /// Its zone.
    pub zone: String,
    /// The level that took it in; `None` when it is out.
    pub level: Option<String>,
    /// Its weight in the kernel; `None` when the kernel has no such real server.
    pub weight: Option<u32>,
    /// Share of new connections that the policy wants for it, 0 to 1.
    pub wanted: f64,
    /// Connections it answered.
    pub hits: u64,
}

/// Requests of one client, one new connection each.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// How many.
    pub requests: u64,
    /// How many gave no whole answer.
    pub failed: u64,
    /// Why, with counts.
    pub errors: Vec<String>,
    /// How long all of them took.
    pub seconds: f64,
}

impl From<&Tally> for Load {
    fn from(tally: &Tally) -> Self {
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
pub struct Change {
    /// What happened, as a heading.
    pub what: String,
    /// From the change of the file to the last weight in the kernel.
    pub milliseconds: f64,
    /// The requests of the client from before the change until after it.
    pub load: Load,
}
