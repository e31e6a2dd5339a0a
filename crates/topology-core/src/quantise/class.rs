//! Classes of endpoints with the same share.

use crate::ratio::Ratio;

/// Endpoints of one level with the same share each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Class {
    /// The index of the level. The tolerance applies to levels and to classes.
    pub level: usize,
    /// The desired share of each endpoint, greater than 0.
    pub share: Ratio,
    /// Number of endpoints, greater than 0.
    pub count: u32,
}

/// The largest index of a level plus one.
pub(super) fn levels(classes: &[Class]) -> usize {
    let indices = classes.iter().map(|class| class.level + 1);
    indices.max().unwrap_or(0)
}

/// The sum of the weights of each class.
pub(super) fn picks(classes: &[Class], weights: &[u32]) -> Vec<u64> {
    let both = classes.iter().zip(weights);
    both.map(|(class, weight)| u64::from(class.count) * u64::from(*weight))
        .collect()
}
