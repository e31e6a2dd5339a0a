//! Cluster generators.
