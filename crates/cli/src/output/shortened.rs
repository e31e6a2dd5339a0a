//! Shortens lists: names the first elements, and counts the others.

/// `a, b and 3 more`, with at most `most` elements.
pub(super) fn shortened(elements: &[String], most: usize) -> String {
    let named = elements.get(..most).unwrap_or(elements);
    match elements.len() - named.len() {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_beyond_the_limit_are_counted() {
        let elements = ["a", "b", "c"].map(str::to_owned);
        for (most, expected) in [(2, "a, b and 1 more"), (3, "a, b, c"), (4, "a, b, c")] {
            assert_eq!(shortened(&elements, most), expected);
        }
        assert_eq!(shortened(&[], 2), "");
    }
}
