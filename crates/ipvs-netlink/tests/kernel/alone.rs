//! What other tests must not run beside.
//!
//! Modules come and go for all network namespaces. And up to Linux 6.12 at least, a large table cannot be read reliably
//! while another namespace changes its own: see `Client::services`.

mod asynchronous;
mod disturbed;
mod modules;
mod pipelining;
