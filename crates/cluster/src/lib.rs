//! What the cluster says: Kubernetes YAML or an API server in, a [`Snapshot`](topology_core::snapshot::Snapshot) and
//! what changed in it out.
//!
//! ```text
//!  files ──> source ──> yaml ──> convert ──> catalog ──> Event ──> index ──> Snapshot + Dirty
//!  folder    (what      (text    (object to   (what was   (Begin,   (gate:     for topology-core
//!  stdin      changed)   to       domain       told        Apply,    nothing
//!                        tree)    value +      before)     Delete,   before
//!  API ─────> api ─────> answer ─> warnings) ─> hub ──>    Complete) Complete)
//!  server     (lists,                          (the same
//!              streams)                         for lists)
//! ```
//!
//! Start reading at [`source`] (how files are read and watched), [`api`] (the same for an API server), [`event`]
//! (what a source may say, and in which order) and [`index`] (what becomes of it).
//!
//! Nothing in the input stops the program: a bad field, endpoint, port or object is left out and
//! gives a [`warning::Warning`] with file, line, object, field and remedy, and the rest goes on.
//!
//! What it does not do: it decides nothing about traffic (`topology-core` does), touches no kernel,
//! and writes to no file and to no API server.

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

mod convert;
mod intern;
