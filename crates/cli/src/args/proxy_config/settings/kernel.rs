//! Settings of the kernel's connection tracking.

use super::super::setting::ProxySetting as Setting;
use super::super::value::ValueKind;

const REMEDY: &str = "the agent leaves this setting as it is; set it with sysctl";
const COUNT: ValueKind = ValueKind::Integer(0, i64::MAX);

pub(super) const SETTINGS: &[Setting] = &[
    Setting::reported(
        ("conntrack.maxPerCore", "conntrack-max-per-core"),
        COUNT,
        REMEDY,
    ),
    Setting::reported(("conntrack.min", "conntrack-min"), COUNT, REMEDY),
    Setting::reported(
        (
            "conntrack.tcpEstablishedTimeout",
            "conntrack-tcp-timeout-established",
        ),
        ValueKind::Duration,
        REMEDY,
    ),
    Setting::reported(
        (
            "conntrack.tcpCloseWaitTimeout",
            "conntrack-tcp-timeout-close-wait",
        ),
        ValueKind::Duration,
        REMEDY,
    ),
    Setting::reported(
        ("conntrack.tcpBeLiberal", "conntrack-tcp-be-liberal"),
        ValueKind::Switch,
        REMEDY,
    ),
    Setting::reported(
        ("conntrack.udpTimeout", "conntrack-udp-timeout"),
        ValueKind::Duration,
        REMEDY,
    ),
    Setting::reported(
        ("conntrack.udpStreamTimeout", "conntrack-udp-timeout-stream"),
        ValueKind::Duration,
        REMEDY,
    ),
];
