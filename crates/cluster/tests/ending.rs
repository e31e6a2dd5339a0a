//! The thread that follows files exits with its watch. The only test of its process, because it
//! counts the threads.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails by panicking"
)]

mod common;

use std::fs;
use std::time::{Duration, Instant};

use cluster::AllowLists;
use cluster::source::watch;

fn followers() -> usize {
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    let names = tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("comm")).ok());
    names.filter(|name| name.trim() == "cluster-files").count()
}

#[test]
fn a_dropped_watch_ends_its_thread() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("a.yaml"), "").unwrap();
    let mut followed = watch(dir.path(), AllowLists::default()).unwrap();
    common::runtime().block_on(common::next(&mut followed));
    assert_eq!(followers(), 1);
    drop(followed);
    let start = Instant::now();
    while followers() > 0 {
        assert!(
            start.elapsed() < Duration::from_secs(10),
            "the thread still runs"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
}
