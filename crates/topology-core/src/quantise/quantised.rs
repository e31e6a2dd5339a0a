//! The result: weights, and how they were found.

use super::class::{Class, picks};
use crate::ratio::gcd;

/// The largest weight that a real server gets.
pub const MAX_WEIGHT: u32 = 65_535;

/// How the weights were found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum QuantiseMethod {
    /// Exact, largest weight at most 256.
    Exact,
    /// Rounded, within the tolerance, m at most 1,024.
    Search,
    /// Exact, largest weight at most 65,535.
    WideExact,
    /// Rounded, within the tolerance, m at most 65,535.
    WideSearch,
    /// The largest weight is 65,535, and some share is outside the tolerance.
    Clamped,
}

impl QuantiseMethod {
    /// The value in output.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Search => "search",
            Self::WideExact => "wide-exact",
            Self::WideSearch => "wide-search",
            Self::Clamped => "clamped",
        }
    }
}

/// Weights, one for each class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quantised {
    /// The weight of each endpoint of the class, 1 to 65,535. The greatest common divisor is 1.
    pub weights: Vec<u32>,
    /// How many endpoints of the class have a weight that is larger by one; only for `sh`.
    pub heavier: Vec<u32>,
    /// How they were found.
    pub method: QuantiseMethod,
    /// The sum of the weights of all endpoints: the picks in one cycle of `wrr`.
    pub cycle: u64,
}

impl Quantised {
    /// Weights without `heavier` endpoints.
    pub(super) fn alike(classes: &[Class], weights: Vec<u32>, method: QuantiseMethod) -> Self {
        Self {
            heavier: vec![0; weights.len()],
            cycle: picks(classes, &weights).iter().sum(),
            weights,
            method,
        }
    }
}

/// The same proportions in the smallest integers.
pub(super) fn lowest_terms(mut weights: Vec<u32>) -> Vec<u32> {
    let common = weights
        .iter()
        .fold(0, |common, weight| gcd(common, u128::from(*weight)));
    let common = u32::try_from(common).unwrap_or(1).max(1);
    for weight in &mut weights {
        *weight /= common;
    }
    weights
}
