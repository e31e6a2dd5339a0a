//! Follows a cluster through an in-process API server that fails in every way that real servers do.
//! The tests control the time.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

#[macro_use]
#[path = "following/cases.rs"]
mod cases;

#[path = "following/bad_days.rs"]
mod bad_days;
#[path = "following/bound.rs"]
mod bound;
#[path = "following/fake.rs"]
mod fake;
#[path = "following/good_days.rs"]
mod good_days;
#[path = "following/labels.rs"]
mod labels;
#[path = "following/mapped.rs"]
mod mapped;
