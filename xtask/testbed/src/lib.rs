//! Real kernels in QEMU, a real Kubernetes control plane, and a cluster made of both, for tests and benchmarks.
#![allow(missing_docs, reason = "xtask is the only user")]

pub mod cargo;
pub mod controlplane;
pub mod image;
pub mod lab;
pub mod paths;
pub mod vm;
