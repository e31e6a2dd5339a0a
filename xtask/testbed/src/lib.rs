//! Runs real kernels in QEMU, a real Kubernetes control plane, and a cluster of both, for tests and benchmarks.
#![allow(missing_docs, reason = "xtask is the only user")]

pub mod cargo;
pub mod controlplane;
pub mod coredns;
pub mod e2e;
mod go;
pub mod image;
pub mod lab;
mod metallb;
pub mod paths;
mod tail;
mod test_counts;
pub mod vm;

pub use tail::tail;
pub use test_counts::TestCounts;
