//! Settings of the kernel's connection tracking.

use super::super::setting::ProxySetting as Setting;
use super::super::value::{GivenValue, ValueKind};
use crate::args::AgentArgs;

const COUNT: ValueKind = ValueKind::Integer(0, i64::MAX);

pub(super) const SETTINGS: &[Setting] = &[
    Setting::applied(
        ("conntrack.maxPerCore", "conntrack-max-per-core"),
        COUNT,
        "`--conntrack-max-per-core`; 32768 if neither is given; 0 keeps the kernel's limit",
        timeout,
    )
    .with_zero(),
    Setting::applied(
        ("conntrack.min", "conntrack-min"),
        COUNT,
        "`--conntrack-min`; 131072 if neither is given",
        timeout,
    )
    .with_zero(),
    Setting::applied(
        (
            "conntrack.tcpEstablishedTimeout",
            "conntrack-tcp-timeout-established",
        ),
        ValueKind::Duration,
        "`--conntrack-tcp-timeout-established`; 24h if neither is given; 0 keeps the kernel's",
        timeout,
    )
    .with_zero(),
    Setting::applied(
        (
            "conntrack.tcpCloseWaitTimeout",
            "conntrack-tcp-timeout-close-wait",
        ),
        ValueKind::Duration,
        "`--conntrack-tcp-timeout-close-wait`; 1h if neither is given; 0 keeps the kernel's",
        timeout,
    )
    .with_zero(),
    Setting::applied(
        ("conntrack.tcpBeLiberal", "conntrack-tcp-be-liberal"),
        ValueKind::Switch,
        "`--conntrack-tcp-be-liberal`",
        timeout,
    ),
    Setting::applied(
        ("conntrack.udpTimeout", "conntrack-udp-timeout"),
        ValueKind::Duration,
        "`--conntrack-udp-timeout`",
        timeout,
    ),
    Setting::applied(
        ("conntrack.udpStreamTimeout", "conntrack-udp-timeout-stream"),
        ValueKind::Duration,
        "`--conntrack-udp-timeout-stream`",
        timeout,
    ),
];

/// Sets a timeout or the size of the connection tracking table.
pub(super) fn timeout(
    args: &mut AgentArgs,
    given: &GivenValue,
) -> Result<Option<&'static str>, String> {
    args.host.take(&given.field, &given.text)?;
    Ok(None)
}
