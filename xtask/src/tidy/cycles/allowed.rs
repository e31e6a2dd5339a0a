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
];
