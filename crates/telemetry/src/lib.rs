//! Logging and metrics of our programs. Metric names follow the conventions of Kubernetes components.
//!
//! [`log`] writes log lines, [`Process`] and [`ProcessStart`] measure this process, [`ClientRequests`] counts requests to the API server,
//! [`Format`] writes both exposition formats, and [`serve`] serves them over HTTP with limits.

pub mod log;
mod process;
mod requests;
mod server;
mod text;

pub use process::{Process, ProcessStart, adjust_oom_score, stop_signal};
pub use requests::ClientRequests;
pub use server::{
    ConnectionLimit, LongLived, StreamListener, listen, listen_in_both_families, listen_in_family,
    raise_file_limit, serve, serve_within,
};
pub use text::Format;
