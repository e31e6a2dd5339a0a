//! Lists and watches a resource until the caller stops, with few requests even if the server fails.
//!
//! ```text
//!  Driver ─request─> ListWatch       decides the next request: no I/O
//!     │  pages, streams
//!     └──Event──> Sink              of the caller: takes objects, one at a time
//! ```
//!
//! The caller chooses the [`Resource`] and the type of the objects. [`Watcher`] is a driver whose
//! events the caller takes one by one.

mod backoff;
mod chance;
mod driver;
mod event;
mod resource;
mod state_machine;
mod stream;
mod watcher;

pub use chance::chance;
pub use driver::Driver;
pub use event::{DriverError, DriverStep, Event, NextAttempt, Sink};
pub use resource::{Format, Resource};
pub use watcher::{Watcher, WatcherChange};
