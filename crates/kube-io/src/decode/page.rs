//! Holds what a page of a list says besides its objects.

/// What a page says besides its objects.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Page {
    /// The version of the whole collection, for following what comes after.
    pub resource_version: String,
    /// What to ask the next page with; empty on the last.
    pub r#continue: String,
}
