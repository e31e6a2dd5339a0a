//! What the demo in the guest tells the host that draws it.

use serde::{Deserialize, Serialize};

/// Where the connections of one client went.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Picture {
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
