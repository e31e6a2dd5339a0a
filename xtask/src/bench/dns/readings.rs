//! What is measured: the contents of `bench-dns.json`.

use serde::{Deserialize, Serialize};

use super::name_server::RunningNameServer;
use super::query::QueryKind;

/// The readings of both servers at each size.
#[derive(Serialize, Deserialize)]
pub(super) struct DnsComparison {
    pub(super) coredns: String,
    pub(super) kubernetes: String,
    /// Endpoints of each Service.
    pub(super) endpoints: u32,
    pub(super) readings: Vec<NameServerReadings>,
}

/// The readings of one server at one size.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct NameServerReadings {
    pub(super) name: String,
    pub(super) services: u32,
    /// Seconds from the start of the process to the first answer.
    pub(super) start: f64,
    /// After all loads and changes.
    pub(super) resident_kib: u64,
    pub(super) loads: Vec<LoadReadings>,
    /// Seconds from an API request that changes an endpoint to the first answer with it.
    pub(super) changes: Vec<f64>,
    /// The same while other endpoints are replaced.
    pub(super) changes_rolling: Vec<f64>,
    /// How many endpoints are replaced in a second meanwhile.
    pub(super) replaced: f64,
}

/// The readings of one load on one server.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LoadReadings {
    pub(super) query: QueryKind,
    /// With many queries at a time.
    pub(super) many: LoadReading,
    /// With one query at a time.
    pub(super) single: LoadReading,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LoadReading {
    pub(super) queries: u32,
    pub(super) seconds: f64,
    /// CPU seconds of the server, with those of the kernel for it.
    pub(super) cpu: f64,
    /// Microseconds from a query to its answer.
    pub(super) p50: f64,
    pub(super) p99: f64,
    /// Queries without an answer within a second.
    pub(super) lost: u32,
}

impl NameServerReadings {
    pub(super) fn of(server: &RunningNameServer, services: u32) -> Self {
        Self {
            name: server.name.to_owned(),
            services,
            start: server.start,
            resident_kib: 0,
            loads: Vec::new(),
            changes: Vec::new(),
            changes_rolling: Vec::new(),
            replaced: 0.0,
        }
    }
}

impl LoadReading {
    pub(super) fn rate(&self) -> f64 {
        f64::from(self.queries) / self.seconds
    }

    /// Microseconds of CPU for a query.
    pub(super) fn cpu_per_query(&self) -> f64 {
        self.cpu * 1e6 / f64::from(self.queries)
    }
}
