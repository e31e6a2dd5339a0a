//! Fractions of the naive engine in 128 bits; a case with an overflow is recorded and does not count.

use std::cell::Cell;
use std::cmp::Ordering;
use std::ops::{Add, Div, Mul, Sub};

thread_local! {
    static OVERFLOWN: Cell<bool> = const { Cell::new(false) };
}

/// Whether there was an overflow since the last call.
pub(crate) fn overflown() -> bool {
    OVERFLOWN.take()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Frac {
    pub(crate) n: i128,
    pub(crate) d: i128,
}

fn fit(number: Option<i128>) -> i128 {
    number.unwrap_or_else(|| {
        OVERFLOWN.set(true);
        1
    })
}

pub(crate) fn gcd(a: i128, b: i128) -> i128 {
    if b == 0 { a.abs() } else { gcd(b, a % b) }
}

pub(crate) fn times(a: i128, b: i128) -> i128 {
    fit(a.checked_mul(b))
}

/// `n / d`.
pub(crate) fn frac(n: i128, d: i128) -> Frac {
    assert_ne!(d, 0, "the naive engine divides by nothing");
    let common = gcd(n, d) * d.signum();
    Frac {
        n: n / common,
        d: d / common,
    }
}

pub(crate) fn whole(n: usize) -> Frac {
    frac(i128::try_from(n).unwrap(), 1)
}

pub(crate) const ZERO: Frac = Frac { n: 0, d: 1 };
pub(crate) const ONE: Frac = Frac { n: 1, d: 1 };

impl Add for Frac {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        let n = fit(times(self.n, other.d).checked_add(times(other.n, self.d)));
        frac(n, times(self.d, other.d))
    }
}

impl Sub for Frac {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self + Self {
            n: -other.n,
            d: other.d,
        }
    }
}

impl Mul for Frac {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        let (a, b) = (frac(self.n, other.d), frac(other.n, self.d));
        frac(times(a.n, b.n), times(a.d, b.d))
    }
}

impl Div for Frac {
    type Output = Self;
    fn div(self, other: Self) -> Self {
        assert_ne!(other.n, 0, "the naive engine divides by nothing");
        self * frac(other.d, other.n)
    }
}

impl std::iter::Sum for Frac {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(ZERO, Add::add)
    }
}

impl Ord for Frac {
    fn cmp(&self, other: &Self) -> Ordering {
        times(self.n, other.d).cmp(&times(other.n, self.d))
    }
}

impl PartialOrd for Frac {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
