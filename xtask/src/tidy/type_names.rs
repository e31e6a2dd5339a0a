//! Rule: at most two types in the workspace have the same name.
//!
//! A reader who searches for a name should find one meaning, not a list to choose from.

mod allowed;

use std::collections::BTreeMap;

use syn::visit::{self, Visit};
use syn::{Ident, ItemEnum, ItemMod, ItemStruct, ItemTrait};

use allowed::ALLOWED;

use super::problem::Problem;
use super::source::{Source, is_test_only, lines};

/// How many types may have one name.
const MOST: usize = 2;

/// Names that mean the same wherever they stand: the options of a command, and the error of a crate or module.
const CONVENTIONS: &[&str] = &["Args", "Error"];

/// Finds names of too many types, and entries of the list that allow more than there are.
pub(super) fn check(sources: &[Source]) -> Vec<Problem> {
    problems(sources, ALLOWED)
}

fn problems(sources: &[Source], allowed: &[(&str, usize)]) -> Vec<Problem> {
    let mut places: BTreeMap<String, Vec<(&str, usize)>> = BTreeMap::new();
    for source in sources.iter().filter(|source| !source.is_test()) {
        let mut finder = Finder::default();
        finder.visit_file(&source.ast);
        for (name, line) in finder.found {
            places.entry(name).or_default().push((&source.path, line));
        }
    }
    let mut problems = Vec::new();
    for (name, places) in &places {
        let entry = allowed.iter().find(|(known, _)| known == name);
        let most = entry.map_or(MOST, |(_, most)| *most);
        if places.len() > most && !CONVENTIONS.contains(&&**name) {
            problems.extend(too_many(name, places));
        }
    }
    for (name, most) in allowed {
        let count = places.get(*name).map_or(0, Vec::len);
        if count < *most {
            let message = format!(
                "`{name}` is the name of {count} types and {most} are allowed; lower the number in ALLOWED, or take a name of {MOST} out"
            );
            problems.push(Problem::in_file(
                "xtask/src/tidy/type_names/allowed.rs",
                message,
            ));
        }
    }
    problems
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
struct Finder {
    found: Vec<(String, usize)>,
}

impl Finder {
    fn add(&mut self, name: &Ident) {
        self.found.push((name.to_string(), lines(name.span()).0));
    }
}

impl<'ast> Visit<'ast> for Finder {
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

    fn problems_of(code: &[&str], allowed: &[(&str, usize)]) -> Vec<String> {
        let sources: Vec<Source> = code
            .iter()
            .enumerate()
            .map(|(number, code)| Source::parse(&format!("{number}.rs"), code).unwrap())
            .collect();
        texts(&problems(&sources, allowed))
    }

    #[test]
    fn the_third_type_of_a_name_is_a_problem() {
        let two = [
            "struct Place;",
            "enum Place {}",
            "struct Args;",
            "struct Args;",
        ];
        assert!(problems_of(&two, &[]).is_empty());
        let three = [&two[..], &["mod m { trait Place {} }", "struct Args;"]].concat();
        let problems = problems_of(&three, &[]);
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].starts_with("4.rs:1: `Place` is the name of 3 types (0.rs:1, 1.rs:1,"));
        assert!(problems_of(&three, &[("Place", 3)]).is_empty());
    }

    #[test]
    fn types_of_unit_tests_do_not_count() {
        let tests = "#[cfg(test)] mod tests { struct Place; struct Place; }";
        assert!(problems_of(&["struct Place;", tests], &[]).is_empty());
    }

    #[test]
    fn an_exception_that_allows_more_than_there_are_is_a_problem() {
        let problems = problems_of(&["struct Place;"], &[("Place", 4)]);
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].contains("1 types and 4 are allowed"));
    }
}
