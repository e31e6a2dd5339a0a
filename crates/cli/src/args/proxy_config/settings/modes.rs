//! Settings of the modes: ipvs, and those of the modes that the agent does not have.

use topology_core::scheduler::{Scheduler, UnknownScheduler};

use super::super::setting::ProxySetting as Setting;
use super::super::value::{GivenValue, ValueKind};
use super::kernel::timeout;
use crate::args::AgentArgs;

const OF_IPTABLES: &str = "it is for iptables mode";
const OF_NFTABLES: &str = "it is for nftables mode";
const OF_WINDOWS: &str = "it is for Windows";
const BIT: ValueKind = ValueKind::Integer(0, 31);

pub(super) const SETTINGS: &[Setting] = &[
    Setting::applied(
        ("ipvs.scheduler", "ipvs-scheduler"),
        ValueKind::Text,
        "`--scheduler`; `rr` means `wrr`, which does the same while all weights are equal; `mh` hashes addresses only, where kube-proxy hashes ports too (`mh-port`)",
        scheduler,
    ),
    Setting::applied(
        ("ipvs.syncPeriod", "ipvs-sync-period"),
        ValueKind::Period,
        "`--check-period`",
        |args, given| {
            args.check_period = given.text.parse()?;
            Ok(None)
        },
    ),
    Setting::silent(
        ("ipvs.minSyncPeriod", "ipvs-min-sync-period"),
        ValueKind::Duration,
        "the agent applies a single change at once, and groups changes that arrive together",
    ),
    Setting::silent(
        ("ipvs.excludeCIDRs[]", "ipvs-exclude-cidrs"),
        ValueKind::Range,
        "the agent never touches foreign virtual servers",
    ),
    Setting::applied(
        ("ipvs.strictARP", "ipvs-strict-arp"),
        ValueKind::Switch,
        "`--ipvs-strict-arp`; in the file `false` has no effect, because kubeadm writes it in every file",
        |args, given| {
            args.host.ipvs_strict_arp = Some(given.switch()?);
            Ok(None)
        },
    ),
    Setting::applied(
        ("ipvs.tcpTimeout", "ipvs-tcp-timeout"),
        ValueKind::Duration,
        "`--ipvs-tcp-timeout`",
        |args, given| timeout(&mut args.host.ipvs_tcp_timeout, given),
    ),
    Setting::applied(
        ("ipvs.tcpFinTimeout", "ipvs-tcpfin-timeout"),
        ValueKind::Duration,
        "`--ipvs-tcpfin-timeout`",
        |args, given| timeout(&mut args.host.ipvs_tcpfin_timeout, given),
    ),
    Setting::applied(
        ("ipvs.udpTimeout", "ipvs-udp-timeout"),
        ValueKind::Duration,
        "`--ipvs-udp-timeout`",
        |args, given| timeout(&mut args.host.ipvs_udp_timeout, given),
    ),
    Setting::applied(
        ("iptables.masqueradeAll", "masquerade-all"),
        ValueKind::Switch,
        "`--masquerade-all`",
        |args, given| {
            args.clients.masquerade_all = given.switch()?;
            Ok(None)
        },
    ),
    Setting::silent(
        ("iptables.masqueradeBit", "iptables-masquerade-bit"),
        BIT,
        "the agent masquerades without a mark",
    ),
    Setting::silent(
        (
            "iptables.localhostNodePorts",
            "iptables-localhost-nodeports",
        ),
        ValueKind::Switch,
        OF_IPTABLES,
    ),
    Setting::silent(
        ("iptables.syncPeriod", "iptables-sync-period"),
        ValueKind::Period,
        OF_IPTABLES,
    ),
    Setting::silent(
        ("iptables.minSyncPeriod", "iptables-min-sync-period"),
        ValueKind::Duration,
        OF_IPTABLES,
    ),
    Setting::silent(
        ("nftables.masqueradeAll", ""),
        ValueKind::Switch,
        OF_NFTABLES,
    ),
    Setting::silent(("nftables.masqueradeBit", ""), BIT, OF_NFTABLES),
    Setting::silent(("nftables.syncPeriod", ""), ValueKind::Period, OF_NFTABLES),
    Setting::silent(
        ("nftables.minSyncPeriod", ""),
        ValueKind::Duration,
        OF_NFTABLES,
    ),
    Setting::silent(
        ("winkernel.networkName", "network-name"),
        ValueKind::Text,
        OF_WINDOWS,
    ),
    Setting::silent(
        ("winkernel.sourceVip", "source-vip"),
        ValueKind::Text,
        OF_WINDOWS,
    ),
    Setting::silent(
        ("winkernel.enableDSR", "enable-dsr"),
        ValueKind::Switch,
        OF_WINDOWS,
    ),
    Setting::silent(
        ("winkernel.rootHnsEndpointName", "root-hnsendpoint-name"),
        ValueKind::Text,
        OF_WINDOWS,
    ),
    Setting::silent(
        ("winkernel.forwardHealthCheckVip", "forward-healthcheck-vip"),
        ValueKind::Switch,
        OF_WINDOWS,
    ),
];

/// With equal weights `wrr` does the same as `rr`, and `rr` cannot give shares.
fn scheduler(args: &mut AgentArgs, given: &GivenValue) -> Result<Option<&'static str>, String> {
    let parsed = given.text.parse();
    let named = parsed.map_err(|error: UnknownScheduler| error.to_string())?;
    args.service.scheduler = match named {
        Scheduler::Rr => Scheduler::Wrr,
        other => other,
    };
    Ok(None)
}
