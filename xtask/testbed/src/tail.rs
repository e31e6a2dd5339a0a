//! Shortens logs in error messages.

/// Returns the last `count` lines of `text`.
pub fn tail(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let end = lines.get(lines.len().saturating_sub(count)..);
    end.unwrap_or_default().join("\n")
}
