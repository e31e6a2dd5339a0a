//! Random numbers that spread what many clients do at the same time.

use std::hash::{BuildHasher as _, RandomState};

/// Returns a random number between 0 and 1.
pub fn chance() -> f64 {
    let bits = RandomState::new().hash_one(()) >> 32;
    f64::from(u32::try_from(bits).unwrap_or_default()) / f64::from(u32::MAX)
}
