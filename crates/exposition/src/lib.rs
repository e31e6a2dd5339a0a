//! What every program of ours tells a scraper, under the names that all programs of Kubernetes use: the process
//! ([`Process`]), its requests to the API server ([`ClientRequests`]), and the two text formats ([`Format`]); and the HTTP server
//! over which it is read ([`serve`]).

mod process;
mod requests;
mod server;
mod text;

pub use process::Process;
pub use requests::ClientRequests;
pub use server::{listen, raise_file_limit, serve};
pub use text::Format;
