//! Parses Kubernetes quantities, as in `cpu: 3920m`.

/// Each suffix, with the numbers to multiply with and to divide by.
const SUFFIXES: [(&str, u128, u128); 15] = [
    ("n", 1, 1_000_000_000),
    ("u", 1, 1_000_000),
    ("m", 1, 1_000),
    ("", 1, 1),
    ("k", 1_000, 1),
    ("M", 1_000_000, 1),
    ("G", 1_000_000_000, 1),
    ("T", 1_000_000_000_000, 1),
    ("P", 1_000_000_000_000_000, 1),
    ("E", 1_000_000_000_000_000_000, 1),
    ("Ki", 1 << 10, 1),
    ("Mi", 1 << 20, 1),
    ("Gi", 1 << 30, 1),
    ("Ti", 1 << 40, 1),
    ("Pi", 1 << 50, 1),
];

/// The largest number of digits before, and after, the point. CPU quantities have fewer.
const MAX_DIGITS: usize = 15;

/// The quantity in thousandths, rounded up as the API server does. `None` if the text is not a
/// quantity, is negative or is too large.
pub(crate) fn milli(text: &str) -> Option<u64> {
    let text = text.strip_prefix('+').unwrap_or(text);
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, suffix) = text.split_at_checked(end)?;
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && part.is_empty()) || part.contains('.') {
        return None;
    }
    if whole.len() > MAX_DIGITS || part.len() > MAX_DIGITS {
        return None;
    }
    let digits: u128 = format!("{whole}{part}").parse().ok()?;
    let (times, over) = scale(suffix)?;
    let over = over.checked_mul(10_u128.checked_pow(u32::try_from(part.len()).ok()?)?)?;
    let milli = digits.checked_mul(1_000)?.checked_mul(times)?;
    milli.div_ceil(over).try_into().ok()
}

/// The numbers to multiply with and to divide by.
fn scale(suffix: &str) -> Option<(u128, u128)> {
    if let Some((_, times, over)) = SUFFIXES.iter().find(|(known, ..)| *known == suffix) {
        return Some((*times, *over));
    }
    let exponent: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
    let power = 10_u128.checked_pow(exponent.unsigned_abs())?;
    Some(if exponent < 0 { (1, power) } else { (power, 1) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_mean_what_kubernetes_says() {
        let cases = [
            ("4", 4_000),
            ("3920m", 3_920),
            ("1.5", 1_500),
            (".5", 500),
            ("2.", 2_000),
            ("0", 0),
            ("+1", 1_000),
            ("100u", 1),
            ("1n", 1),
            ("1k", 1_000_000),
            ("1Ki", 1_024_000),
            ("2e3", 2_000_000),
            ("2E-1", 200),
            ("1P", 1_000_000_000_000_000_000),
        ];
        for (text, expected) in cases {
            assert_eq!(milli(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn a_text_that_is_not_a_quantity_is_none() {
        let long = "1".repeat(40);
        for text in [
            "", ".", "-1", "1E", "1.2.3", "four", "1 m", "1x", "1e", "1e99", "e3", "m", &long,
            "1\u{e9}",
        ] {
            assert_eq!(milli(text), None, "{text}");
        }
    }
}
