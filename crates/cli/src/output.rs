//! How results are shown: JSON views, `ipvsadm-save` lines, tables.
//!
//! The views are structs of their own, so that the JSON contract does not move when a domain type does.

// A source, reason, note or fact that is added must be thought of everywhere, and not fall under `_`.
#![warn(clippy::wildcard_enum_match_arm)]

pub mod bar;
pub mod grid;
pub mod plain;
pub mod print;
pub mod save;
pub mod server;
pub mod stages;
pub mod summary;
pub mod time;
pub mod wrap;
