//! Flags without a field.

use super::super::setting::ProxySetting as Setting;
use super::super::value::ValueKind;
use crate::args::values::BindAddress;

const PORT: ValueKind = ValueKind::Integer(0, 65535);

pub(super) const SETTINGS: &[Setting] = &[
    Setting::native("config", "the file with the fields of this page"),
    Setting::native("master", "another address for the API server"),
    Setting::native("version", "prints the version"),
    Setting::applied(
        ("", "healthz-port"),
        PORT,
        "the port of `--healthz-bind-address`; 0 turns the server off",
        |args, given| {
            args.healthz_bind_address = on_port(args.healthz_bind_address, &given.text);
            Ok(None)
        },
    )
    .with_zero(),
    Setting::applied(
        ("", "metrics-port"),
        PORT,
        "the port of `--metrics-bind-address`; 0 turns the server off",
        |args, given| {
            args.metrics_bind_address = on_port(args.metrics_bind_address, &given.text);
            Ok(None)
        },
    )
    .with_zero(),
    Setting::refused(
        "cleanup",
        ValueKind::Switch,
        "the agent removes nothing of kube-proxy; docs/migrate.md has the commands that do",
    ),
    Setting::refused(
        "init-only",
        ValueKind::Switch,
        "the agent writes the kernel's settings at each start; remove this container, and mount the settings for --sysctl-dir as manifests/base does",
    ),
    Setting::refused(
        "write-config-to",
        ValueKind::Text,
        "the agent has no file of its own; read the settings in use from /configz on port 10249",
    ),
    Setting::silent(
        ("", "boot-id-file"),
        ValueKind::Text,
        "kube-proxy does not use it either",
    ),
    Setting::silent(
        ("", "machine-id-file"),
        ValueKind::Text,
        "kube-proxy does not use it either",
    ),
];

/// The address with another port; none for port 0.
fn on_port(bind: BindAddress, port: &str) -> BindAddress {
    let port = port.parse().unwrap_or_default();
    let mut address = bind.0.filter(|_| port != 0);
    if let Some(address) = &mut address {
        address.set_port(port);
    }
    BindAddress(address)
}
