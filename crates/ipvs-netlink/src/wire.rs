//! The bytes: attributes, and the tables that describe them.

mod attribute;
mod error;
mod unknown;
mod writer;

pub(crate) mod value;
#[macro_use]
pub(crate) mod table;

pub(crate) mod command;
pub(crate) mod daemon;
pub(crate) mod destination;
pub(crate) mod genl;
pub(crate) mod service;
pub(crate) mod settings;
pub(crate) mod stats;

pub(crate) use attribute::align;
pub use attribute::{Attribute, Attributes};
pub use error::DecodeError;
pub use writer::Writer;
