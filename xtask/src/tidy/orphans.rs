//! Rule: every Rust file is reached from a crate root through `mod` lines.
//!
//! A file that no `mod` line names is never compiled: its tests never run, and nobody is told.

use std::collections::{BTreeMap, BTreeSet};

use syn::{Expr, Item, ItemMod, Lit, Meta};

use super::members::Member;
use super::problem::Problem;
use super::source::Source;
use super::tree::Tree;

/// Finds `.rs` files outside every module tree, and `mod` lines without a file.
pub(super) fn check(tree: &Tree, sources: &[Source], members: &[Member]) -> Vec<Problem> {
    let by_path: BTreeMap<&str, &Source> = sources
        .iter()
        .map(|source| (source.path.as_str(), source))
        .collect();
    let mut walk = Walk {
        by_path: &by_path,
        reached: BTreeSet::new(),
    };
    for target in members.iter().flat_map(|member| &member.targets) {
        walk.file(&target.src_path, &folder_of(&target.src_path));
    }
    tree.with_extension("rs")
        .filter(|(path, _)| !walk.reached.contains(*path))
        .map(|(path, _)| {
            let message = "no `mod` line reaches this file, so it is never compiled; name it in its parent or delete it";
            Problem::in_file(path, message)
        })
        .collect()
}

/// The folder a file lies in.
fn folder_of(path: &str) -> String {
    path.rsplit_once('/')
        .map(|(folder, _)| folder.to_owned())
        .unwrap_or_default()
}

/// Follows `mod` lines and notes every file it comes to.
struct Walk<'a> {
    by_path: &'a BTreeMap<&'a str, &'a Source>,
    reached: BTreeSet<String>,
}

impl Walk<'_> {
    /// Follows one file; its modules without a body lie in `folder`.
    fn file(&mut self, path: &str, folder: &str) {
        if self.reached.insert(path.to_owned())
            && let Some(source) = self.by_path.get(path)
        {
            self.items(&source.ast.items, path, folder);
        }
    }

    fn items(&mut self, items: &[Item], path: &str, folder: &str) {
        for item in items {
            if let Item::Mod(module) = item {
                self.module(module, path, folder);
            }
        }
    }

    fn module(&mut self, module: &ItemMod, path: &str, folder: &str) {
        let name = module.ident.to_string();
        let inner = format!("{folder}/{name}");
        if let Some((_, items)) = &module.content {
            self.items(items, path, &inner);
        } else if let Some(named) = path_attribute(module) {
            let file = format!("{}/{named}", folder_of(path));
            self.file(&file, &folder_of(&file));
        } else {
            let flat = format!("{inner}.rs");
            if self.by_path.contains_key(flat.as_str()) {
                self.file(&flat, &inner);
            } else {
                self.file(&format!("{inner}/mod.rs"), &inner);
            }
        }
    }
}

/// The value of `#[path = "..."]`.
fn path_attribute(module: &ItemMod) -> Option<String> {
    module.attrs.iter().find_map(|attribute| {
        let Meta::NameValue(pair) = &attribute.meta else {
            return None;
        };
        match &pair.value {
            Expr::Lit(literal) if pair.path.is_ident("path") => match &literal.lit {
                Lit::Str(text) => Some(text.value()),
                _ => None,
            },
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::super::members::Target;
    use super::super::problem::texts;
    use super::super::source::parse_all;
    use super::*;

    fn problems_of<const N: usize>(root: &str, files: [(&str, &str); N]) -> Vec<String> {
        let tree = Tree::from(files);
        let member = Member {
            targets: vec![Target {
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
