//! What a guest that measured tells: raw readings, no judgement.
//!
//! Durations are seconds unless a name says otherwise. Where something was measured several
//! times, all readings are kept; which of them counts is the host's business.

use serde::{Deserialize, Serialize};

/// Everything one run measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The kernel's release, as `uname -r` says it.
    pub kernel: String,
    /// Number of endpoints of each Service.
    pub endpoints: u32,
    /// One entry for each cluster size, smallest first.
    pub sizes: Vec<Size>,
}

/// What was measured at one cluster size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Size {
    /// Number of Services, each with one virtual server.
    pub services: u32,
    /// Loading an empty kernel.
    pub load: Load,
    /// One endpoint leaving and coming back.
    pub change: Change,
    /// Starting again on a kernel that is correct.
    pub restart: Restart,
    /// Nothing happening.
    pub idle: Idle,
    /// Resident memory with the cluster in one file.
    pub memory_file: Memory,
    /// Resident memory with the cluster in a folder, one file for each Service.
    pub memory_folder: Memory,
}

/// Loading an empty kernel, in a fresh network namespace each time; the two alternate.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// The bare loop: from the first send to the last acknowledgement.
    pub floor: Vec<f64>,
    /// The agent, start by start.
    pub agent: Vec<Start>,
}

/// One start of the agent, told by its own clock and seen from outside.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Start {
    /// From the start of the process to the end of the first full read: program start and YAML.
    pub read: f64,
    /// Reading what the kernel holds.
    pub dump: f64,
    /// Resolving every Service and comparing with the kernel.
    pub compute: f64,
    /// Sending commands to IPVS until the last acknowledgement.
    pub apply: f64,
    /// From the end of the first full read to the end of the first pass, routes and nftables included.
    pub pass: f64,
    /// From the start of the process until it says that it serves, seen from outside.
    pub ready: f64,
    /// Commands sent to IPVS.
    pub writes: u64,
}

/// One endpoint leaving and coming back, again and again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// CPU time of the agent's loop for each change, from the event on, in milliseconds; sorted.
    pub cpu_ms: Vec<f64>,
    /// CPU time of the threads that notice and read the changed file, in milliseconds; sorted.
    pub reading_cpu_ms: Vec<f64>,
    /// From the file's replacement until the kernel shows it, in milliseconds, seen from outside; sorted.
    pub wall_ms: Vec<f64>,
    /// Mean of what the agent itself says from event to acknowledgement, in milliseconds.
    pub latency_ms: f64,
}

/// Starting again on a kernel that is correct; the two alternate.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Restart {
    /// The bare loop dumping every virtual server and real server, uninterpreted.
    pub dump: Vec<f64>,
    /// The agent, start by start.
    pub agent: Vec<Start>,
}

/// A settled agent that is left alone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Idle {
    /// How long it was watched with no periodic check due.
    pub quiet_seconds: f64,
    /// How often any of its threads woke in that time.
    pub quiet_wakeups: u64,
    /// How long it was watched with periodic checks.
    pub checked_seconds: f64,
    /// Periodic checks in that time.
    pub checks: u64,
    /// CPU time of one check, in milliseconds.
    pub check_cpu_ms: f64,
}

/// Resident memory in KiB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// `VmRSS` of the settled agent.
    pub resident_kib: u64,
    /// `VmHWM`: at most, since it started.
    pub peak_kib: u64,
}

/// One node proxy on a real API server, in a guest of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rival {
    /// What tables call it.
    pub name: String,
    /// Number of Services.
    pub services: u32,
    /// Number of endpoints of each.
    pub endpoints: u32,
    /// From the start of the process until every Service is in an empty kernel.
    pub start: f64,
    /// The same on a kernel that is correct.
    pub restart: f64,
    /// One endpoint replaced, again and again.
    pub changes: Vec<RivalChange>,
    /// Resident memory after the start.
    pub memory: Memory,
    /// Requests to the API server until it rested after the start.
    pub requests: f64,
    /// Bytes to and from the API server meanwhile, TLS and TCP included.
    pub bytes: u64,
    /// Rolling updates, if they were asked for.
    pub churn: Option<Churn>,
}

/// One endpoint replaced.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RivalChange {
    /// From the API server's answer to the write until a new connection reaches the new endpoint.
    pub seconds: f64,
    /// The proxy's CPU time until it rested again, children included.
    pub cpu: f64,
}

/// Rolling updates at a steady pace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Churn {
    /// How long they went on.
    pub seconds: f64,
    /// EndpointSlices whose endpoints were all replaced.
    pub changes: u32,
    /// Endpoints replaced.
    pub replaced: f64,
    /// The proxy's CPU time meanwhile by the guest's clock, which counts when its processors waited for one of the host's.
    pub cpu: f64,
    /// How much of their time the guest's processors had one of the host's when they wanted it, from 0 to 1; filled in by
    /// the host.
    pub given: f64,
    /// The CPU time that a bare loop needs for the same real servers, each of which it deletes at once.
    pub eager: f64,
    /// From the API server's answer until new connections reached the probed endpoint's new place, move by move.
    pub lags: Vec<f64>,
}
