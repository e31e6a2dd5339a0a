//! Raw readings of a guest that measures. The host derives figures from them.
//!
//! Durations are in seconds unless a name says otherwise. Repeated measurements keep all their readings.

mod traffic;

use serde::{Deserialize, Serialize};

pub use traffic::{PathReading, Stall, TrafficReport};

use crate::ServiceType;

/// The readings of `guest bench all`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The kernel's release, as `uname -r` prints it.
    pub kernel: String,
    /// Number of endpoints of each Service.
    pub endpoints: u32,
    /// The readings of each cluster size, smallest first.
    pub sizes: Vec<SizeReport>,
}

/// The readings of one cluster size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SizeReport {
    /// Number of Services, each with one virtual server.
    pub services: u32,
    pub load: ColdLoad,
    pub change: ChangeCost,
    pub restart: Restart,
    pub idle: Idle,
    /// Resident memory with the cluster in one file.
    pub memory_file: ResidentMemory,
    /// Resident memory with the cluster in a folder, one file for each Service.
    pub memory_folder: ResidentMemory,
}

/// Times to fill an empty kernel, each in a fresh network namespace; agent and bare loop alternate.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ColdLoad {
    /// Times of the bare loop: from the first send to the last acknowledgement.
    pub floor: Vec<f64>,
    pub agent: Vec<AgentStart>,
}

/// One start of the agent, measured by its own clock and from outside.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AgentStart {
    /// From the start of the process to the end of the first full read of the YAML.
    pub read: f64,
    /// Reading what the kernel holds.
    pub dump: f64,
    /// Resolving every Service and comparing with the kernel.
    pub compute: f64,
    /// Sending commands to IPVS until the last acknowledgement.
    pub apply: f64,
    /// From the end of the first full read to the end of the first pass, routes and nftables included.
    pub pass: f64,
    /// From the start of the process until `/healthz` answers 200, measured from outside.
    pub ready: f64,
    /// Commands sent to IPVS.
    pub writes: u64,
}

/// The costs of one endpoint that leaves and comes back repeatedly.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ChangeCost {
    /// CPU time of the agent's loop for each change, in milliseconds; sorted.
    pub cpu_ms: Vec<f64>,
    /// CPU time of the threads that notice and read the changed file, in milliseconds; sorted.
    pub reading_cpu_ms: Vec<f64>,
    /// From the file's replacement until the kernel has changed, in milliseconds, measured from outside; sorted.
    pub wall_ms: Vec<f64>,
    /// Mean time from event to acknowledgement by the agent's own metric, in milliseconds.
    pub latency_ms: f64,
}

/// Restarts on a correct kernel; agent and bare loop alternate.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Restart {
    /// Times in which the bare loop dumps every virtual server and real server without parsing them.
    pub dump: Vec<f64>,
    pub agent: Vec<AgentStart>,
}

/// The costs of an idle agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Idle {
    /// How long it was observed with no periodic check due.
    pub quiet_seconds: f64,
    /// Wake-ups of all its threads in that time.
    pub quiet_wakeups: u64,
    /// How long it was observed with periodic checks.
    pub checked_seconds: f64,
    /// Periodic checks in that time.
    pub checks: u64,
    /// CPU time of one check, in milliseconds.
    pub check_cpu_ms: f64,
}

/// Resident memory in KiB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResidentMemory {
    /// `VmRSS`.
    pub resident_kib: u64,
    /// `VmHWM`: the peak since its start.
    pub peak_kib: u64,
}

/// The readings of one node proxy on a real API server, alone in a guest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProxyReport {
    /// The name in tables.
    pub name: String,
    /// Number of Services.
    pub services: u32,
    /// Their type.
    #[serde(default)]
    pub service_type: ServiceType,
    /// Number of endpoints of each.
    pub endpoints: u32,
    /// From the start of the process until an empty kernel holds every Service.
    pub start: f64,
    /// The same on a correct kernel.
    pub restart: f64,
    /// The costs of each replaced endpoint.
    pub changes: Vec<ProxyChange>,
    /// Resident memory after the start.
    pub memory: ResidentMemory,
    /// Requests to the API server until it was idle after the start.
    pub requests: f64,
    /// Bytes to and from the API server in that time, with TLS and TCP.
    pub bytes: u64,
    /// Traffic, if it was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traffic: Option<TrafficReport>,
    /// Rolling updates, if they were measured.
    pub churn: Option<Churn>,
}

/// The costs of one replaced endpoint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProxyChange {
    /// From the API server's answer to the write until a new connection reached the new endpoint.
    pub seconds: f64,
    /// The proxy's CPU time until it was idle again, with its children.
    pub cpu: f64,
}

/// The costs of rolling updates at a constant rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Churn {
    pub seconds: f64,
    /// Written EndpointSlices; each write replaced all endpoints.
    pub changes: u32,
    pub replaced: f64,
    /// The proxy's CPU time by the guest's clock, which also counts time in which its processors waited for the host's.
    pub cpu: f64,
    /// The share of that time in which the guest's processors ran on the host, from 0 to 1. The host sets it.
    #[serde(rename = "given")]
    pub cpu_share: f64,
    /// The CPU time of a bare loop that replaces the same real servers and deletes each immediately.
    #[serde(rename = "eager")]
    pub immediate_delete: f64,
    /// For each move of the probed endpoint, the time from the API server's answer until a new connection reached it.
    pub lags: Vec<f64>,
}
