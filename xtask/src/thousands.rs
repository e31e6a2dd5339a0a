//! Formats numbers for tables.

/// Formats `10000` as `10,000`.
pub(crate) fn thousands(number: impl Into<u64>) -> String {
    match number.into() {
        small @ 0..1000 => small.to_string(),
        large => format!("{},{:03}", thousands(large / 1000), large % 1000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_grouped() {
        assert_eq!(thousands(7_u32), "7");
        assert_eq!(thousands(1_000_u32), "1,000");
        assert_eq!(thousands(1_020_030_u64), "1,020,030");
    }
}
