//! Turns Kubernetes YAML, or the objects of an API server, into a
//! [`Snapshot`](topology_core::snapshot::Snapshot) and a record of what changed in it.
//!
//! ```text
//!  file, folder, stdin ──> source ──> convert ──> catalog ───┐
//!                                                            ├─> Event ──> index ──> Snapshot
//!  API server ───────────> api ─────> convert ──> reflector ─┘                       + Dirty
//! ```
//!
//! - `convert` turns an object into a value of `topology-core`, and reports warnings.
//! - `catalog` and `reflector` compare objects with the last ones, and send the difference as
//!   events: `Begin`, `Apply`, `Delete`, `Complete`.
//! - `index` applies the events. The snapshot must not be used before the first `Complete`.
//!
//! Start reading at [`source`] (files), [`api`] (API server), [`event`] (the events and their
//! order) and [`index`].
//!
//! Invalid input never stops the program: a bad field, endpoint, port or object is skipped, gives a
//! [`warning::Warning`] with file, line, object, field and remedy, and all other input is used.
//!
//! This crate does not decide about traffic (`topology-core` does), does not access the kernel, and
//! does not write to files or to an API server.

#![allow(missing_docs, reason = "only crates of this workspace use it")]

pub mod api;
pub mod claims;
pub mod clock;
pub mod event;
pub mod index;
pub mod object;
pub mod source;
pub use safe_text as text;
pub mod unused_policies;
pub mod warning;

mod allow_lists;
mod convert;
mod intern;
mod service_selection;

pub use allow_lists::AllowLists;
pub use service_selection::ServiceSelection;
