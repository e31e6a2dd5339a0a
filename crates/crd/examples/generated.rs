//! Prints every text that follows from the descriptions of the custom resources, for `cargo xtask
//! codegen`.
//!
//! A line before each text has its file: `>>> manifest NAME` or `>>> document NAME`.

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
