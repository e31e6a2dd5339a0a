//! The data plane on a real kernel: `cargo xtask vm test --package dataplane`.
//!
//! Every test is a process in a network namespace of its own, with an empty IPVS table and `lo` up.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "tests say what they expect by failing loudly"
)]

#[macro_use]
#[path = "kernel/cases.rs"]
mod cases;

use dataplane::ipvs::Ipvs;

/// Two connections to the IPVS table of this network namespace.
async fn open() -> (Ipvs, Ipvs) {
    (Ipvs::open().await.unwrap(), Ipvs::open().await.unwrap())
}

kernel_cases!(open);

/// Modules do not belong to a namespace.
mod alone {
    use std::fs;
    use std::process::Command;

    use super::{cases, open};

    const MODPROBE: &str = "/proc/sys/kernel/modprobe";

    #[tokio::test]
    async fn a_scheduler_that_the_kernel_does_not_have_is_refused() {
        let (mut kernel, _) = open().await;
        let before = fs::read_to_string(MODPROBE).unwrap();
        fs::write(MODPROBE, "/bin/false").unwrap();
        // Fails if the module is not loaded.
        drop(Command::new("rmmod").arg("ip_vs_fo").output().unwrap());
        cases::a_scheduler_that_the_kernel_does_not_have_is_refused(&mut kernel).await;
        fs::write(MODPROBE, before.trim()).unwrap();
    }
}
