//! Each of these tests has its own cluster DNS.

mod local_first;
mod node_local_cache;
mod zones;
