//! The attributes of the IPVS family, in one table for each object.

pub(crate) mod address;
pub(crate) mod command;
pub(crate) mod daemon;
pub(crate) mod destination;
pub(crate) mod service;
pub(crate) mod settings;
pub(crate) mod stats;
