//! topology-core.
