//! The `ipvs-topo` command.
fn main() {}
