//! Fractions: exact if they fit, otherwise rounded.

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
fn percentages_are_short() {
    assert_eq!(Ratio::new(4, 5).to_string(), "80 %");
    assert_eq!(Ratio::new(2, 3).to_string(), "66.67 %");
    assert_eq!(Ratio::new(1, 1000).to_string(), "0.1 %");
    assert_eq!(Ratio::ZERO.to_string(), "0 %");
}

fn any_ratio() -> impl Strategy<Value = Ratio> {
    (any::<u64>(), 1..=u64::MAX).prop_map(|(top, bottom)| Ratio::new(top, bottom))
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
        let near = |exact: f64, ours: Ratio| (exact - ours.to_f64()).abs() <= exact * 1e-9 + 1e-9;
        let (x, y, z) = (a.to_f64(), b.to_f64(), c.to_f64());
        prop_assert!(near(x + y + z, a + b + c), "{:?}", a + b + c);
        prop_assert!(near(x * y * z, a * b * c), "{:?}", a * b * c);
        prop_assert!(near((x - y).abs(), a.distance(b)) || (x - y).abs() < x * 1e-6, "{:?}", a.distance(b));
    }
}
