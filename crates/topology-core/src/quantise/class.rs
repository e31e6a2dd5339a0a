//! Endpoints that get the same share each.

use crate::ratio::Ratio;

/// Endpoints of one level that get the same share each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Class {
    /// The level, for the tolerance, which is judged for the level and for its endpoints of the same share.
    pub level: usize,
    /// The desired share of each endpoint, > 0.
    pub share: Ratio,
    /// How many endpoints, > 0.
    pub count: u32,
}

/// One more than the largest index of a level.
pub(super) fn levels(classes: &[Class]) -> usize {
    let indices = classes.iter().map(|class| class.level + 1);
    indices.max().unwrap_or(0)
}

/// What the endpoints of each class weigh together.
pub(super) fn picks(classes: &[Class], weights: &[u32]) -> Vec<u64> {
    let both = classes.iter().zip(weights);
    both.map(|(class, weight)| u64::from(class.count) * u64::from(*weight))
        .collect()
}
