//! Settings of the kernel's connection tracking.

use super::super::setting::ProxySetting as Setting;
use super::super::value::{GivenValue, ValueKind};
use crate::args::values::{self, Timeout};

const COUNT: ValueKind = ValueKind::Integer(0, i64::MAX);

pub(super) const SETTINGS: &[Setting] = &[
    Setting::applied(
        ("conntrack.maxPerCore", "conntrack-max-per-core"),
        COUNT,
        "`--conntrack-max-per-core`; 32768 if neither is given; 0 keeps the kernel's limit",
        |args, given| count(&mut args.host.conntrack_max_per_core, given),
    )
    .with_zero(),
    Setting::applied(
        ("conntrack.min", "conntrack-min"),
        COUNT,
        "`--conntrack-min`; 131072 if neither is given",
        |args, given| count(&mut args.host.conntrack_min, given),
    )
    .with_zero(),
    Setting::applied(
        (
            "conntrack.tcpEstablishedTimeout",
            "conntrack-tcp-timeout-established",
        ),
        ValueKind::Duration,
        "`--conntrack-tcp-timeout-established`; 24h if neither is given; 0 keeps the kernel's",
        |args, given| timeout(&mut args.host.conntrack_tcp_timeout_established, given),
    )
    .with_zero(),
    Setting::applied(
        (
            "conntrack.tcpCloseWaitTimeout",
            "conntrack-tcp-timeout-close-wait",
        ),
        ValueKind::Duration,
        "`--conntrack-tcp-timeout-close-wait`; 1h if neither is given; 0 keeps the kernel's",
        |args, given| timeout(&mut args.host.conntrack_tcp_timeout_close_wait, given),
    )
    .with_zero(),
    Setting::applied(
        ("conntrack.tcpBeLiberal", "conntrack-tcp-be-liberal"),
        ValueKind::Switch,
        "`--conntrack-tcp-be-liberal`",
        |args, given| {
            args.host.conntrack_tcp_be_liberal = given.switch()?;
            Ok(None)
        },
    ),
    Setting::applied(
        ("conntrack.udpTimeout", "conntrack-udp-timeout"),
        ValueKind::Duration,
        "`--conntrack-udp-timeout`",
        |args, given| timeout(&mut args.host.conntrack_udp_timeout, given),
    ),
    Setting::applied(
        ("conntrack.udpStreamTimeout", "conntrack-udp-timeout-stream"),
        ValueKind::Duration,
        "`--conntrack-udp-timeout-stream`",
        |args, given| timeout(&mut args.host.conntrack_udp_timeout_stream, given),
    ),
];

pub(super) fn timeout(
    slot: &mut Option<Timeout>,
    given: &GivenValue,
) -> Result<Option<&'static str>, String> {
    *slot = Some(given.text.parse()?);
    Ok(None)
}

fn count(slot: &mut Option<u64>, given: &GivenValue) -> Result<Option<&'static str>, String> {
    *slot = Some(values::connections(&given.text)?);
    Ok(None)
}
