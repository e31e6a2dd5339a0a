//! Rule: every Rust file is reached from a crate root through `mod` lines.
//!
//! A file that no `mod` line names is never compiled: its tests never run, and there is no warning.

use std::collections::{BTreeMap, BTreeSet};

use super::members::Member;
use super::modules::Modules;
use super::problem::Problem;
use super::source::Source;
use super::tree::Tree;

/// Finds `.rs` files outside every module tree.
pub(super) fn check(tree: &Tree, sources: &[Source], members: &[Member]) -> Vec<Problem> {
    let by_path: BTreeMap<&str, &Source> = sources
        .iter()
        .map(|source| (source.path.as_str(), source))
        .collect();
    let targets = members.iter().flat_map(|member| &member.targets);
    let reached: BTreeSet<&str> = targets
        .flat_map(|target| {
            Modules::of_target(&target.src_path, &by_path)
                .files()
                .clone()
        })
        .collect();
    tree.with_extension("rs")
        .filter(|(path, _)| !reached.contains(*path))
        .map(|(path, _)| {
            let message = "no `mod` line reaches this file, so it is never compiled; name it in its parent or delete it";
            Problem::in_file(path, message)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::members::CargoTarget;
    use super::super::problem::texts;
    use super::super::source::parse_all;
    use super::*;

    fn problems_of<const N: usize>(root: &str, files: [(&str, &str); N]) -> Vec<String> {
        let tree = Tree::from(files);
        let member = Member {
            targets: vec![CargoTarget {
                name: "x".into(),
                kind: vec!["lib".into()],
                src_path: root.into(),
            }],
            ..Member::default()
        };
        texts(&check(&tree, &parse_all(&tree).unwrap(), &[member]))
    }

    #[test]
    fn a_file_that_no_mod_line_names_is_a_problem() {
        let problems = problems_of(
            "crates/x/src/lib.rs",
            [
                ("crates/x/src/lib.rs", "mod used;"),
                ("crates/x/src/used.rs", ""),
                ("crates/x/src/forgotten.rs", ""),
            ],
        );
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].starts_with("crates/x/src/forgotten.rs: no `mod` line reaches"));
    }

    #[test]
    fn modules_are_followed_through_folders_and_inline_bodies_and_path_attributes() {
        let problems = problems_of(
            "crates/x/src/lib.rs",
            [
                (
                    "crates/x/src/lib.rs",
                    "mod a; mod old; mod inline { mod deep; }",
                ),
                ("crates/x/src/a.rs", "mod b; #[cfg(test)] mod tests;"),
                ("crates/x/src/a/b.rs", "#[path = \"elsewhere.rs\"] mod c;"),
                ("crates/x/src/a/elsewhere.rs", ""),
                ("crates/x/src/a/tests.rs", ""),
                ("crates/x/src/old/mod.rs", "mod child;"),
                ("crates/x/src/old/child.rs", ""),
                ("crates/x/src/inline/deep.rs", ""),
            ],
        );
        assert!(problems.is_empty(), "{problems:?}");
    }

    #[test]
    fn a_test_file_outside_its_test_crate_is_a_problem() {
        let problems = problems_of(
            "crates/x/tests/kernel.rs",
            [
                ("crates/x/tests/kernel.rs", "mod kernel { mod drain; }"),
                ("crates/x/tests/kernel/drain.rs", ""),
                ("crates/x/tests/kernel/lost.rs", ""),
            ],
        );
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].starts_with("crates/x/tests/kernel/lost.rs"));
    }
}
