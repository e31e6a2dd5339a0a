//! Exact fractions.

use std::cmp::Ordering;
use std::fmt;
use std::ops::{Add, Div, Mul, Sub};

/// A fraction >= 0 in lowest terms.
///
/// Arithmetic is exact while numerator and denominator fit 128 bits. Beyond that the lowest bits of both are dropped,
/// an error below one part in 2^60. Shares of policies stay far inside the exact range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ratio {
    numerator: u128,
    denominator: u128,
}

/// Numbers of at most this many bits can be multiplied without overflow.
const HALF: u32 = 63;

impl Ratio {
    /// 0.
    pub const ZERO: Self = Self {
        numerator: 0,
        denominator: 1,
    };
    /// 1.
    pub const ONE: Self = Self {
        numerator: 1,
        denominator: 1,
    };

    /// `numerator / denominator`; 0 if the denominator is 0.
    pub fn new(numerator: u64, denominator: u64) -> Self {
        Self::reduced(u128::from(numerator), u128::from(denominator))
    }

    /// Numerator, in lowest terms.
    pub const fn numerator(self) -> u128 {
        self.numerator
    }

    /// Denominator, in lowest terms, not 0.
    pub const fn denominator(self) -> u128 {
        self.denominator
    }

    /// Whether it is 0.
    pub const fn is_zero(self) -> bool {
        self.numerator == 0
    }

    /// The nearest float, for output.
    #[expect(
        clippy::cast_precision_loss,
        reason = "a float is asked for; 53 bits are plenty to print"
    )]
    pub fn to_f64(self) -> f64 {
        self.numerator as f64 / self.denominator as f64
    }

    /// The absolute difference.
    #[must_use]
    pub fn distance(self, other: Self) -> Self {
        if self > other {
            self - other
        } else {
            other - self
        }
    }

    fn reduced(numerator: u128, denominator: u128) -> Self {
        if denominator == 0 || numerator == 0 {
            return Self::ZERO;
        }
        let common = gcd(numerator, denominator);
        Self {
            numerator: numerator / common,
            denominator: denominator / common,
        }
    }

    /// The same value, to 2^-60, in numbers that can be multiplied.
    fn small(self) -> Self {
        let bits = |number: u128| 128 - number.leading_zeros();
        let extra = bits(self.numerator.max(self.denominator)).saturating_sub(HALF);
        if extra == 0 {
            return self;
        }
        Self {
            numerator: self.numerator >> extra,
            denominator: (self.denominator >> extra).max(1),
        }
    }
}

/// The greatest common divisor; if one number is 0, the other one.
pub(crate) fn gcd(a: u128, b: u128) -> u128 {
    if let (Ok(mut a), Ok(mut b)) = (u64::try_from(a), u64::try_from(b)) {
        while b != 0 {
            (a, b) = (b, a % b);
        }
        return u128::from(a);
    }
    let (mut a, mut b) = (a, b);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

impl Add for Ratio {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        let (a, b) = (self.small(), other.small());
        Self::reduced(
            a.numerator * b.denominator + b.numerator * a.denominator,
            a.denominator * b.denominator,
        )
    }
}

impl Sub for Ratio {
    type Output = Self;

    /// The difference, or 0 if it would be negative.
    fn sub(self, other: Self) -> Self {
        let (a, b) = (self.small(), other.small());
        Self::reduced(
            (a.numerator * b.denominator).saturating_sub(b.numerator * a.denominator),
            a.denominator * b.denominator,
        )
    }
}

impl Mul for Ratio {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        let (a, b) = (self.small(), other.small());
        Self::reduced(a.numerator * b.numerator, a.denominator * b.denominator)
    }
}

impl Div for Ratio {
    type Output = Self;

    /// The quotient; 0 if the divisor is 0.
    fn div(self, other: Self) -> Self {
        let (a, b) = (self.small(), other.small());
        Self::reduced(a.numerator * b.denominator, a.denominator * b.numerator)
    }
}

impl std::iter::Sum for Ratio {
    fn sum<I: Iterator<Item = Self>>(ratios: I) -> Self {
        ratios.fold(Self::ZERO, Add::add)
    }
}

impl Ord for Ratio {
    fn cmp(&self, other: &Self) -> Ordering {
        let (a, b) = (self.small(), other.small());
        (a.numerator * b.denominator).cmp(&(b.numerator * a.denominator))
    }
}

impl PartialOrd for Ratio {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Ratio {
    /// As a percentage with at most two decimals: `80 %`, `0.1 %`, `66.67 %`; with `#` exactly: `4/5`, `1`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if f.alternate() {
            write!(f, "{}", self.numerator)?;
            return match self.denominator {
                1 => Ok(()),
                denominator => write!(f, "/{denominator}"),
            };
        }
        let hundredths = format!("{:.2}", self.to_f64() * 100.0);
        write!(
            f,
            "{} %",
            hundredths.trim_end_matches('0').trim_end_matches('.')
        )
    }
}

#[cfg(test)]
mod tests;
