//! Rule: exactly one file of the agent and its data plane names both `topology_core` and `ipvs_netlink`.
//!
//! `netlink_pipeline` does not count: routes and conntrack use it too.

use super::names::names;
use super::problem::Problem;
use super::source::Source;

/// The file that may name both.
const TRANSLATION: &str = "crates/dataplane/src/ipvs.rs";

/// The folders that the rule checks.
const FOLDERS: [&str; 3] = [
    "crates/agent/src/",
    "crates/cli/src/",
    "crates/dataplane/src/",
];

/// Finds other files of the agent and its data plane that name both libraries.
pub(super) fn check(sources: &[Source]) -> Vec<Problem> {
    sources
        .iter()
        .filter(|source| FOLDERS.iter().any(|folder| source.path.starts_with(folder)))
        .filter(|source| source.path != TRANSLATION && !source.is_test())
        .filter(|source| names_both(source))
        .map(|source| {
            let message = format!(
                "names both `topology_core` and `ipvs_netlink`; translate in {TRANSLATION} and use its functions here"
            );
            Problem::in_file(&source.path, message)
        })
        .collect()
}

fn names_both(source: &Source) -> bool {
    let names = names(source);
    let first = |path: &[String], word: &str| path.first().is_some_and(|first| first == word);
    let core = names.iter().any(|(_, path)| first(path, "topology_core"));
    core && names.iter().any(|(_, path)| first(path, "ipvs_netlink"))
}

#[cfg(test)]
mod tests {
    use super::super::problem::texts;
    use super::*;

    const BOTH: &str = "use topology_core::plan::Step; fn f() { ipvs_netlink::Client::open(); }";

    fn problems_of(path: &str, text: &str) -> Vec<String> {
        texts(&check(&[Source::parse(path, text).unwrap()]))
    }

    #[test]
    fn a_second_meeting_place_is_a_problem() {
        let problems = problems_of("crates/agent/src/apply.rs", BOTH);
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].contains("translate in crates/dataplane/src/ipvs.rs"));
    }

    #[test]
    fn the_meeting_place_itself_a_comment_and_the_transport_are_fine() {
        assert!(problems_of(TRANSLATION, BOTH).is_empty());
        let mention = "//! Uses `ipvs_netlink` through ipvs.rs.\nuse topology_core::plan::Step;";
        assert!(problems_of("crates/agent/src/apply.rs", mention).is_empty());
        let routes = "use netlink_pipeline::Connection;\nuse topology_core::model::Node;";
        assert!(problems_of("crates/dataplane/src/routes.rs", routes).is_empty());
        let both = "use ipvs_netlink::Client;\nuse topology_core::model::Node;";
        assert_eq!(problems_of("crates/dataplane/src/routes.rs", both).len(), 1);
    }
}
