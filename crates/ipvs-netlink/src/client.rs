//! The clients for IPVS: blocking and, with the feature `tokio`, asynchronous.

#[cfg(feature = "tokio")]
mod asynchronous;
mod blocking;
mod connection;
mod core;
mod keyed;

#[cfg(feature = "tokio")]
pub use asynchronous::AsyncClient;
pub use blocking::Client;
