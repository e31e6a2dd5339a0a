//! The response of `/configz` (KP-HC-20): the settings in use. Kernel settings that the agent does not
//! change are 0, as in kube-proxy.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use clap::ValueEnum;
use dataplane::nftables::LinkName;
use serde_json::{Value, json};

use crate::args::values::BindAddress;
use crate::args::{AgentArgs, OOM_SCORE_ADJ};

/// kube-proxy's fields with the same meaning, and the agent's own fields.
pub(crate) fn configz(args: &AgentArgs) -> Value {
    json!({
        "kubeproxy.config.k8s.io": kube_proxy(args),
        "ipvs-topo": own(args),
    })
}

fn kube_proxy(args: &AgentArgs) -> Value {
    let address = |bind: BindAddress| {
        bind.0
            .map_or_else(String::new, |address| address.to_string())
    };
    let link = |name: Option<&LinkName>| name.map_or_else(String::new, LinkName::to_string);
    let any = IpAddr::from(Ipv4Addr::UNSPECIFIED);
    json!({
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "ipvs",
        "hostnameOverride": args.node(),
        "bindAddress": args.node_ip.first().copied().unwrap_or(any),
        "clusterCIDR": texts(&args.clients.cluster_cidr).join(","),
        "detectLocalMode": name(&args.clients.detect_local_mode),
        "detectLocal": {
            "bridgeInterface": link(args.clients.pod_bridge_interface.as_ref()),
            "interfaceNamePrefix": link(args.clients.pod_interface_name_prefix.as_ref()),
        },
        "iptables": {"masqueradeAll": args.clients.masquerade_all},
        "nodePortAddresses": texts(&args.service.nodeport_addresses),
        "healthzBindAddress": address(args.healthz_bind_address),
        "metricsBindAddress": address(args.metrics_bind_address),
        "bindAddressHardFail": args.bind_address_hard_fail,
        "clientConnection": {"kubeconfig": args.origin.kubeconfig},
        "logging": {
            "format": name(&args.log_format),
            "verbosity": verbosity(args.log_level()),
        },
        "oomScoreAdj": args.oom_score_adj.unwrap_or(OOM_SCORE_ADJ),
        "conntrack": conntrack(args),
        "ipvs": ipvs(args),
    })
}

fn conntrack(args: &AgentArgs) -> Value {
    let has_file = args.config.is_some();
    let limits = args.host.table_limits(has_file);
    let settings = args.host.conntrack(has_file);
    json!({
        "maxPerCore": limits.per_core,
        "min": limits.min,
        "tcpEstablishedTimeout": timeout(settings.tcp_established),
        "tcpCloseWaitTimeout": timeout(settings.tcp_close_wait),
        "tcpBeLiberal": settings.tcp_be_liberal,
        "udpTimeout": timeout(settings.udp),
        "udpStreamTimeout": timeout(settings.udp_stream),
    })
}

fn ipvs(args: &AgentArgs) -> Value {
    let timeouts = args.host.ipvs();
    json!({
        "scheduler": args.service.scheduler.name(),
        "syncPeriod": duration(args.check_period.0),
        "strictARP": args.host.ipvs_strict_arp != Some(false),
        "tcpTimeout": timeout(timeouts.tcp.map(u64::from)),
        "tcpFinTimeout": timeout(timeouts.tcp_fin.map(u64::from)),
        "udpTimeout": timeout(timeouts.udp.map(u64::from)),
    })
}

fn own(args: &AgentArgs) -> Value {
    json!({
        "config": args.config,
        "cluster": args.origin.cluster,
        "kubeconfig": args.origin.kubeconfig,
        "master": args.origin.master,
        "nodeSource": name(&args.node_source),
        "serviceCIDRs": texts(&args.service.service_cidr),
        "nodeIPs": args.node_ip,
        "externalIPRanges": texts(&args.service.allow_lists.external_ip_ranges),
        "fwmarkMask": args.service.fwmark_mask.to_string(),
        "drainTimeout": duration(args.drain_timeout.0),
        "stateDir": args.state_dir,
        "sysctlDir": args.sysctl_dir,
        "socket": args.socket,
        "adopt": args.adopt,
    })
}

fn texts<T: ToString>(values: &[T]) -> Vec<String> {
    values.iter().map(ToString::to_string).collect()
}

/// The lowest level of kube-proxy's log that has this level of the agent.
const fn verbosity(level: u8) -> u8 {
    match level {
        0 => 0,
        1 => 4,
        _ => 6,
    }
}

fn timeout(seconds: Option<u64>) -> String {
    duration(Duration::from_secs(seconds.unwrap_or(0)))
}

/// A duration as Go writes it, but with parts of a second instead of milliseconds.
fn duration(length: Duration) -> String {
    let whole = length.as_secs();
    let seconds = Duration::new(whole % 60, length.subsec_nanos()).as_secs_f64();
    match (whole / 3_600, whole / 60 % 60) {
        (0, 0) => format!("{seconds}s"),
        (0, minutes) => format!("{minutes}m{seconds}s"),
        (hours, minutes) => format!("{hours}h{minutes}m{seconds}s"),
    }
}

/// The name of a value on the command line.
fn name(value: &impl ValueEnum) -> Option<String> {
    let value = value.to_possible_value()?;
    Some(value.get_name().to_owned())
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::args::values;
    use crate::args::{Cli, Command};

    /// A part of kube-proxy's fields.
    fn shown(flags: &[&str], part: &str) -> Value {
        let words = ["ipvs-topo", "agent", "--node", "n1"];
        match Cli::parse_from(words.iter().chain(flags)).command {
            Command::Agent(args) => configz(&args)["kubeproxy.config.k8s.io"][part].clone(),
            other => panic!("another command: {other:?}"),
        }
    }

    #[test]
    fn a_duration_is_written_as_in_go() {
        for (milliseconds, expected) in [
            (0, "0s"),
            (500, "0.5s"),
            (30_000, "30s"),
            (60_000, "1m0s"),
            (90_500, "1m30.5s"),
            (86_400_000, "24h0m0s"),
        ] {
            assert_eq!(duration(Duration::from_millis(milliseconds)), expected);
        }
    }

    #[test]
    fn connection_tracking_has_the_values_in_use() {
        let kept = json!({
            "maxPerCore": 0, "min": 131_072, "tcpEstablishedTimeout": "0s",
            "tcpCloseWaitTimeout": "0s", "tcpBeLiberal": false, "udpTimeout": "0s",
            "udpStreamTimeout": "0s",
        });
        assert_eq!(shown(&[], "conntrack"), kept);
        let flags = [
            "--config=/proxy.conf",
            "--conntrack-min=5",
            "--conntrack-tcp-timeout-close-wait=0",
            "--conntrack-tcp-be-liberal",
            "--conntrack-udp-timeout=10s",
        ];
        let of_file = json!({
            "maxPerCore": 32_768, "min": 5, "tcpEstablishedTimeout": "24h0m0s",
            "tcpCloseWaitTimeout": "0s", "tcpBeLiberal": true, "udpTimeout": "10s",
            "udpStreamTimeout": "0s",
        });
        assert_eq!(shown(&flags, "conntrack"), of_file);
    }

    #[test]
    fn ipvs_the_address_and_the_log_have_the_values_in_use() {
        let flags = [
            "--ipvs-tcp-timeout=15m",
            "--ipvs-tcpfin-timeout=30s",
            "--ipvs-strict-arp=false",
        ];
        let ipvs = json!({
            "scheduler": "wrr", "syncPeriod": "1m0s", "strictARP": false, "tcpTimeout": "15m0s",
            "tcpFinTimeout": "30s", "udpTimeout": "0s",
        });
        assert_eq!(shown(&flags, "ipvs"), ipvs);
        assert_eq!(shown(&[], "bindAddress"), "0.0.0.0");
        let dual = ["--node-ip=192.0.2.1,2001:db8::1"];
        assert_eq!(shown(&dual, "bindAddress"), "192.0.2.1");
        for level in ["0", "4", "6"] {
            let logging = shown(&[&format!("-v={level}")], "logging");
            let verbosity = logging["verbosity"].to_string();
            assert_eq!(values::verbosity(&verbosity), values::verbosity(level));
            assert_eq!(logging["format"], "text");
        }
    }
}
