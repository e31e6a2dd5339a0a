//! Exact fractions.

use std::cmp::Ordering;
use std::fmt;
use std::ops::{Add, Div, Mul, Sub};

/// A fraction >= 0 in lowest terms.
///
/// Comparison is exact. Arithmetic is exact while both terms of the result fit 128 bits before they are reduced. Beyond
/// that each operand is first replaced by a fraction with terms of 63 bits, with an error below one part in 2^62 of the
/// operand. An operand beyond 2^63 becomes 2^63 - 1, and one below 2^-63 its reciprocal. Shares of policies
/// stay far inside the exact range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ratio {
    numerator: u128,
    denominator: u128,
}

/// Sums of products of two numbers up to this one do not overflow.
const LARGEST: u128 = (1 << 63) - 1;

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

    /// Whether `part` is less than `percent` percent of `whole`.
    pub(crate) fn is_below_percent(part: u32, whole: u32, percent: u8) -> bool {
        Self::new(part.into(), whole.into()) < Self::new(percent.into(), 100)
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

    /// The numerators over the product of both denominators.
    fn expanded(self, other: Self) -> Option<(u128, u128)> {
        let numerator = self.numerator.checked_mul(other.denominator)?;
        Some((numerator, other.numerator.checked_mul(self.denominator)?))
    }

    /// Calculates the terms of a result, with smaller operands if they overflow.
    fn calculate(self, other: Self, terms: impl Fn(Self, Self) -> Option<(u128, u128)>) -> Self {
        let rounded = || terms(self.small(), other.small());
        // Small operands do not overflow.
        let (numerator, denominator) = terms(self, other).or_else(rounded).unwrap_or_default();
        Self::reduced(numerator, denominator)
    }

    /// Almost the same value in terms that can be multiplied: the last convergent of its continued fraction that has such
    /// terms. Dropping bits of both terms would not do: if one term is much smaller, few of its bits would be left.
    fn small(self) -> Self {
        let (mut dividend, mut divisor) = (self.numerator, self.denominator);
        if dividend.max(divisor) <= LARGEST {
            return self;
        }
        let (mut before, mut last) = ((0, 1), (1, 0));
        while divisor != 0 {
            let quotient = dividend / divisor;
            let next = |before: u128, last: u128| {
                let next = quotient.checked_mul(last)?.checked_add(before)?;
                Some(next).filter(|next| *next <= LARGEST)
            };
            let (Some(top), Some(bottom)) = (next(before.0, last.0), next(before.1, last.1)) else {
                break;
            };
            (before, last) = (last, (top, bottom));
            (dividend, divisor) = (divisor, dividend % divisor);
        }
        let (numerator, denominator) = match last {
            (_, 0) => (LARGEST, 1),
            (0, _) => (1, LARGEST),
            terms => terms,
        };
        Self {
            numerator,
            denominator,
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
        self.calculate(other, |a, b| {
            let (left, right) = a.expanded(b)?;
            let denominator = a.denominator.checked_mul(b.denominator)?;
            Some((left.checked_add(right)?, denominator))
        })
    }
}

impl Sub for Ratio {
    type Output = Self;

    /// The difference, or 0 if it would be negative.
    fn sub(self, other: Self) -> Self {
        self.calculate(other, |a, b| {
            let (left, right) = a.expanded(b)?;
            let denominator = a.denominator.checked_mul(b.denominator)?;
            Some((left.saturating_sub(right), denominator))
        })
    }
}

impl Mul for Ratio {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        self.calculate(other, |a, b| {
            let numerator = a.numerator.checked_mul(b.numerator)?;
            Some((numerator, a.denominator.checked_mul(b.denominator)?))
        })
    }
}

impl Div for Ratio {
    type Output = Self;

    /// The quotient; 0 if the divisor is 0.
    fn div(self, other: Self) -> Self {
        self.calculate(other, Self::expanded)
    }
}

impl std::iter::Sum for Ratio {
    fn sum<I: Iterator<Item = Self>>(ratios: I) -> Self {
        ratios.fold(Self::ZERO, Add::add)
    }
}

impl Ord for Ratio {
    fn cmp(&self, other: &Self) -> Ordering {
        if let Some((left, right)) = self.expanded(*other) {
            return left.cmp(&right);
        }
        // Compares the continued fractions. Each further quotient counts the other way round.
        let ((mut a, mut b), (mut c, mut d)) = (
            (self.numerator, self.denominator),
            (other.numerator, other.denominator),
        );
        loop {
            let quotients = (a / b).cmp(&(c / d));
            let (left, right) = (a % b, c % d);
            if quotients.is_ne() || left == 0 || right == 0 {
                return quotients.then(left.cmp(&right));
            }
            ((a, b), (c, d)) = ((d, right), (b, left));
        }
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
