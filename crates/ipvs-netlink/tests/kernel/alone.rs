//! Tests that must run alone.
//!
//! Modules are loaded and unloaded for all network namespaces. And up to Linux 6.12 at least, a table of more than one
//! datagram, about twenty virtual servers, cannot be dumped reliably by this crate or by `ipvsadm` while another
//! namespace changes its own table: see `Client::services`.

mod asynchronous;
mod disturbed;
mod modules;
mod pipelining;
mod read;
mod written;
