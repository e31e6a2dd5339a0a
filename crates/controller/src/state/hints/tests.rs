//! What is written on slices and what is not, beside managers that keep hints, lose them, and write their own.

mod fake;
mod leaving;
mod random;
mod telling;
mod writing;

use fake::{
    DISABLED, ENABLED, Fake, asking, bare, endpoint, endpoints, hinted, of_slices, service,
    settled, words,
};
use serde_json::json;

use super::super::{MANAGER, State};
use super::*;
