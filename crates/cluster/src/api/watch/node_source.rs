//! Decides where Nodes are read: from the Nodes themselves, or from the `TopologyMap` objects that can stand for them.

pub(super) mod label_usage;
pub(super) mod relist;
mod relist_pace;
pub(super) mod select;
pub(super) mod topology_map;

pub(crate) use relist_pace::LabelOwner;
