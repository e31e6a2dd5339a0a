//! Rule: the files of a crate do not import each other in a circle.
//!
//! A file imports another when its code uses an item that the other defines, through however many re-exports. A `mod`
//! line and a re-export alone import nothing. Crates need no such rule: cargo refuses a circle of them, and
//! `edges.rs` names every dependency.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::members::Member;
use super::modules::Modules;
use super::problem::Problem;
use super::source::Source;

/// For each file the files it imports, and the first line that does.
type Imports<'a> = BTreeMap<&'a str, BTreeMap<&'a str, usize>>;

/// Finds circles of imports.
pub(super) fn check(sources: &[Source], members: &[Member]) -> Vec<Problem> {
    let by_path: BTreeMap<&str, &Source> = sources
        .iter()
        .map(|source| (source.path.as_str(), source))
        .collect();
    let mut imports = Imports::new();
    for target in members.iter().flat_map(|member| &member.targets) {
        let is_program = |kind: &String| matches!(kind.as_str(), "lib" | "bin" | "proc-macro");
        if target.kind.iter().any(is_program) {
            add_imports(
                &Modules::of_target(&target.src_path, &by_path),
                &mut imports,
            );
        }
    }
    let mut problems = Vec::new();
    while let Some(circle) = shortest_circle(&mut imports) {
        problems.push(report(&circle));
        let (from, to) = closing(&circle);
        cut(&mut imports, from, to);
    }
    problems
}

fn add_imports<'a>(modules: &Modules<'a>, imports: &mut Imports<'a>) {
    for (number, module) in modules.each() {
        let own = module.names.uses.iter().filter(|used| !used.is_reexport);
        let used = own.map(|used| (used.line, &used.segments));
        let named = module.names.paths.iter().map(|(line, path)| (*line, path));
        for (line, path) in used.chain(named) {
            if let Some(file) = modules.file_of(number, path)
                && file != module.file
            {
                let lines = imports.entry(module.file).or_default();
                let first = lines.entry(file).or_insert(line);
                *first = line.min(*first);
            }
        }
    }
}

fn cut(imports: &mut Imports<'_>, from: &str, to: &str) {
    if let Some(lines) = imports.get_mut(from) {
        lines.remove(to);
    }
}

/// One import: the file, what it imports, and the line.
type Import<'a> = (&'a str, &'a str, usize);

/// The shortest circle, as the imports it consists of. Files that are in no circle leave `imports`.
fn shortest_circle<'a>(imports: &mut Imports<'a>) -> Option<Vec<Import<'a>>> {
    trim(imports);
    let mut shortest: Option<Vec<Import<'a>>> = None;
    for (from, lines) in &*imports {
        for (to, line) in lines {
            let Some(mut circle) = path_between(imports, to, from) else {
                continue;
            };
            circle.insert(0, (from, to, *line));
            if shortest
                .as_ref()
                .is_none_or(|known| circle.len() < known.len())
            {
                shortest = Some(circle);
            }
        }
    }
    shortest
}

/// Takes away files that nothing imports or that import nothing, until none is left.
fn trim(imports: &mut Imports<'_>) {
    loop {
        let before: usize = imports.values().map(BTreeMap::len).sum();
        let importers: BTreeSet<&str> = imports
            .iter()
            .filter(|(_, lines)| !lines.is_empty())
            .map(|(file, _)| *file)
            .collect();
        let imported: BTreeSet<&str> = imports.values().flat_map(BTreeMap::keys).copied().collect();
        imports.retain(|file, _| imported.contains(file));
        for lines in imports.values_mut() {
            lines.retain(|file, _| importers.contains(file));
        }
        if imports.values().map(BTreeMap::len).sum::<usize>() == before {
            return;
        }
    }
}

/// The fewest imports that lead from one file to another.
fn path_between<'a>(imports: &Imports<'a>, from: &str, to: &str) -> Option<Vec<Import<'a>>> {
    let mut came_by: BTreeMap<&str, Import<'a>> = BTreeMap::new();
    let mut queue = VecDeque::from([from]);
    while let Some(file) = queue.pop_front() {
        let Some((file, lines)) = imports.get_key_value(file) else {
            continue;
        };
        for (next, line) in lines {
            if *next != from && !came_by.contains_key(next) {
                came_by.insert(next, (file, next, *line));
                queue.push_back(next);
            }
        }
    }
    let mut path = Vec::new();
    let mut file = to;
    while file != from {
        let import = came_by.get(file)?;
        path.insert(0, *import);
        file = import.0;
    }
    Some(path)
}

/// The import to remove: the one from a module to a module above it, else the last.
fn closing<'a>(circle: &[Import<'a>]) -> (&'a str, &'a str) {
    let is_upwards = |(from, to, _): &&Import<'a>| {
        let stem = to.trim_end_matches(".rs");
        let above = stem.strip_suffix("/lib").or(stem.strip_suffix("/main"));
        from.starts_with(&format!("{}/", above.unwrap_or(stem)))
    };
    let upwards = circle.iter().find(is_upwards).or(circle.last());
    upwards.map_or(("", ""), |(from, to, _)| (from, to))
}

fn report(circle: &[Import<'_>]) -> Problem {
    let (from, to) = closing(circle);
    let line = |(file, other, _): &&Import<'_>| *file == from && *other == to;
    let line = circle.iter().find(line).map_or(0, |(_, _, line)| *line);
    let parts: Vec<String> = circle
        .iter()
        .map(|(file, other, line)| format!("{file}:{line} uses {other}"))
        .collect();
    let message = format!(
        "uses {to}, which closes a circle of imports ({}); move what both need into a file of its own",
        parts.join(", ")
    );
    Problem::at(from, line, message)
}

#[cfg(test)]
mod tests {
    use super::super::members::CargoTarget;
    use super::super::problem::texts;
    use super::*;

    const ROOT: &str = "crates/x/src/lib.rs";

    fn problems_of(files: &[(&str, &str)]) -> Vec<String> {
        let sources: Vec<Source> = files
            .iter()
            .map(|(path, text)| Source::parse(&format!("crates/x/src/{path}.rs"), text).unwrap())
            .collect();
        let member = Member {
            targets: vec![CargoTarget {
                name: "x".into(),
                kind: vec!["lib".into()],
                src_path: ROOT.into(),
            }],
            ..Member::default()
        };
        texts(&check(&sources, &[member]))
    }

    #[test]
    fn files_that_use_each_other_are_a_circle_with_its_lines() {
        let problems = problems_of(&[
            ("lib", "mod a; mod b;"),
            ("a", "\nuse crate::b::B;\npub struct A;"),
            ("b", "pub struct B;\nfn f() { crate::a::A; }"),
        ]);
        assert_eq!(problems.len(), 1, "{problems:?}");
        for part in [
            "crates/x/src/a.rs:2 uses crates/x/src/b.rs",
            "crates/x/src/b.rs:2 uses crates/x/src/a.rs",
        ] {
            assert!(problems[0].contains(part), "{problems:?}");
        }
    }

    #[test]
    fn a_child_that_uses_its_parent_is_the_one_to_change() {
        let problems = problems_of(&[
            ("lib", "mod a;"),
            ("a", "mod b; pub struct A(b::B);"),
            ("a/b", "use super::A;\npub struct B(Vec<A>);"),
        ]);
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].starts_with("crates/x/src/a/b.rs:1: uses crates/x/src/a.rs"));
    }

    #[test]
    fn module_lines_and_reexports_and_unit_tests_import_nothing() {
        let problems = problems_of(&[
            ("lib", "mod a; mod c; pub use a::A;"),
            ("a", "mod b; pub use b::B; pub struct A; pub struct D;"),
            // `B` is reached through its parent, and is still the child's.
            ("a/b", "use super::D; pub struct B(D);"),
            (
                "c",
                "use crate::{A, a::B}; pub struct C; #[cfg(test)] mod tests { use crate::a; }",
            ),
        ]);
        assert!(problems.is_empty(), "{problems:?}");
    }

    #[test]
    fn a_longer_circle_through_a_reexport_is_found() {
        let problems = problems_of(&[
            (
                "lib",
                "mod a; mod b; mod c; use a::A as Renamed; struct L(Renamed);",
            ),
            ("a", "use crate::b; pub struct A(b::B);"),
            ("b", "pub use crate::c::*; pub struct B(C);"),
            (
                "c",
                "pub struct C; fn f() { format!(\"{}\", crate::a::A::new()); }",
            ),
        ]);
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].contains("crates/x/src/b.rs:1 uses crates/x/src/c.rs"));
    }
}
