//! Parses each Rust file once, for every rule that reads code.

use anyhow::Context as _;
use proc_macro2::Span;
use syn::{Attribute, Meta};

use super::tree::Tree;

/// One `.rs` file.
pub(super) struct Source {
    /// From the root of the tree.
    pub(super) path: String,
    pub(super) text: String,
    pub(super) ast: syn::File,
}

impl Source {
    /// Parses one file.
    pub(super) fn parse(path: &str, text: &str) -> anyhow::Result<Self> {
        let ast = syn::parse_file(text).with_context(|| format!("{path} is not Rust"))?;
        Ok(Self {
            path: path.to_owned(),
            text: text.to_owned(),
            ast,
        })
    }

    /// Returns whether the whole file is test code: in a `tests` folder, or the `tests.rs` of a module.
    pub(super) fn is_test(&self) -> bool {
        self.path.contains("/tests/") || self.path.ends_with("/tests.rs")
    }
}

/// Parses every `.rs` file of the tree. A syntax error is an error and not a problem, because the other rules need
/// every file.
pub(super) fn parse_all(tree: &Tree) -> anyhow::Result<Vec<Source>> {
    tree.with_extension("rs")
        .map(|(path, text)| Source::parse(path, text))
        .collect()
}

/// Returns whether these attributes restrict an item to tests: `#[cfg(test)]` or `#[test]`.
pub(super) fn is_test_only(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::Path(path) => path.is_ident("test"),
        Meta::List(list) => list.path.is_ident("cfg") && list.tokens.to_string() == "test",
        Meta::NameValue(_) => false,
    })
}

/// Returns the first and last line of a span, from 1.
pub(super) fn lines(span: Span) -> (usize, usize) {
    (span.start().line, span.end().line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_cfg_test_and_test_make_an_item_test_only() {
        let is_test = |code: &str| match &Source::parse("a.rs", code).unwrap().ast.items[0] {
            syn::Item::Fn(item) => is_test_only(&item.attrs),
            _ => panic!("the sample holds a function"),
        };
        assert!(is_test("#[test] fn f() {}"));
        assert!(is_test("#[cfg(test)] fn f() {}"));
        assert!(!is_test("#[cfg(feature = \"tokio\")] fn f() {}"));
        assert!(!is_test("#[must_use] fn f() {}"));
    }
}
