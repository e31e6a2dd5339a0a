//! The median of readings.

/// Returns the median; NaN without values.
pub(super) fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use super::*;

    #[test]
    fn the_median_is_the_middle_of_the_sorted_values() {
        for (values, expected) in [
            (&[7.0][..], 7.0),
            (&[9.0, 1.0, 5.0], 5.0),
            (&[4.0, 3.0, 2.0, 1.0], 3.0),
        ] {
            let found = median(values.iter().copied());
            assert_eq!(found.total_cmp(&expected), Ordering::Equal, "{values:?}");
        }
        assert!(median([0.0; 0]).is_nan());
    }
}
