//! Prints results: JSON views, `ipvsadm-save` lines, tables.
//!
//! The views are separate structs, so that the JSON does not change when an internal type does.

// A new source, reason, note or fact must be handled everywhere, not by a `_` arm.
#![warn(clippy::wildcard_enum_match_arm)]

pub mod answers;
pub mod bar;
pub mod grid;
pub mod location;
pub mod plain;
pub mod print;
pub mod save;
pub mod server;
mod shortened;
pub mod stages;
pub mod summary;
pub mod time;
pub mod wrap;
