//! Reads the memory of the program that measures itself.

use std::fs;

use anyhow::{Context as _, Result};

/// Reads the resident memory of this process.
pub fn resident_kib() -> Result<f64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    Ok(number.context("no VmRSS")?.parse()?)
}
