//! Guest programs.
fn main() {}
