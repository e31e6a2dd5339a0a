//! Compares with messages between the real `ipvsadm` and real kernels, byte for byte.
//!
//! The captures are in this folder; `capture.sh` produces them.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests say what they expect by failing loudly"
)]

mod answers;
mod capture;
mod connections;
mod requests;
mod words;

use capture::Capture;

/// A capture of each kernel line.
fn captures() -> [Capture; 3] {
    [
        Capture::parse(include_str!("6.1.txt")),
        Capture::parse(include_str!("6.12.txt")),
        Capture::parse(include_str!("sid.txt")),
    ]
}
