//! Formats how loaded an endpoint is.

/// `1.20x`: so many times an even split.
pub(super) fn times(load: f64) -> String {
    format!("{load:.2}x")
}
