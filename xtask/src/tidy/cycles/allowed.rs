//! Lists the circles of imports that are left, each by the file and the import in it that closes it.

/// The list only gets shorter.
pub(super) const ALLOWED: &[(&str, &str)] = &[
    ("crates/agent/src/api/answer.rs", "crates/agent/src/api.rs"),
    (
        "crates/agent/src/metrics/gauges.rs",
        "crates/agent/src/metrics.rs",
    ),
    (
        "crates/agent/src/output/print.rs",
        "crates/agent/src/cli.rs",
    ),
    (
        "crates/agent/src/simulate/table/single_server.rs",
        "crates/agent/src/simulate/table.rs",
    ),
    (
        "crates/cluster/src/api/connection/body.rs",
        "crates/cluster/src/api/connection.rs",
    ),
    (
        "crates/cluster/src/api/watch/version.rs",
        "crates/cluster/src/api/connection.rs",
    ),
    (
        "crates/cluster/src/source/catalog/reading.rs",
        "crates/cluster/src/source/catalog.rs",
    ),
    (
        "crates/cluster/src/source/catalog/reading.rs",
        "crates/cluster/src/source/catalog/entry.rs",
    ),
    (
        "crates/cluster/src/source/catalog/report.rs",
        "crates/cluster/src/source/catalog.rs",
    ),
    (
        "crates/controller/src/event_recorder/reasons.rs",
        "crates/controller/src/event_recorder.rs",
    ),
    (
        "crates/controller/src/state/drain.rs",
        "crates/controller/src/state.rs",
    ),
    (
        "crates/controller/src/state/hints.rs",
        "crates/controller/src/state.rs",
    ),
    (
        "crates/controller/src/state/hints/decide.rs",
        "crates/controller/src/state.rs",
    ),
    (
        "crates/controller/src/state/hints/decide.rs",
        "crates/controller/src/state/hints.rs",
    ),
    (
        "crates/controller/src/state/hints/slice.rs",
        "crates/controller/src/state.rs",
    ),
    (
        "crates/controller/src/state/hints/slice.rs",
        "crates/controller/src/state/hints.rs",
    ),
    (
        "crates/controller/src/state/levels.rs",
        "crates/controller/src/state.rs",
    ),
    (
        "crates/controller/src/state/map.rs",
        "crates/controller/src/state.rs",
    ),
    (
        "crates/controller/src/state/policy.rs",
        "crates/controller/src/state.rs",
    ),
    (
        "crates/controller/src/state/value.rs",
        "crates/controller/src/state.rs",
    ),
    (
        "crates/ipvs-netlink/src/connections/line.rs",
        "crates/ipvs-netlink/src/connections.rs",
    ),
    (
        "crates/ipvs-netlink/src/error/kind.rs",
        "crates/ipvs-netlink/src/error.rs",
    ),
    (
        "crates/ipvs-netlink/src/error/kind.rs",
        "crates/ipvs-netlink/src/error/attempt.rs",
    ),
    (
        "crates/object-tree/src/build.rs",
        "crates/object-tree/src/lib.rs",
    ),
    (
        "crates/object-tree/src/map.rs",
        "crates/object-tree/src/lib.rs",
    ),
    ("xtask/guest/src/bench/all.rs", "xtask/guest/src/bench.rs"),
    ("xtask/guest/src/bench/all.rs", "xtask/guest/src/main.rs"),
    ("xtask/guest/src/bench/rival.rs", "xtask/guest/src/bench.rs"),
    ("xtask/guest/src/bench/rival.rs", "xtask/guest/src/main.rs"),
    (
        "xtask/guest/src/bench/rival/churn.rs",
        "xtask/guest/src/bench.rs",
    ),
    (
        "xtask/guest/src/bench/rival/churn.rs",
        "xtask/guest/src/bench/rival.rs",
    ),
    (
        "xtask/guest/src/bench/rival/churn.rs",
        "xtask/guest/src/main.rs",
    ),
    (
        "xtask/guest/src/bench/rival/proxy.rs",
        "xtask/guest/src/main.rs",
    ),
    (
        "xtask/guest/src/bench/rival/roll.rs",
        "xtask/guest/src/bench.rs",
    ),
    ("xtask/guest/src/demo/agent.rs", "xtask/guest/src/main.rs"),
    ("xtask/guest/src/sctp.rs", "xtask/guest/src/load.rs"),
    ("xtask/src/bench/heartbeats.rs", "xtask/src/bench.rs"),
    ("xtask/src/bench/rivals.rs", "xtask/src/bench.rs"),
    ("xtask/src/bench/rivals/guest.rs", "xtask/src/bench.rs"),
    (
        "xtask/src/bench/rivals/guest.rs",
        "xtask/src/bench/rivals.rs",
    ),
    ("xtask/src/demo/kubernetes.rs", "xtask/src/demo.rs"),
    ("xtask/src/test/steps.rs", "xtask/src/test/browser.rs"),
    ("xtask/src/test/steps.rs", "xtask/src/test/deny.rs"),
    ("xtask/src/test/steps.rs", "xtask/src/test/fuzz.rs"),
    ("xtask/src/tidy/commands.rs", "xtask/src/main.rs"),
    (
        "xtask/testbed/src/image/sbom.rs",
        "xtask/testbed/src/image/contents.rs",
    ),
    ("xtask/testbed/src/lab/node.rs", "xtask/testbed/src/lab.rs"),
    (
        "xtask/testbed/src/lab/payload.rs",
        "xtask/testbed/src/lab.rs",
    ),
    ("xtask/testbed/src/lab/up.rs", "xtask/testbed/src/lab.rs"),
    ("xtask/testbed/src/vm/shell.rs", "xtask/testbed/src/vm.rs"),
    ("xtask/testbed/src/vm/suite.rs", "xtask/testbed/src/vm.rs"),
];
