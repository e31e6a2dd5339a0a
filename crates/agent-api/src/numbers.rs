//! Formats numbers: shares in percent, counts with their noun.

/// A share of 0 to 1 in percent: `80.0 %`, `100 %`, `0 %`; `<0.1 %` for a share that rounds to 0.
pub fn percent(share: f64) -> String {
    if share <= 0.0 {
        "0 %".to_owned()
    } else if share >= 0.9995 {
        "100 %".to_owned()
    } else if share < 0.0005 {
        "<0.1 %".to_owned()
    } else {
        format!("{:.1} %", share * 100.0)
    }
}

/// A share in as few digits as possible: `80 %`, `12.5 %`.
pub fn short_percent(share: f64) -> String {
    let text = percent(share);
    text.replacen(".0 %", " %", 1)
}

/// `1 Service`, `2 Services`.
pub fn many(count: u64, noun: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{ending}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_keeps_one_digit_and_says_when_it_is_less() {
        assert_eq!(percent(0.8), "80.0 %");
        assert_eq!(percent(1.0), "100 %");
        assert_eq!(percent(1.0 / 6.0), "16.7 %");
        assert_eq!(percent(0.0001), "<0.1 %");
        assert_eq!(percent(0.0), "0 %");
        assert_eq!(short_percent(0.8), "80 %");
        assert_eq!(short_percent(0.125), "12.5 %");
    }
}
