//! Selects the tests of a run by their names.

use std::collections::BTreeSet;

use regex::bytes::{Regex, RegexBuilder};

use super::junit::{Outcomes, Verdict};

/// The group of the tests.
pub(super) const GROUP: &str = "[sig-network]";

/// Optional features that the lab has. A name contains `[Feature:NAME]` for each that its test needs.
const FEATURES: [&str; 2] = ["LoadBalancer", "SCTPConnectivity"];

/// Marks tests that restart parts of the cluster, which are not Pods here.
const DISRUPTIVE: &str = "[Disruptive]";

/// Parts of the names of tests that no other may run beside. Those of rolling updates permit few failed requests, and
/// their Pods have no readiness probe: beside other tests the programs of new Pods start too slowly.
const ALONE: [&str; 2] = [
    "[Serial]",
    "should not have connectivity disruption during rolling update",
];

/// A regular expression for names.
#[derive(Debug, Clone)]
pub(crate) struct Pattern(Regex);

impl std::str::FromStr for Pattern {
    type Err = regex::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // Names are ASCII, and the tables for other characters are not built in.
        RegexBuilder::new(text).unicode(false).build().map(Self)
    }
}

impl Pattern {
    fn matches(&self, name: &str) -> bool {
        self.0.is_match(name.as_bytes())
    }
}

/// Returns the tests of the network that the lab can run, match one of `focus` (all if it is empty), and none of `skip`.
pub(super) fn select(all: &[String], focus: &[Pattern], skip: &[Pattern]) -> Vec<String> {
    let any = |patterns: &[Pattern], name: &str| patterns.iter().any(|one| one.matches(name));
    let selected = all.iter().filter(|name| is_for_the_lab(name));
    let selected = selected.filter(|name| focus.is_empty() || any(focus, name));
    selected.filter(|name| !any(skip, name)).cloned().collect()
}

/// Returns the expressions that match none of `tests`.
pub(super) fn without_tests<'a>(patterns: &'a [Pattern], tests: &[String]) -> Vec<&'a str> {
    let is_idle = |one: &&Pattern| !tests.iter().any(|name| one.matches(name));
    let idle = patterns.iter().filter(is_idle);
    idle.map(|one| one.0.as_str()).collect()
}

/// Returns the tests of `selected` that have not passed yet.
pub(super) fn remaining(selected: &[String], before: &Outcomes) -> Vec<String> {
    let has_passed = |name: &str| {
        before
            .get(name)
            .is_some_and(|outcome| outcome.verdict == Verdict::Passed)
    };
    let left = selected.iter().filter(|name| !has_passed(name));
    left.cloned().collect()
}

/// Splits the tests that may run beside others into `count` shares, and returns those that run alone, too.
pub(super) fn shares(tests: &[String], count: usize) -> (Vec<Vec<String>>, Vec<String>) {
    let runs_alone = |name: &&String| ALONE.iter().any(|part| name.contains(part));
    let (alone, others): (Vec<_>, Vec<_>) = tests.iter().partition(runs_alone);
    let share = |first| others.iter().skip(first).step_by(count);
    let shares = (0..count).map(|first| share(first).map(|name| (*name).clone()).collect());
    (shares.collect(), alone.into_iter().cloned().collect())
}

/// Returns one regular expression of Go that matches exactly the tests `names`.
pub(super) fn exactly(names: &[String]) -> String {
    let names: BTreeSet<String> = names.iter().map(|name| regex::escape(name)).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    // Ginkgo puts the name of the suite before that of the test.
    format!("({})$", names.join("|"))
}

fn is_for_the_lab(name: &str) -> bool {
    name.contains(GROUP)
        && !name.contains(DISRUPTIVE)
        && features(name).all(|feature| FEATURES.contains(&feature))
}

/// Returns the features that a name contains.
fn features(name: &str) -> impl Iterator<Item = &str> {
    let parts = name.split("[Feature:").skip(1);
    parts.filter_map(|part| part.split_once(']').map(|(feature, _)| feature))
}

#[cfg(test)]
mod tests {
    use super::super::junit::CaseOutcome;
    use super::*;

    const ALL: [&str; 6] = [
        "[sig-network] Services should serve a basic endpoint from pods [Conformance]",
        "[sig-network] LoadBalancers [Feature:LoadBalancer] should work [Slow]",
        "[sig-network] LoadBalancers [Feature:LoadBalancer] [Feature:GCE] should work",
        "[sig-network] Services should work after restarting apiserver [Disruptive]",
        "[sig-network] DNS should resolve (hostNetwork: true), twice",
        "[sig-apps] Deployment should run",
    ];

    fn names(numbers: &[usize]) -> Vec<String> {
        numbers.iter().map(|at| ALL[*at].to_owned()).collect()
    }

    fn patterns(texts: &[&str]) -> Vec<Pattern> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn tests_of_other_groups_and_features_and_disruptive_ones_are_not_selected() {
        let all = names(&[0, 1, 2, 3, 4, 5]);
        assert_eq!(select(&all, &[], &[]), names(&[0, 1, 4]));
    }

    #[test]
    fn focus_adds_up_and_skip_wins() {
        let all = names(&[0, 1, 2, 3, 4, 5]);
        let focus = patterns(&[r"\bDNS\b", "Services .* pods"]);
        assert_eq!(select(&all, &focus, &[]), names(&[0, 4]));
        let idle = patterns(&["DNS", "apiserver", "[Dd]eployment"]);
        let lab = select(&all, &[], &[]);
        assert_eq!(without_tests(&idle, &lab), ["apiserver", "[Dd]eployment"]);
        let skip = patterns(&[r"\[Conformance\]$"]);
        assert_eq!(select(&all, &focus, &skip), names(&[4]));
        assert!("[".parse::<Pattern>().is_err());
    }

    #[test]
    fn only_what_has_passed_is_not_run_again() {
        let outcome = |verdict| CaseOutcome {
            verdict,
            seconds: 1.0,
            reason: String::new(),
        };
        let before = Outcomes::from([
            (ALL[0].to_owned(), outcome(Verdict::Passed)),
            (ALL[1].to_owned(), outcome(Verdict::Failed)),
            (ALL[4].to_owned(), outcome(Verdict::Skipped)),
        ]);
        assert_eq!(remaining(&names(&[0, 1, 4]), &before), names(&[1, 4]));
    }

    #[test]
    fn tests_that_run_alone_are_in_no_share_and_the_others_in_one() {
        let rolling = "should not have connectivity disruption during rolling update with x [Slow]";
        let all = ["a", "b [Serial]", "c", "d", rolling].map(str::to_owned);
        let (parallel, alone) = shares(&all, 2);
        assert_eq!(parallel, [vec!["a", "d"], vec!["c"]]);
        assert_eq!(alone, ["b [Serial]", rolling]);
        let (parallel, alone) = shares(&all[..2], 3);
        assert_eq!(parallel, [vec!["a"], vec![], vec![]]);
        assert_eq!(alone.len(), 1);
    }

    #[test]
    fn the_expression_matches_the_selected_tests_and_no_other() {
        let pattern: Pattern = exactly(&names(&[1, 4])).parse().unwrap();
        for (at, name) in ALL.iter().enumerate() {
            let of_ginkgo = format!("Kubernetes e2e suite {name}");
            assert_eq!(pattern.matches(&of_ginkgo), [1, 4].contains(&at), "{name}");
        }
    }
}
