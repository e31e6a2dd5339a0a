//! What other tests must not run beside.
//!
//! Modules come and go for all network namespaces. And up to Linux 6.12 at least, a table of more than one
//! datagram, twenty virtual servers, cannot be read reliably while another namespace changes its own, by us or by
//! `ipvsadm`: see `Client::services`.

mod asynchronous;
mod disturbed;
mod modules;
mod pipelining;
mod read;
mod written;
