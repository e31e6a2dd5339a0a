//! Draws shares as bars.

/// Eighths of a block, from empty to full.
const EIGHTHS: [&str; 9] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"];

/// A bar of at most `width` columns for a share of 0 to 1; a share above zero is always visible.
pub fn bar(share: f64, width: usize) -> String {
    let eighths = eighths(share, width);
    let (full, rest) = (eighths / 8, eighths % 8);
    let mut text = "█".repeat(full);
    text.push_str(EIGHTHS.get(rest).copied().unwrap_or_default());
    text
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "the share is clamped to 0..=1 and a terminal has few columns"
)]
fn eighths(share: f64, width: usize) -> usize {
    let clamped = if share.is_finite() {
        share.clamp(0.0, 1.0)
    } else {
        0.0
    };
    let eighths = (clamped * width as f64 * 8.0).round() as usize;
    if clamped > 0.0 && width > 0 {
        eighths.max(1)
    } else {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_grows_by_eighths_and_never_hides_a_share() {
        assert_eq!(bar(1.0, 4), "████");
        assert_eq!(bar(0.5, 4), "██");
        assert_eq!(bar(0.53, 4), "██▏");
        assert_eq!(bar(0.000_1, 4), "▏");
        assert_eq!(bar(0.0, 4), "");
        assert_eq!(bar(f64::NAN, 4), "");
        assert_eq!(bar(7.0, 2), "██");
        assert_eq!(bar(0.5, 0), "");
    }
}
