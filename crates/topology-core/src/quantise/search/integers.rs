//! Converts fractions to machine integers.

use crate::ratio::Ratio;

/// Numerator and denominator in at most `bits` bits; drops the lower bits of both if there are more.
pub(super) fn to_integers(ratio: Ratio, bits: u32) -> (u64, u64) {
    let used = 128 - (ratio.numerator() | ratio.denominator()).leading_zeros();
    let extra = used.saturating_sub(bits);
    let word = |number: u128| u64::try_from(number >> extra).unwrap_or(u64::MAX);
    (word(ratio.numerator()), word(ratio.denominator()).max(1))
}
