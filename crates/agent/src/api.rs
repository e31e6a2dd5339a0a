//! The local API: HTTP on a unix socket, for `status`, `diff` and `explain`.

pub mod socket;
