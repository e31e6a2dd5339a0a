//! Lists a resource and watches it, for as long as the caller wants, with few requests whatever the server does.
//!
//! ```text
//!  Driver ──asks──> ListWatch       decides the next request: no I/O
//!     │  pages, streams
//!     └──Event──> Sink              the caller's: objects, one at a time, and what they mean for the list
//! ```
//!
//! The caller names the [`Resource`] and the type of the objects; [`Watcher`] is a driver whose events are taken one by
//! one.

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
