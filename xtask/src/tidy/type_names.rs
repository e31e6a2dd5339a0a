//! Rule: at most two types in the workspace have the same name.
//!
//! A reader who searches for a name should find one meaning, not a list to choose from.

use std::collections::BTreeMap;

use syn::visit::{self, Visit};
use syn::{Ident, ItemEnum, ItemMod, ItemStruct, ItemTrait};

use super::problem::Problem;
use super::source::{Source, is_test_only, lines};

/// How many types may have one name.
const MOST: usize = 2;

/// Names that mean the same wherever they stand: the options of a command, and the error of a crate or module.
const CONVENTIONS: &[&str] = &["Args", "Error"];

/// Finds names of too many types.
pub(super) fn check(sources: &[Source]) -> Vec<Problem> {
    let mut places: BTreeMap<String, Vec<(&str, usize)>> = BTreeMap::new();
    for source in sources.iter().filter(|source| !source.is_test()) {
        let mut finder = TypeFinder::default();
        finder.visit_file(&source.ast);
        for (name, line) in finder.found {
            places.entry(name).or_default().push((&source.path, line));
        }
    }
    let too_many_types = places
        .iter()
        .filter(|(name, places)| places.len() > MOST && !CONVENTIONS.contains(&&***name));
    too_many_types
        .filter_map(|(name, places)| too_many(name, places))
        .collect()
}

fn too_many(name: &str, places: &[(&str, usize)]) -> Option<Problem> {
    let (path, line) = places.last()?;
    let all: Vec<String> = places
        .iter()
        .map(|(path, line)| format!("{path}:{line}"))
        .collect();
    let message = format!(
        "`{name}` is the name of {} types ({}); name each after the one thing it is",
        places.len(),
        all.join(", ")
    );
    Some(Problem::at(path, *line, message))
}

/// Collects the types of a file outside of unit tests, with their lines.
#[derive(Default)]
struct TypeFinder {
    found: Vec<(String, usize)>,
}

impl TypeFinder {
    fn add(&mut self, name: &Ident) {
        self.found.push((name.to_string(), lines(name.span()).0));
    }
}

impl<'ast> Visit<'ast> for TypeFinder {
    fn visit_item_mod(&mut self, module: &'ast ItemMod) {
        if !is_test_only(&module.attrs) {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_struct(&mut self, item: &'ast ItemStruct) {
        self.add(&item.ident);
    }

    fn visit_item_enum(&mut self, item: &'ast ItemEnum) {
        self.add(&item.ident);
    }

    fn visit_item_trait(&mut self, item: &'ast ItemTrait) {
        self.add(&item.ident);
    }
}

#[cfg(test)]
mod tests {
    use super::super::problem::texts;
    use super::*;

    fn problems_of(code: &[&str]) -> Vec<String> {
        let sources: Vec<Source> = code
            .iter()
            .enumerate()
            .map(|(number, code)| Source::parse(&format!("{number}.rs"), code).unwrap())
            .collect();
        texts(&check(&sources))
    }

    #[test]
    fn the_third_type_of_a_name_is_a_problem() {
        let two = [
            "struct Place;",
            "enum Place {}",
            "struct Args;",
            "struct Args;",
        ];
        assert!(problems_of(&two).is_empty());
        let three = [&two[..], &["mod m { trait Place {} }", "struct Args;"]].concat();
        let problems = problems_of(&three);
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].starts_with("4.rs:1: `Place` is the name of 3 types (0.rs:1, 1.rs:1,"));
    }

    #[test]
    fn types_of_unit_tests_do_not_count() {
        let tests = "#[cfg(test)] mod tests { struct Place; struct Place; }";
        assert!(problems_of(&["struct Place;", tests]).is_empty());
    }
}
