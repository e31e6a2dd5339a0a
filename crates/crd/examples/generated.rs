//! Prints every text that follows from the descriptions of the custom resources; `cargo xtask codegen` runs it.
//!
//! Each text comes after a line that says where it belongs: `>>> manifest NAME` or `>>> document NAME`.

#![expect(clippy::print_stdout, reason = "it prints what it is asked for")]

use crd::{Generated, OutputPath, generated};

fn main() {
    for Generated { place, text } in generated() {
        match place {
            OutputPath::Manifest(name) => println!(">>> manifest {name}"),
            OutputPath::Document(name) => println!(">>> document {name}"),
        }
        print!("{text}");
    }
}
