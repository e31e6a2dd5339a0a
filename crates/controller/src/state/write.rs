//! The writes that the state plans.

use serde_json::Value;
use topology_core::model::ObjectName;

use super::collection::Collection;

/// The field manager of patches.
pub const MANAGER: &str = "ipvs-topo-controller";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    pub collection: Collection,
    pub name: ObjectName,
    pub kind: WriteKind,
    /// The object, or the patch.
    pub body: Value,
    /// Whether a condition changes, and not only a count. Such writes come first.
    pub is_transition: bool,
}

/// Whether an object must wait for its next write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    No,
    /// It was written recently; further changes are gathered.
    ForChanges,
    /// Its last write failed.
    AfterFailure,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteKind {
    Create,
    /// Replaces the object if it has not changed.
    Replace,
    /// Replaces the status if the object has not changed.
    Status,
    Delete,
    /// Sends a merge patch, which succeeds if the object has not changed.
    Merge,
}
