//! The data plane on a real kernel: `cargo xtask vm test --package dataplane`.
//!
//! Every test is a process in a network namespace of its own, with an empty IPVS table and `lo` up.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests say what they expect by failing loudly"
)]

#[macro_use]
#[path = "kernel/cases.rs"]
mod cases;
#[path = "kernel/external.rs"]
mod external;
#[path = "../../cli/tests/kernel/lab.rs"]
#[allow(
    dead_code,
    unused_imports,
    reason = "a crate of its own uses the rest of it"
)]
mod lab;
#[path = "kernel/tables.rs"]
mod tables;

use dataplane::ipvs::Ipvs;

/// Two connections to the IPVS table of this network namespace.
async fn open() -> (Ipvs, Ipvs) {
    (Ipvs::open().await.unwrap(), Ipvs::open().await.unwrap())
}

kernel_cases!(open);

/// Modules do not belong to a namespace.
mod alone {
    use std::fs;
    use std::path::Path;
    use std::process::Command;
    use std::thread::sleep;
    use std::time::{Duration, Instant};

    use super::{cases, open};

    const MODPROBE: &str = "/proc/sys/kernel/modprobe";

    /// Keeps the kernel from loading modules until it is dropped.
    struct WithoutModprobe(String);

    impl WithoutModprobe {
        fn new() -> Self {
            let path = fs::read_to_string(MODPROBE).unwrap();
            fs::write(MODPROBE, "/bin/false").unwrap();
            Self(path)
        }
    }

    impl Drop for WithoutModprobe {
        fn drop(&mut self) {
            fs::write(MODPROBE, self.0.trim()).unwrap();
        }
    }

    fn run(program: &str, module: &str) -> bool {
        let output = Command::new(program).arg(module).output().unwrap();
        output.status.success()
    }

    /// Unloads a module that may be loaded. The kernel removes the network namespace of an ended test, whose virtual servers
    /// hold the module, only after a while.
    fn unload(module: &str) {
        let end = Instant::now() + Duration::from_secs(30);
        while Path::new("/sys/module").join(module).exists() {
            assert!(Instant::now() < end, "{module} is in use");
            run("rmmod", module);
            sleep(Duration::from_millis(100));
        }
    }

    #[tokio::test]
    async fn a_scheduler_that_the_kernel_does_not_have_is_refused() {
        let (mut kernel, _) = open().await;
        // A test before may have unloaded it.
        assert!(run("modprobe", "ip_vs_wrr"));
        let _without = WithoutModprobe::new();
        unload("ip_vs_fo");
        cases::a_scheduler_that_the_kernel_does_not_have_is_refused(&mut kernel).await;
    }
}
