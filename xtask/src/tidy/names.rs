//! Every path that a Rust file names in its code, unit tests apart: `std::fs::File`, `Instant::now` ...

use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};
use syn::{ItemMod, UseTree};

use super::source::{Source, is_test_only, lines};

/// A line, from 1, and the segments of a path on it.
pub(super) type Name = (usize, Vec<String>);

/// The paths of a file, `use` trees taken apart, in the order they stand.
pub(super) fn names(source: &Source) -> Vec<Name> {
    let mut finder = Finder::default();
    finder.visit_file(&source.ast);
    finder.paths
}

/// Collects every path of a file, `use` trees included, with its line.
#[derive(Default)]
struct Finder {
    paths: Vec<(usize, Vec<String>)>,
}

impl Finder {
    fn flatten(&mut self, tree: &UseTree, mut prefix: Vec<String>) {
        match tree {
            UseTree::Path(path) => {
                prefix.push(path.ident.to_string());
                self.flatten(&path.tree, prefix);
            }
            UseTree::Name(name) => {
                prefix.push(name.ident.to_string());
                self.paths.push((lines(name.span()).0, prefix));
            }
            UseTree::Rename(rename) => {
                prefix.push(rename.ident.to_string());
                self.paths.push((lines(rename.span()).0, prefix));
            }
            UseTree::Glob(glob) => self.paths.push((lines(glob.span()).0, prefix)),
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.flatten(tree, prefix.clone());
                }
            }
        }
    }
}

impl<'ast> Visit<'ast> for Finder {
    fn visit_item_mod(&mut self, module: &'ast ItemMod) {
        if !is_test_only(&module.attrs) {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.flatten(&item.tree, Vec::new());
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments = path
            .segments
            .iter()
            .map(|segment| segment.ident.to_string());
        self.paths.push((lines(path.span()).0, segments.collect()));
        visit::visit_path(self, path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn use_trees_are_taken_apart_and_unit_tests_left_out() {
        let code =
            "use a::{b, c::{d as e, *}};\nfn f() { g::h(); }\n#[cfg(test)] mod tests { use x::y; }";
        let names = names(&Source::parse("a.rs", code).unwrap());
        let texts: Vec<String> = names
            .iter()
            .map(|(line, path)| format!("{line} {}", path.join("::")))
            .collect();
        assert_eq!(texts, ["1 a::b", "1 a::c::d", "1 a::c", "2 g::h"]);
    }
}
