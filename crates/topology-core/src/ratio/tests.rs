//! Fractions: exact if they fit, otherwise rounded.

use std::cmp::Ordering;

use proptest::prelude::*;

use super::Ratio;

#[test]
fn arithmetic_is_exact() {
    assert_eq!(Ratio::new(1, 3) + Ratio::new(1, 6), Ratio::new(1, 2));
    assert_eq!(Ratio::new(1, 2) - Ratio::new(1, 3), Ratio::new(1, 6));
    assert_eq!(Ratio::new(1, 3) - Ratio::new(1, 2), Ratio::ZERO);
    assert_eq!(Ratio::new(2, 3) * Ratio::new(3, 4), Ratio::new(1, 2));
    assert_eq!(Ratio::new(1, 2) / Ratio::new(1, 4), Ratio::new(2, 1));
    assert_eq!(Ratio::new(7, 0), Ratio::ZERO);
    assert_eq!(Ratio::ONE / Ratio::ZERO, Ratio::ZERO);
}

#[test]
fn huge_terms_lose_bits_instead_of_overflowing() {
    let third = Ratio::new(u64::MAX / 3, u64::MAX);
    let product = third * third * third * third;
    assert!((product.to_f64() - 1.0 / 81.0).abs() < 1e-9);
}

#[test]
fn one_huge_and_one_small_term_are_as_exact_as_others() {
    let huge = Ratio::new(u64::MAX, 2);
    assert!(huge < Ratio::new(u64::MAX, 1));
    assert!(Ratio::new(u64::MAX - 1, 3) < Ratio::new(u64::MAX, 3));
    assert!(Ratio::new(1, u64::MAX) < Ratio::new(1, u64::MAX - 1));
    assert!(Ratio::new(1, u64::MAX) > Ratio::ZERO);
    assert_eq!(huge / Ratio::new(3, 1), Ratio::new(u64::MAX / 3, 2));
    assert_eq!(huge / huge, Ratio::ONE);
    assert_eq!(Ratio::new(u64::MAX, 3) - huge, Ratio::ZERO);
    let tiny = Ratio::new(1, u64::MAX) * Ratio::new(1, u64::MAX);
    assert!(Ratio::ZERO < tiny && tiny < Ratio::new(1, u64::MAX));
    assert!(tiny * tiny > Ratio::ZERO, "it is clamped");
    let sum = Ratio::new(u64::MAX, 7) + Ratio::new(1, u64::MAX) * Ratio::new(2, u64::MAX - 1);
    assert!((sum.to_f64() / Ratio::new(u64::MAX, 7).to_f64() - 1.0).abs() < 1e-15);
}

/// Both sides overflow 128 bits, so their continued fractions are compared.
#[test]
fn huge_fractions_are_compared_exactly() {
    let square = |top: u64, bottom: u64| Ratio::new(top, bottom) * Ratio::new(top, bottom);
    let [low, middle, high] = [2, 1, 0].map(|less| square(u64::MAX - less, u64::MAX - 3));
    assert!(low < middle && middle < high);
    assert!(high > middle && middle > low);
    assert_eq!(
        middle.cmp(&square(u64::MAX - 1, u64::MAX - 3)),
        Ordering::Equal
    );
}

#[test]
fn percentages_are_short() {
    assert_eq!(Ratio::new(4, 5).to_string(), "80 %");
    assert_eq!(Ratio::new(2, 3).to_string(), "66.67 %");
    assert_eq!(Ratio::new(1, 1000).to_string(), "0.1 %");
    assert_eq!(Ratio::ZERO.to_string(), "0 %");
}

/// Terms of every length, so that one may be huge and the other small.
fn any_term() -> impl Strategy<Value = u64> {
    (any::<u64>(), 0..64_u32).prop_map(|(bits, drop)| bits >> drop)
}

fn any_ratio() -> impl Strategy<Value = Ratio> {
    (any_term(), any_term()).prop_map(|(top, bottom)| Ratio::new(top, bottom.max(1)))
}

fn small_ratio() -> impl Strategy<Value = Ratio> {
    (0..100_000_u64, 1..100_000_u64).prop_map(|(top, bottom)| Ratio::new(top, bottom))
}

proptest! {
    #[test]
    fn small_fractions_are_exact(a in small_ratio(), b in small_ratio()) {
        prop_assert_eq!((a + b) - b, a);
        prop_assert_eq!((a * b) / b, if b.is_zero() { Ratio::ZERO } else { a });
        prop_assert_eq!(a.distance(b), b.distance(a));
        prop_assert_eq!(a < b, a.to_f64() < b.to_f64());
    }

    #[test]
    fn any_fractions_stay_near(a in any_ratio(), b in any_ratio(), c in any_ratio()) {
        let near = |exact: f64, ours: Ratio| (exact - ours.to_f64()).abs() <= exact * 1e-9;
        let (x, y, z) = (a.to_f64(), b.to_f64(), c.to_f64());
        // Beyond these bounds operands are clamped.
        let is_clamped = |value: f64| value != 0.0 && !(1e-18..1e18).contains(&value);
        if [x, y, z, x * y].into_iter().any(is_clamped) {
            return Ok(());
        }
        prop_assert!(near(x + y + z, a + b + c), "{:?}", a + b + c);
        prop_assert!(near((x - y).abs(), a.distance(b)) || (x - y).abs() < x * 1e-6, "{:?}", a.distance(b));
        prop_assert!(near(x * y * z, a * b * c), "{:?}", a * b * c);
        prop_assert!(b.is_zero() || near(x / y, a / b), "{:?}", a / b);
    }

    /// A total order that agrees with the floats, also of products that fit 128 bits only just.
    #[test]
    fn any_fractions_are_ordered(a in any_ratio(), b in any_ratio(), c in any_ratio(), d in any_ratio()) {
        let (a, b) = (a * b, c * d);
        prop_assert_eq!(a.cmp(&b), b.cmp(&a).reverse());
        prop_assert_eq!(a.cmp(&b).is_eq(), a == b);
        let (x, y) = (a.to_f64(), b.to_f64());
        let is_far = (x - y).abs() > x.max(y) * 1e-12;
        prop_assert!(!is_far || (a < b) == (x < y), "{a:?} {b:?}");
    }
}
