//! Selects the source of Nodes: the Nodes themselves, or `TopologyMap` objects in their place.

pub(super) mod label_usage;
pub(super) mod relist;
mod relist_pace;
pub(super) mod select;
pub(super) mod topology_map;
pub(super) mod waiting;
pub(super) mod waiting_objects;

pub(crate) use relist_pace::LabelOwner;
