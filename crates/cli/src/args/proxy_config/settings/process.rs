//! Settings of the process: the API server, its servers, the node and its addresses.

use clap::ValueEnum as _;
use dataplane::nftables::LinkName;

use super::super::setting::ProxySetting as Setting;
use super::super::value::{self, GivenValue, ValueKind};
use crate::args::clients::DetectLocalMode;
use crate::args::values::BindAddress;
use crate::args::{AgentArgs, values};

const NOT_OF_MODE: &str = "this proxy only uses IPVS";
const NODE_WINS: &str = "--node takes precedence";

/// Feature gates that kube-proxy 1.37 reads, and those of its older versions.
const GATES: [&str; 26] = [
    "AllAlpha",
    "AllBeta",
    "AllowServiceExternalIPs",
    "AllowServiceLBStatusOnNonLB",
    "ComponentFlagz",
    "ComponentStatusz",
    "ContextualLogging",
    "KubeProxyDrainingTerminatingNodes",
    "KubeProxyIPVS",
    "KubeProxyNFTablesLocalhostNodePorts",
    "LoadBalancerIPMode",
    "LoggingAlphaOptions",
    "LoggingBetaOptions",
    "LoggingStableOptions",
    "MultiCIDRServiceAllocator",
    "NFTablesNetlink",
    "NFTablesProxyMode",
    "NativeHistograms",
    "PreferSameTrafficDistribution",
    "ProxyTerminatingEndpoints",
    "ServiceInternalTrafficPolicy",
    "ServiceTrafficDistribution",
    "SupportIPVSProxyMode",
    "TopologyAwareHints",
    "WinDSR",
    "WinOverlay",
];

pub(super) const SETTINGS: &[Setting] = &[
    Setting::applied(
        ("mode", "proxy-mode"),
        ValueKind::Words(&["iptables", "ipvs", "nftables"]),
        "`ipvs` is what the agent does; another mode in the file is reported, and refused as a flag",
        mode,
    ),
    Setting::applied(
        ("hostnameOverride", "hostname-override"),
        ValueKind::Text,
        "`--node`, which takes precedence; another name is then reported",
        hostname_override,
    ),
    Setting::applied(
        ("clientConnection.kubeconfig", "kubeconfig"),
        ValueKind::Text,
        "`--kubeconfig`, unless `--cluster` is given",
        |args, given| {
            if args.origin.cluster.is_none() {
                args.origin.kubeconfig = Some(given.text.as_str().into());
            }
            Ok(None)
        },
    ),
    Setting::silent(
        ("clientConnection.contentType", "kube-api-content-type"),
        ValueKind::Text,
        "the agent asks for protobuf and accepts JSON",
    ),
    Setting::silent(
        ("clientConnection.acceptContentTypes", ""),
        ValueKind::Text,
        "the agent asks for protobuf and accepts JSON",
    ),
    Setting::silent(
        ("clientConnection.qps", "kube-api-qps"),
        ValueKind::Number,
        "the agent sends few requests: it watches, and limits its own reports",
    ),
    Setting::silent(
        ("clientConnection.burst", "kube-api-burst"),
        ValueKind::Integer(0, i64::MAX),
        "the agent sends few requests: it watches, and limits its own reports",
    ),
    Setting::silent(
        ("configSyncPeriod", "config-sync-period"),
        ValueKind::Period,
        "watches deliver every change, and the agent does not process unchanged objects again",
    ),
    Setting::applied(
        ("bindAddress", "bind-address"),
        ValueKind::Address,
        "`--node-ip`, unless it is an unspecified address; in the file, one of IPv6 makes `[::]:10256` and `[::1]:10249` the defaults of the two addresses below",
        bind_address,
    ),
    Setting::applied(
        ("healthzBindAddress", "healthz-bind-address"),
        ValueKind::Bind,
        "`--healthz-bind-address`; the probes of `manifests/base` use 127.0.0.1:10256, so patch them if the address does not cover that",
        |args, given| {
            let slot = &mut args.healthz_bind_address;
            server_address(slot, given, values::HEALTHZ_PORT, "--healthz-bind-address")
        },
    ),
    Setting::applied(
        ("metricsBindAddress", "metrics-bind-address"),
        ValueKind::Bind,
        "`--metrics-bind-address`",
        |args, given| {
            let slot = &mut args.metrics_bind_address;
            server_address(slot, given, values::METRICS_PORT, "--metrics-bind-address")
        },
    ),
    Setting::applied(
        ("bindAddressHardFail", "bind-address-hard-fail"),
        ValueKind::Switch,
        "exits if one of the two addresses cannot be bound; otherwise the agent retries every 5 s",
        |args, given| {
            args.bind_address_hard_fail = given.switch()?;
            Ok(None)
        },
    ),
    Setting::reported(
        ("enableProfiling", "profiling"),
        ValueKind::Switch,
        "the agent has no profiling endpoint; use `perf`",
    ),
    Setting::silent(
        ("showHiddenMetricsForVersion", "show-hidden-metrics-for-version"),
        ValueKind::Text,
        "the agent hides no metric",
    ),
    Setting::silent_unless(
        ("featureGates.*", "feature-gates"),
        ValueKind::Switch,
        "the agent has no feature gates; one that kube-proxy does not have either is reported",
        |_args, given| Ok(unknown_gate(&given.field)),
    ),
    Setting::applied(
        ("nodePortAddresses[]", "nodeport-addresses"),
        ValueKind::Text,
        "`--nodeport-addresses`",
        node_port_address,
    ),
    Setting::applied(
        ("clusterCIDR", "cluster-cidr"),
        ValueKind::Ranges,
        "`--cluster-cidr`",
        |args, given| {
            args.clients.cluster_cidr = value::ranges(&given.text)?;
            Ok(None)
        },
    ),
    Setting::applied(
        ("detectLocalMode", "detect-local-mode"),
        ValueKind::Words(&["ClusterCIDR", "NodeCIDR", "BridgeInterface", "InterfaceNamePrefix"]),
        "`--detect-local-mode`",
        detect_local_mode,
    ),
    Setting::applied(
        ("detectLocal.bridgeInterface", "pod-bridge-interface"),
        ValueKind::Text,
        "`--pod-bridge-interface`",
        |args, given| link_name(&mut args.clients.pod_bridge_interface, given),
    ),
    Setting::applied(
        ("detectLocal.interfaceNamePrefix", "pod-interface-name-prefix"),
        ValueKind::Text,
        "`--pod-interface-name-prefix`",
        |args, given| link_name(&mut args.clients.pod_interface_name_prefix, given),
    ),
    Setting::applied(
        ("oomScoreAdj", "oom-score-adj"),
        ValueKind::Integer(-1000, 1000),
        "the agent writes it, by default -999, to its `/proc/self/oom_score_adj`, and logs a failure; kubelet's value stays if the pod may not lower it",
        |args, given| {
            args.oom_score_adj = given.text.parse().ok();
            Ok(None)
        },
    )
    .with_zero(),
    Setting::silent(
        ("portRange", ""),
        ValueKind::Text,
        "kube-proxy does not use it since 1.26 either",
    ),
    Setting::silent(
        ("windowsRunAsService", "windows-service"),
        ValueKind::Switch,
        "it is for Windows",
    ),
];

fn mode(_args: &mut AgentArgs, given: &GivenValue) -> Result<Option<&'static str>, String> {
    match given.text.as_str() {
        "ipvs" => Ok(None),
        other if given.is_flag => Err(format!(
            "{other:?}: {NOT_OF_MODE}; write ipvs, or leave the flag out"
        )),
        _ => Ok(Some(NOT_OF_MODE)),
    }
}

fn hostname_override(
    args: &mut AgentArgs,
    given: &GivenValue,
) -> Result<Option<&'static str>, String> {
    let name = values::node_name(&given.text)?;
    match &args.node_name {
        Some(other) if *other != name => Ok(Some(NODE_WINS)),
        _ => {
            args.node_name = Some(name);
            Ok(None)
        }
    }
}

/// Of the file, where empty text has no effect; clap parses the flag.
fn server_address(
    slot: &mut BindAddress,
    given: &GivenValue,
    default_port: u16,
    flag: &str,
) -> Result<Option<&'static str>, String> {
    let address = values::bind_address(&given.text, default_port);
    *slot = address.map_err(|why| {
        format!(
            "{why}; to turn this server off, remove this field, which overrides flags, and set {flag}="
        )
    })?;
    Ok(None)
}

fn detect_local_mode(
    args: &mut AgentArgs,
    given: &GivenValue,
) -> Result<Option<&'static str>, String> {
    let mode = DetectLocalMode::from_str(&given.text, false);
    args.clients.detect_local_mode = mode.map_err(|_unknown| {
        format!(
            "{:?} is not one of ClusterCIDR, NodeCIDR, BridgeInterface and InterfaceNamePrefix",
            given.text
        )
    })?;
    Ok(None)
}

fn link_name(
    slot: &mut Option<LinkName>,
    given: &GivenValue,
) -> Result<Option<&'static str>, String> {
    let name = given.text.parse();
    *slot = Some(name.map_err(|error| format!("{error}"))?);
    Ok(None)
}

fn unknown_gate(field: &str) -> Option<&'static str> {
    let name = field.trim_start_matches("featureGates.");
    let is_known = GATES.contains(&name);
    (!is_known).then_some("neither kube-proxy nor the agent has this feature gate; remove it")
}

/// Adds an entry of the list, which replaces that of the flag.
fn node_port_address(
    args: &mut AgentArgs,
    given: &GivenValue,
) -> Result<Option<&'static str>, String> {
    let entry = values::node_port_entry(&given.text)?;
    let entries = &mut args.service.nodeport_addresses;
    if given.field.ends_with("[0]") {
        entries.clear();
    }
    entries.push(entry);
    value::no_word_twice(entries)?;
    Ok(None)
}

/// The node's address, except an unspecified one. In the file IPv6 also makes the servers listen on
/// IPv6.
fn bind_address(args: &mut AgentArgs, given: &GivenValue) -> Result<Option<&'static str>, String> {
    let address = values::node_ip(&given.text)?;
    if !address.is_unspecified() {
        args.node_ip = vec![address];
    }
    if address.is_ipv6() && !given.is_flag {
        args.healthz_bind_address = values::healthz_address("::")?;
        args.metrics_bind_address = values::metrics_address("::1")?;
    }
    Ok(None)
}
