//! Rule: a file has at most 450 lines that are not tests, a function at most 60 lines of code.
//!
//! Clippy counts function lines too; this rule holds where an `expect` attribute silences it.

use std::collections::BTreeSet;

use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};
use syn::{ImplItemFn, ItemFn, ItemMod, TraitItemFn};

use super::problem::Problem;
use super::source::{Source, is_test_only, lines};

/// The limit for non-test lines of one file.
const FILE_LINES: usize = 450;
/// The limit for lines with code in one function (not blank, not only a comment).
const FUNCTION_LINES: usize = 60;

/// Finds files and functions that are too long. Test files have no limit.
pub(super) fn check(sources: &[Source]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for source in sources.iter().filter(|source| !source.is_test()) {
        let mut measure = Measure {
            source,
            code: code_lines(&source.text),
            test_lines: 0,
            problems: Vec::new(),
        };
        measure.visit_file(&source.ast);
        let count = source.text.lines().count() - measure.test_lines;
        if count > FILE_LINES {
            problems.push(Problem::in_file(&source.path, file_message(count)));
        }
        problems.append(&mut measure.problems);
    }
    problems
}

fn file_message(count: usize) -> String {
    format!(
        "{count} lines without tests, the limit is {FILE_LINES}; give one of its concerns a file of its own"
    )
}

/// Returns the numbers of the lines with code, from 1.
fn code_lines(text: &str) -> BTreeSet<usize> {
    let holds_code = |line: &str| !line.is_empty() && !line.starts_with("//");
    text.lines()
        .enumerate()
        .filter(|(_, line)| holds_code(line.trim()))
        .map(|(index, _)| index + 1)
        .collect()
}

/// Walks one file and measures what is in it.
struct Measure<'a> {
    source: &'a Source,
    code: BTreeSet<usize>,
    test_lines: usize,
    problems: Vec<Problem>,
}

impl Measure<'_> {
    fn function(&mut self, name: &syn::Ident, body: &syn::Block) {
        let (first, last) = lines(body.span());
        // The lines with the braces do not count.
        let count = self.code.range(first + 1..last.max(first + 1)).count();
        if count > FUNCTION_LINES {
            let message = format!(
                "`{name}` has {count} lines of code, the limit is {FUNCTION_LINES}; give its steps names of their own"
            );
            self.problems
                .push(Problem::at(&self.source.path, first, message));
        }
    }
}

impl<'ast> Visit<'ast> for Measure<'_> {
    fn visit_item_mod(&mut self, module: &'ast ItemMod) {
        if is_test_only(&module.attrs) {
            let (first, last) = lines(module.span());
            self.test_lines += last + 1 - first;
        } else {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_fn(&mut self, function: &'ast ItemFn) {
        self.function(&function.sig.ident, &function.block);
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast ImplItemFn) {
        self.function(&function.sig.ident, &function.block);
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &'ast TraitItemFn) {
        if let Some(body) = &function.default {
            self.function(&function.sig.ident, body);
        }
        visit::visit_trait_item_fn(self, function);
    }
}

#[cfg(test)]
mod tests {
    use super::super::problem::texts;
    use super::*;

    fn problems_of(path: &str, text: &str) -> Vec<String> {
        texts(&check(&[Source::parse(path, text).unwrap()]))
    }

    fn function_of(lines: usize) -> String {
        format!("fn long() {{\n{}}}\n", "    step();\n".repeat(lines))
    }

    #[test]
    fn a_function_of_61_lines_is_too_long_and_of_60_is_not() {
        assert!(problems_of("src/a.rs", &function_of(60)).is_empty());
        let problems = problems_of("src/a.rs", &function_of(61));
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].starts_with("src/a.rs:1: `long` has 61 lines of code"));
    }

    #[test]
    fn comments_and_blank_lines_of_a_function_do_not_count() {
        let text = format!("fn long() {{\n{}}}\n", "    // why\n\n".repeat(61));
        assert!(problems_of("src/a.rs", &text).is_empty());
    }

    #[test]
    fn a_long_method_is_found_too() {
        let text = format!("impl Thing {{\n{}}}\n", function_of(61));
        assert_eq!(problems_of("src/a.rs", &text).len(), 1);
    }

    #[test]
    fn a_file_of_451_lines_is_too_long_but_its_tests_are_free() {
        let long = "//! A line.\n".repeat(451);
        let problems = problems_of("src/a.rs", &long);
        assert!(problems[0].starts_with("src/a.rs: 451 lines without tests"));
        assert!(problems_of("crates/x/tests/a.rs", &long).is_empty());

        let tests = format!(
            "#[cfg(test)]\nmod tests {{\n{}}}\n",
            "    // a case\n".repeat(500)
        );
        assert!(problems_of("src/a.rs", &tests).is_empty());
    }
}
