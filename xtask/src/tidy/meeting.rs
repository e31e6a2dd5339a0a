//! Rule: the words of `topology_core` and of `ipvs_netlink` meet in exactly one file of the agent.

use proc_macro2::{TokenStream, TokenTree};

use super::problem::Problem;
use super::source::Source;

/// The one file that may name both.
const MEETING: &str = "crates/agent/src/kernel.rs";

/// Finds other files of the agent that name both libraries.
pub(super) fn check(sources: &[Source]) -> Vec<Problem> {
    sources
        .iter()
        .filter(|source| source.path.starts_with("crates/agent/src/"))
        .filter(|source| source.path != MEETING && !source.is_test())
        .filter(|source| names(source, "topology_core") && names(source, "ipvs_netlink"))
        .map(|source| {
            let message = format!(
                "names both `topology_core` and `ipvs_netlink`; translate in {MEETING} and use its functions here"
            );
            Problem::in_file(&source.path, message)
        })
        .collect()
}

/// Whether the code (comments and documentation apart) holds this identifier.
fn names(source: &Source, word: &str) -> bool {
    source
        .text
        .parse::<TokenStream>()
        .is_ok_and(|tokens| holds(tokens, word))
}

fn holds(tokens: TokenStream, word: &str) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Ident(ident) => ident == word,
        TokenTree::Group(group) => holds(group.stream(), word),
        TokenTree::Punct(_) | TokenTree::Literal(_) => false,
    })
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
        assert!(problems[0].contains("translate in crates/agent/src/kernel.rs"));
    }

    #[test]
    fn the_meeting_place_itself_and_a_mention_in_a_comment_are_fine() {
        assert!(problems_of(MEETING, BOTH).is_empty());
        let mention = "//! Uses `ipvs_netlink` through kernel.rs.\nuse topology_core::plan::Step;";
        assert!(problems_of("crates/agent/src/apply.rs", mention).is_empty());
    }
}
