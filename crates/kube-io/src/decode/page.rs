//! The metadata of a page of a list.

#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Page {
    /// The version of the whole collection, to watch from.
    pub resource_version: String,
    /// The continue token for the next page; empty on the last page.
    pub r#continue: String,
}
