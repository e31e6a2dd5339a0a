//! Rule: crates depend on each other as `docs/architecture.md` says, and the pure crate stays pure.

use super::members::Member;
use super::problem::Problem;
use super::tree::Tree;

/// The dependencies that a package may have.
struct CrateRule {
    package: &'static str,
    /// Packages of this workspace, also for tests.
    inside: &'static [&'static str],
    /// Other crates, if the design restricts them.
    outside: Option<&'static [&'static str]>,
    /// The reason, for the error message.
    invariant: &'static str,
}

/// The whole graph. A package that is not in it is a problem.
const CRATE_RULES: &[CrateRule] = &[
    CrateRule {
        package: "topology-core",
        inside: &[],
        outside: Some(&["ipnetwork", "rustc-hash", "smallvec", "thiserror"]),
        invariant: "topology-core has no I/O, clock, async, logging, serde or Kubernetes types",
    },
    CrateRule {
        package: "netlink-pipeline",
        inside: &[],
        outside: Some(&[
            "libc",
            "netlink-packet-core",
            "netlink-sys",
            "rustix",
            "thiserror",
            "tokio",
        ]),
        invariant: "netlink-pipeline moves messages of any netlink protocol and knows no family but the controller",
    },
    CrateRule {
        package: "ipvs-netlink",
        inside: &["netlink-pipeline"],
        outside: Some(&["libc", "thiserror"]),
        invariant: "ipvs-netlink knows the kernel's IPVS and nothing of Kubernetes or topology",
    },
    CrateRule {
        package: "subprocess",
        inside: &[],
        outside: Some(&["rustix", "thiserror", "tokio"]),
        invariant: "subprocess runs any program and knows none",
    },
    CrateRule {
        package: "kube-io",
        inside: &["object-tree", "safe-text", "subprocess"],
        outside: None,
        invariant: "kube-io moves objects of any kind and knows none of them, nor topology-core",
    },
    CrateRule {
        package: "cluster",
        inside: &[
            "crd",
            "kube-io",
            "object-tree",
            "safe-text",
            "topology-core",
        ],
        outside: None,
        invariant: "cluster turns objects into topology-core values and never touches the kernel",
    },
    CrateRule {
        package: "crd",
        inside: &["object-tree", "safe-text", "topology-core"],
        outside: Some(&["jiff", "k8s-openapi", "serde", "serde_json"]),
        invariant: "crd describes our kinds and nothing of how they are read or written",
    },
    CrateRule {
        package: "object-tree",
        inside: &["safe-text"],
        outside: Some(&["granit-parser", "rustc-hash", "thiserror"]),
        invariant: "object-tree knows fields and lines and no kind of object",
    },
    CrateRule {
        package: "safe-text",
        inside: &[],
        outside: Some(&["serde_json"]),
        invariant: "safe-text knows characters and nothing of what they are about",
    },
    CrateRule {
        package: "telemetry",
        inside: &["safe-text"],
        outside: Some(&[
            "axum",
            "clap",
            "hyper",
            "hyper-util",
            "prometheus-client",
            "rustix",
            "tokio",
            "tracing",
            "tracing-subscriber",
        ]),
        invariant: "telemetry knows log lines, figures and connections, and nothing of what they are about",
    },
    CrateRule {
        package: "dataplane",
        inside: &[
            "ipvs-netlink",
            "netlink-pipeline",
            "subprocess",
            "topology-core",
        ],
        outside: None,
        invariant: "dataplane holds one node's kernel and nothing of Kubernetes objects",
    },
    CrateRule {
        package: "agent-api",
        inside: &["cluster", "topology-core"],
        outside: None,
        invariant: "agent-api is what the agent answers, and knows neither a kernel nor the loop",
    },
    CrateRule {
        package: "dns",
        inside: &["cluster", "topology-core"],
        outside: Some(&["hickory-proto", "rustc-hash", "smallvec"]),
        invariant: "dns turns a snapshot and a question into an answer, without sockets and without a clock",
    },
    CrateRule {
        package: "dns-server",
        inside: &["cluster", "dns", "telemetry"],
        outside: None,
        invariant: "dns-server moves messages, and knows neither a command line nor the agent",
    },
    CrateRule {
        package: "agent",
        inside: &[
            "agent-api",
            "cluster",
            "crd",
            "dataplane",
            "kube-io",
            "netlink-pipeline",
            "telemetry",
            "topology-core",
        ],
        outside: None,
        invariant: "agent is the loop and what it answers, and knows no command line",
    },
    CrateRule {
        package: "cli",
        inside: &[
            "agent",
            "agent-api",
            "cluster",
            "crd",
            "dataplane",
            "dns",
            "dns-server",
            "kube-io",
            "telemetry",
            "topology-core",
        ],
        outside: None,
        invariant: "cli is where a command line becomes options and views become text",
    },
    CrateRule {
        package: "load-balancer",
        inside: &["ipvs-netlink"],
        outside: Some(&["anyhow", "clap", "serde", "toml"]),
        invariant: "load-balancer shows what ipvs-netlink does without the rest of this workspace",
    },
    CrateRule {
        package: "controller",
        inside: &["cluster", "crd", "kube-io", "telemetry", "topology-core"],
        outside: None,
        invariant: "controller knows the API server and nothing of a node's kernel",
    },
    CrateRule {
        package: "testbed",
        inside: &["guest-wire"],
        outside: None,
        invariant: "testbed builds in seconds because it depends on none of the crates it runs",
    },
    CrateRule {
        package: "xtask",
        inside: &["guest-wire", "testbed"],
        outside: None,
        invariant: "xtask builds in seconds because it depends on none of the crates it runs",
    },
    CrateRule {
        package: "guest-wire",
        inside: &[],
        outside: None,
        invariant: "guest-wire is only the words that guest and xtask exchange",
    },
    CrateRule {
        package: "guest",
        inside: &["benches", "guest-wire", "ipvs-netlink", "netlink-pipeline"],
        outside: None,
        invariant: "guest plays pods and clients, never the agent",
    },
    CrateRule {
        package: "which-endpoint",
        inside: &["topology-core"],
        outside: None,
        invariant: "which-endpoint shows topology-core alone, without a kernel and a cluster",
    },
    CrateRule {
        package: "benches",
        inside: &[
            "cluster",
            "dns-server",
            "guest-wire",
            "ipvs-netlink",
            "kube-io",
            "netlink-pipeline",
            "topology-core",
        ],
        outside: None,
        invariant: "benches measure the libraries, not the agent",
    },
];

/// Finds dependencies that the design does not allow, and manifests without the workspace's lints.
pub(super) fn check(tree: &Tree, members: &[Member]) -> Vec<Problem> {
    let names: Vec<&str> = members.iter().map(|member| member.name.as_str()).collect();
    let mut problems = Vec::new();
    for member in members {
        let manifest = format!("{}/Cargo.toml", member.folder);
        match CRATE_RULES.iter().find(|rule| rule.package == member.name) {
            Some(rule) => {
                problems.extend(breaches(member, rule, &names, &manifest));
                problems.extend(lints(tree, &manifest));
            }
            // A fuzz crate is a workspace of its own that depends on the crate around it.
            None if member.folder.ends_with("/fuzz") => {}
            None => {
                let message = "this package is not in the design; add it to CRATE_RULES in xtask/src/tidy/edges.rs and to docs/architecture.md";
                problems.push(Problem::in_file(&manifest, message));
            }
        }
    }
    problems
}

fn breaches(member: &Member, rule: &CrateRule, names: &[&str], manifest: &str) -> Vec<Problem> {
    let mut problems = Vec::new();
    for dependency in &member.dependencies {
        let name = dependency.name.as_str();
        let ordinary = dependency.kind.is_none();
        let forbidden = if names.contains(&name) {
            !rule.inside.contains(&name) && name != member.name
        } else {
            ordinary && rule.outside.is_some_and(|allowed| !allowed.contains(&name))
        };
        if forbidden {
            let message = format!(
                "`{}` depends on `{name}`, but {}; move the code that needs it, or change the design first (docs/decisions)",
                member.name, rule.invariant
            );
            problems.push(Problem::in_file(manifest, message));
        }
    }
    problems
}

fn lints(tree: &Tree, manifest: &str) -> Option<Problem> {
    let inherits = tree
        .text(manifest)
        .is_some_and(|text| text.contains("[lints]\nworkspace = true"));
    let message =
        "the workspace's lints do not reach this package; add `[lints]` with `workspace = true`";
    (!inherits).then(|| Problem::in_file(manifest, message))
}

#[cfg(test)]
mod tests {
    use super::super::members::Dependency;
    use super::super::problem::texts;
    use super::*;

    fn member(name: &str, dependencies: &[(&str, Option<&str>)]) -> Member {
        let dependency = |(name, kind): &(&str, Option<&str>)| Dependency {
            name: (*name).into(),
            kind: kind.map(Into::into),
        };
        Member {
            name: name.into(),
            folder: format!("crates/{name}"),
            dependencies: dependencies.iter().map(dependency).collect(),
            targets: Vec::new(),
        }
    }

    #[test]
    fn the_design_has_no_circle() {
        let mut left: Vec<&CrateRule> = CRATE_RULES.iter().collect();
        loop {
            let names: Vec<&str> = left.iter().map(|rule| rule.package).collect();
            let before = left.len();
            left.retain(|rule| rule.inside.iter().any(|name| names.contains(name)));
            if left.len() == before {
                break;
            }
        }
        let names: Vec<&str> = left.iter().map(|rule| rule.package).collect();
        assert!(names.is_empty(), "{names:?}");
    }

    fn problems_of(members: &[Member]) -> Vec<String> {
        const LINTS: &str = "[lints]\nworkspace = true\n";
        let tree = Tree::from([
            ("crates/topology-core/Cargo.toml", LINTS),
            ("crates/ipvs-netlink/Cargo.toml", LINTS),
            ("crates/cluster/Cargo.toml", "[package]\n"),
        ]);
        texts(&check(&tree, members))
    }

    #[test]
    fn the_pure_crate_may_not_take_a_clock_or_serde() {
        let problems = problems_of(&[member("topology-core", &[("tokio", None)])]);
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(
            problems[0]
                .contains("`topology-core` depends on `tokio`, but topology-core has no I/O")
        );
        assert!(problems_of(&[member("topology-core", &[("serde", Some("dev"))])]).is_empty());
    }

    #[test]
    fn the_two_libraries_may_not_know_each_other_even_in_tests() {
        let problems = problems_of(&[
            member("topology-core", &[]),
            member("ipvs-netlink", &[("topology-core", Some("dev"))]),
        ]);
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].contains("`ipvs-netlink` depends on `topology-core`"));
    }

    #[test]
    fn a_package_without_a_rule_and_a_manifest_without_lints_are_problems() {
        let problems = problems_of(&[member("cluster", &[]), member("attic", &[])]);
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert!(problems[0].contains("the workspace's lints do not reach this package"));
        assert!(problems[1].contains("not in the design"));
    }
}
