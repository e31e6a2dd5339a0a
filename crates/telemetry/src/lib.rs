//! Log lines and metrics of every program of ours, under the names that all programs of Kubernetes use.
//!
//! Writes log lines ([`log`]); counts the process ([`Process`]) and its requests to the API server ([`ClientRequests`]);
//! writes both text formats ([`Format`]); and serves them over HTTP, with limits ([`serve`]).

pub mod log;
mod process;
mod requests;
mod server;
mod text;

pub use process::Process;
pub use requests::ClientRequests;
pub use server::{listen, raise_file_limit, serve};
pub use text::Format;
