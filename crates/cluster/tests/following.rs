//! A cluster followed through an API server that does everything that servers do on bad days. It is in-process, and
//! time is the test's own.

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
