//! Formats the load of an endpoint.

/// `1.20x`: a multiple of an even split.
pub(super) fn times(load: f64) -> String {
    format!("{load:.2}x")
}
