//! The fronts for IPVS: blocking and, with the feature `tokio`, asynchronous.

#[cfg(feature = "tokio")]
mod asynchronous;
mod blocking;
mod core;
mod keyed;
mod talk;

#[cfg(feature = "tokio")]
pub use asynchronous::AsyncClient;
pub use blocking::Client;
