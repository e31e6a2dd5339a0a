//! What every program of ours tells a scraper, under the names that all programs of Kubernetes use: the process
//! ([`Process`]), its requests to the API server ([`ClientRequests`]), and the two text formats ([`Format`]).

mod process;
mod requests;
mod text;

pub use process::Process;
pub use requests::ClientRequests;
pub use text::Format;
