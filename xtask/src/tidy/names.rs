//! Finds every path that a Rust file names outside unit tests: `std::fs::File`, `Instant::now` ...

use syn::punctuated::Punctuated;
use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};
use syn::{Expr, Item, ItemFn, ItemImpl, ItemMod, ItemUse, Token, UseTree, Visibility};

use super::source::{Source, is_test_only, lines};

/// A line, from 1, and the segments of a path on it.
pub(super) type Name = (usize, Vec<String>);

/// One name that a `use` brings into scope.
#[derive(Debug)]
pub(super) struct Use {
    /// From 1.
    pub(super) line: usize,
    /// The path as written, without a trailing `self`.
    pub(super) segments: Vec<String>,
    /// The name in scope; nothing for `*`.
    pub(super) name: Option<String>,
    /// Whether other modules see the name too (`pub use`).
    pub(super) is_reexport: bool,
}

/// The paths of some items.
#[derive(Debug, Default)]
pub(super) struct PathNames {
    pub(super) uses: Vec<Use>,
    pub(super) paths: Vec<Name>,
}

/// Returns the paths of a file in the order of their lines, with one path for each leaf of a `use` tree.
pub(super) fn names(source: &Source) -> Vec<Name> {
    let mut finder = PathFinder::new(InnerModules::Enter);
    finder.visit_file(&source.ast);
    let PathNames { uses, mut paths } = finder.names;
    paths.extend(uses.into_iter().map(|used| (used.line, used.segments)));
    paths.sort_by_key(|(line, _)| *line);
    paths
}

/// Returns the paths of the items of one module, without those of its submodules.
pub(super) fn of_module(items: &[Item]) -> PathNames {
    let mut finder = PathFinder::new(InnerModules::Skip);
    for item in items {
        finder.visit_item(item);
    }
    finder.names
}

/// Whether submodules are visited.
#[derive(Clone, Copy, PartialEq, Eq)]
enum InnerModules {
    Enter,
    Skip,
}

/// Collects every path of a file with its line, and splits `use` trees.
struct PathFinder {
    modules: InnerModules,
    names: PathNames,
}

impl PathFinder {
    fn new(modules: InnerModules) -> Self {
        let names = PathNames::default();
        Self { modules, names }
    }

    fn flatten(&mut self, tree: &UseTree, mut prefix: Vec<String>, is_reexport: bool) {
        let (span, name) = match tree {
            UseTree::Path(path) => {
                prefix.push(path.ident.to_string());
                return self.flatten(&path.tree, prefix, is_reexport);
            }
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.flatten(tree, prefix.clone(), is_reexport);
                }
                return;
            }
            UseTree::Name(name) => {
                if name.ident != "self" {
                    prefix.push(name.ident.to_string());
                }
                (name.span(), prefix.last().cloned())
            }
            UseTree::Rename(rename) => {
                if rename.ident != "self" {
                    prefix.push(rename.ident.to_string());
                }
                (rename.span(), Some(rename.rename.to_string()))
            }
            UseTree::Glob(glob) => (glob.span(), None),
        };
        self.names.uses.push(Use {
            line: lines(span).0,
            segments: prefix,
            name,
            is_reexport,
        });
    }
}

impl<'ast> Visit<'ast> for PathFinder {
    fn visit_item_mod(&mut self, module: &'ast ItemMod) {
        if self.modules == InnerModules::Enter && !is_test_only(&module.attrs) {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_fn(&mut self, item: &'ast ItemFn) {
        if !is_test_only(&item.attrs) {
            visit::visit_item_fn(self, item);
        }
    }

    fn visit_item_impl(&mut self, item: &'ast ItemImpl) {
        if !is_test_only(&item.attrs) {
            visit::visit_item_impl(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        if !is_test_only(&item.attrs) {
            let is_reexport = !matches!(item.vis, Visibility::Inherited);
            self.flatten(&item.tree, Vec::new(), is_reexport);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments = path
            .segments
            .iter()
            .map(|segment| segment.ident.to_string());
        let name = (lines(path.span()).0, segments.collect());
        self.names.paths.push(name);
        visit::visit_path(self, path);
    }

    /// Reads the arguments of a macro that takes expressions, as `format!` and `vec!` do.
    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        let arguments = Punctuated::<Expr, Token![,]>::parse_terminated;
        let mut inner = Self::new(self.modules);
        for argument in call.parse_body_with(arguments).iter().flatten() {
            inner.visit_expr(argument);
        }
        self.names.paths.append(&mut inner.names.paths);
        visit::visit_macro(self, call);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn use_trees_are_taken_apart_and_unit_tests_left_out() {
        let code = "use a::{b, c::{d as e, *}};\nfn f() { g::h(); }\n\
             #[cfg(test)] mod tests { use x::y; }\nfn g() { p!(k::l, 1) }";
        let names = names(&Source::parse("a.rs", code).unwrap());
        let texts: Vec<String> = names
            .iter()
            .map(|(line, path)| format!("{line} {}", path.join("::")))
            .collect();
        let expected = ["1 a::b", "1 a::c::d", "1 a::c", "2 g::h", "4 k::l", "4 p"];
        assert_eq!(texts, expected);
    }
}
