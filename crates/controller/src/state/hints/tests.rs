//! Hints on slices, with managers that keep hints, drop them, or write their own.

mod events;
mod fake;
mod foreign;
mod random;
mod writing;

use fake::{
    DISABLED, ENABLED, Fake, bare, endpoint, endpoints, hinted, mode_annotation, reasons, service,
    settled, slice_writes,
};
use serde_json::json;

use super::super::{MANAGER, State, StateOptions};
use super::*;
