//! Rule: calls that can break an invariant appear only in the files that may use them.

use super::names::names;
use super::problem::Problem;
use super::source::Source;

/// A banned call.
struct Ban {
    /// The last segments of the path.
    call: &'static [&'static str],
    /// Prefixes of the files that may use it.
    allowed: &'static [&'static str],
    /// The sentence after "is banned here: ".
    instead: &'static str,
}

const BANS: &[Ban] = &[
    Ban {
        call: &["Instant", "now"],
        allowed: &[
            "crates/agent/",
            "crates/cli/",
            "crates/dataplane/",
            "crates/ipvs-netlink/",
            "crates/cluster/src/source",
            "crates/cluster/src/api",
            "crates/kube-io/src",
            "crates/cluster/examples/large_cluster/",
            "crates/controller/src/leader_election.rs",
            "crates/controller/src/log_once.rs",
            "crates/controller/src/run.rs",
            "crates/controller/src/run/follow.rs",
            "crates/dns-server/src/forwarder.rs",
            "crates/dns-server/src/handler.rs",
            "xtask/",
            "benches/",
        ],
        instead: "pure code takes the time as a value; add a parameter",
    },
    Ban {
        call: &["SystemTime", "now"],
        allowed: &["crates/agent/", "crates/cli/", "xtask/", "benches/"],
        instead: "pure code takes the time as a value; add a parameter",
    },
    Ban {
        call: &["Command", "new"],
        allowed: &[
            "crates/subprocess/src/lib.rs",
            "crates/cli/tests/",
            "crates/ipvs-netlink/tests/",
            "xtask/",
            "benches/",
        ],
        instead: "every process needs a deadline; use netlink, or crates/subprocess/src/lib.rs",
    },
    Ban {
        call: &["tokio", "spawn"],
        allowed: &[
            "crates/agent/src/run.rs",
            // It only sends an answer.
            "crates/agent/src/reconcile/queries.rs",
            "crates/cli/tests/",
            "crates/controller/src/run.rs",
            "crates/ipvs-netlink/tests/",
        ],
        instead: "a task that changes state unseen; make it a trigger of the loop, or start it in crates/agent/src/run.rs",
    },
    Ban {
        call: &["thread", "spawn"],
        allowed: &[
            "crates/cluster/src/source",
            "crates/cli/tests/",
            "crates/ipvs-netlink/tests/",
            "xtask/",
            "benches/",
        ],
        instead: "the agent has one thread; make it a trigger of the loop",
    },
    Ban {
        call: &["axum", "serve"],
        // The socket's file has mode 0600.
        allowed: &["crates/agent/src/start.rs"],
        instead: "it has no limits; a port is served by telemetry::serve",
    },
    Ban {
        call: &["process", "exit"],
        allowed: &["xtask/guest/"],
        instead: "destructors and buffered output are lost; return an ExitCode",
    },
];

/// Items that `topology-core` must not name.
const IMPURE: &[&[&str]] = &[
    &["std", "fs"],
    &["std", "io"],
    &["std", "process"],
    &["std", "thread"],
    &["std", "time"],
    &["std", "env"],
    &["std", "sync", "Mutex"],
    &["std", "sync", "RwLock"],
];

/// Finds banned calls outside the files that may use them. Unit tests are free.
pub(super) fn check(sources: &[Source]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for source in sources {
        for (line, path) in names(source) {
            problems.extend(violation(source, line, &path));
        }
    }
    problems
}

fn violation(source: &Source, line: usize, path: &[String]) -> Option<Problem> {
    let ends_with = |call: &[&str]| {
        let start = path.len().checked_sub(call.len());
        start
            .and_then(|start| path.get(start..))
            .is_some_and(|end| end == call)
    };
    let begins_with = |call: &[&str]| path.get(..call.len()).is_some_and(|begin| begin == call);
    let pure = source.path.starts_with("crates/topology-core/src/");
    if pure && IMPURE.iter().any(|call| begins_with(call)) {
        let message = format!(
            "`{}` is banned here: topology-core takes values and returns values; do it in the agent and pass the result",
            path.join("::")
        );
        return Some(Problem::at(&source.path, line, message));
    }
    let ban = BANS.iter().find(|ban| ends_with(ban.call))?;
    let allowed = ban
        .allowed
        .iter()
        .any(|prefix| source.path.starts_with(prefix));
    let message = format!("`{}` is banned here: {}", ban.call.join("::"), ban.instead);
    (!allowed && !source.is_test()).then(|| Problem::at(&source.path, line, message))
}

#[cfg(test)]
mod tests {
    use super::super::problem::texts;
    use super::*;

    fn problems_of(path: &str, text: &str) -> Vec<String> {
        texts(&check(&[Source::parse(path, text).unwrap()]))
    }

    #[test]
    fn the_pure_crate_may_not_read_the_clock_or_a_file() {
        let code = "use std::{fmt, fs::File};\nfn f() { let _ = std::time::Instant::now(); }";
        let problems = problems_of("crates/topology-core/src/quantise.rs", code);
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert!(
            problems[0]
                .starts_with("crates/topology-core/src/quantise.rs:1: `std::fs::File` is banned")
        );
        assert!(problems[1].contains(":2: `std::time::Instant::now` is banned"));
    }

    #[test]
    fn a_process_is_started_by_child_only() {
        let code = "fn f() { std::process::Command::new(\"nft\"); }";
        assert!(problems_of("crates/subprocess/src/lib.rs", code).is_empty());
        assert_eq!(problems_of("crates/agent/src/routes.rs", code).len(), 1);
        assert_eq!(
            problems_of("crates/ipvs-netlink/src/client.rs", code).len(),
            1
        );
    }

    #[test]
    fn a_task_is_spawned_in_run_only() {
        let code = "async fn f() { tokio::spawn(async {}); }";
        assert!(problems_of("crates/agent/src/run.rs", code).is_empty());
        assert_eq!(problems_of("crates/agent/src/reconcile.rs", code).len(), 1);
    }

    #[test]
    fn a_port_is_served_with_limits_only() {
        let code = "async fn f() { axum::serve(listener, router).await; }";
        assert!(problems_of("crates/agent/src/start.rs", code).is_empty());
        assert_eq!(problems_of("crates/controller/src/serve.rs", code).len(), 1);
    }

    #[test]
    fn unit_tests_may_use_anything() {
        let code = "#[cfg(test)]\nmod tests { fn f() { std::time::Instant::now(); } }";
        assert!(problems_of("crates/topology-core/src/quantise.rs", code).is_empty());
    }
}
