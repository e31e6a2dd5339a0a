//! Tests of kube-proxy's settings: the file and the flags.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io::Write as _;
use std::net::IpAddr;

use clap::{ArgAction, CommandFactory as _, Parser as _};
use telemetry::log::LogFormat;
use topology_core::scheduler::Scheduler;

use super::flags::FlagKind;
use super::setting::SettingEffect;
use super::*;
use crate::args::{Cli, Command, values, words_for_clap};

/// The arguments after a file with these lines, and the lines about ignored fields; or the
/// error.
fn configured(flags: &[&str], lines: &str) -> Result<(AgentArgs, Vec<String>), String> {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(lines.as_bytes()).unwrap();
    let path = file.path().to_str().unwrap();
    let words = ["ipvs-topo", "agent", "--node-name=n1", "--config", path];
    let Command::Agent(mut args) = Cli::parse_from(words.iter().chain(flags)).command else {
        panic!("another command");
    };
    let strip = |text: String| text.replace(path, "FILE");
    let unfollowed = args.configure().map_err(|failure| {
        assert_eq!(failure.code(), 2);
        strip(failure.message())
    })?;
    Ok((*args, unfollowed.into_iter().map(strip).collect()))
}

const HEAD: &str = "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n";

fn with(flags: &[&str], lines: &str) -> Result<(AgentArgs, Vec<String>), String> {
    configured(flags, &format!("{HEAD}{lines}"))
}

/// KP-DS-05, KP-CF-50: as `kubeadm init` of Kubernetes 1.37 writes it, except for the
/// addresses.
const OF_KUBEADM: &str = include_str!("kubeadm.yaml");

#[test]
fn the_file_of_kubeadm_changes_only_the_kubeconfig_and_the_pod_ranges() {
    let (args, unfollowed) = configured(&[], OF_KUBEADM).unwrap();
    let kubeconfig = "/var/lib/kube-proxy/kubeconfig.conf";
    assert_eq!(args.origin.kubeconfig, Some(kubeconfig.into()));
    assert_eq!(unfollowed, Vec::<String>::new());
    let words = [
        "ipvs-topo",
        "agent",
        "--node-name=n1",
        "--kubeconfig",
        kubeconfig,
        "--cluster-cidr=10.244.0.0/16",
    ];
    let Command::Agent(mut usual) = Cli::parse_from(words).command else {
        panic!("another command");
    };
    usual.config.clone_from(&args.config);
    assert_eq!(format!("{args:?}"), format!("{usual:?}"));
}

#[test]
fn the_file_overrides_the_flags() {
    let lines = "mode: ipvs\nhealthzBindAddress: 127.0.0.1\nmetricsBindAddress: '[::]:9000'\nbindAddress: 192.0.2.1\nipvs: {scheduler: wlc, syncPeriod: 45s}\nhostnameOverride: N1\n";
    let (args, unfollowed) = with(&["--scheduler=sh", "--check-period=5s"], lines).unwrap();
    assert_eq!(unfollowed, Vec::<String>::new());
    assert_eq!(args.service.scheduler, Scheduler::Wlc);
    assert_eq!(args.check_period.0.as_secs(), 45);
    let address = |bind: values::BindAddress| bind.0.unwrap().to_string();
    assert_eq!(address(args.healthz_bind_address), "127.0.0.1:10256");
    assert_eq!(address(args.metrics_bind_address), "[::]:9000");
    assert_eq!(args.node_ip, ["192.0.2.1".parse::<IpAddr>().unwrap()]);
}

/// KP-CF-15: kube-proxy's defaults depend on it in the same way.
#[test]
fn the_family_of_the_bind_address_is_that_of_the_servers() {
    let flags = ["--node-ip=192.0.2.7"];
    let servers = |args: &AgentArgs| {
        [args.healthz_bind_address, args.metrics_bind_address]
            .map(|bind| bind.0.unwrap().to_string())
    };
    let (args, _) = with(&flags, "bindAddress: 0.0.0.0\n").unwrap();
    assert_eq!(args.node_ip, ["192.0.2.7".parse::<IpAddr>().unwrap()]);
    assert_eq!(servers(&args), ["0.0.0.0:10256", "127.0.0.1:10249"]);
    let lines = "healthzBindAddress: '[::1]:1'\nbindAddress: '2001:db8::1'\n";
    let (args, _) = with(&flags, lines).unwrap();
    assert_eq!(args.node_ip, ["2001:db8::1".parse::<IpAddr>().unwrap()]);
    assert_eq!(servers(&args), ["[::1]:1", "[::1]:10249"]);
}

/// KP-CF-33
#[test]
fn the_node_port_addresses_of_the_file_replace_those_of_the_flag() {
    let lines = "nodePortAddresses: [primary, 192.0.2.0/24, localhost]\n";
    let (args, unfollowed) = with(&["--nodeport-addresses=all"], lines).unwrap();
    assert_eq!(unfollowed, Vec::<String>::new());
    let entries = args.service.nodeport_addresses;
    assert_eq!(
        entries.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["primary", "192.0.2.0/24", "localhost"]
    );
    let wrong = with(&[], "nodePortAddresses: [eth0]\n").unwrap_err();
    assert!(
        wrong.contains("FILE:3: nodePortAddresses[0]: `eth0` is neither"),
        "{wrong}"
    );
}

/// KP-CF-28
#[test]
fn strict_arp_of_the_file_is_on_or_leaves_the_flag() {
    let strict = |flags: &[&str], text: &str| {
        let (args, _) = with(flags, &format!("ipvs: {{strictARP: {text}}}\n")).unwrap();
        args.host.ipvs_strict_arp
    };
    assert_eq!(strict(&[], "true"), Some(true));
    for word in ["false", "False", "FALSE", "no", "off", "N"] {
        assert_eq!(strict(&[], word), None, "{word}");
        assert_eq!(strict(&["--ipvs-strict-arp"], word), Some(true), "{word}");
    }
    for word in ["True", "yes", "On", "y"] {
        assert_eq!(strict(&[], word), Some(true), "{word}");
    }
    assert_eq!(strict(&["--ipvs-strict-arp=false"], "false"), Some(false));
    assert_eq!(strict(&["--ipvs-strict-arp"], "null"), Some(true));
}

/// KP-CF-23, KP-CF-30, KP-CF-31.
#[test]
fn masquerading_and_the_detection_of_local_pods_are_those_of_the_file() {
    let lines = "iptables: {masqueradeAll: true}\ndetectLocalMode: InterfaceNamePrefix\ndetectLocal: {interfaceNamePrefix: veth, bridgeInterface: cbr0}\n";
    let (args, unfollowed) = with(&["--detect-local-mode=NodeCIDR"], lines).unwrap();
    assert_eq!(unfollowed, Vec::<String>::new());
    assert!(args.clients.masquerade_all);
    let shown = |args: &AgentArgs| {
        let detected = args.clients.detect_local();
        detected.map_or_else(|failure| failure.message(), |mode| format!("{mode:?}"))
    };
    assert_eq!(shown(&args), r#"Links(WithPrefix(LinkName("veth")))"#);
    let (args, _) = with(&[], "detectLocalMode: BridgeInterface\n").unwrap();
    assert_eq!(
        shown(&args),
        "the mode BridgeInterface needs --pod-bridge-interface, or detectLocal.bridgeInterface in the file of --config"
    );
    let wrong = with(&[], "detectLocal: {bridgeInterface: 'a b'}\n").unwrap_err();
    assert!(wrong.contains("not the name of a link"), "{wrong}");
}

/// KP-CF-29, KP-CF-35 to KP-CF-38: zero turns a default of kube-proxy off, null does not.
#[test]
fn timeouts_and_the_connection_tracking_table_are_those_of_the_file() {
    let lines = "ipvs: {udpTimeout: 1m, tcpTimeout: 0s}\nconntrack: {maxPerCore: 0, min: null, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: null, tcpBeLiberal: True}\n";
    let (args, unfollowed) = with(&[], lines).unwrap();
    assert_eq!(unfollowed, Vec::<String>::new());
    let ipvs = args.host.ipvs();
    assert_eq!((ipvs.tcp, ipvs.udp), (None, Some(60)));
    let conntrack = args.host.conntrack(true);
    assert_eq!((conntrack.table, conntrack.tcp_established), (None, None));
    assert_eq!(conntrack.tcp_close_wait, Some(3_600));
    assert!(conntrack.tcp_be_liberal);
}

#[test]
fn round_robin_equals_equal_weights_and_files_have_no_kubeconfig() {
    let lines = "ipvs: {scheduler: rr}\nclientConnection: {kubeconfig: /k}\n";
    let (args, _) = with(&["--cluster=/c", "--scheduler=sh"], lines).unwrap();
    assert_eq!(args.service.scheduler, Scheduler::Wrr);
    assert_eq!(args.origin.kubeconfig, None);
}

#[test]
fn an_ignored_field_is_reported_with_its_place_and_a_remedy() {
    let lines = "mode: nftables\nhostnameOverride: other\niptables: {masqueradeBit: 14}\nnodePortAddresses: [10.0.0.0/8, localhost]\nfuture: 1\n";
    let (_, unfollowed) = with(&[], lines).unwrap();
    assert_eq!(
        unfollowed,
        [
            "FILE:3: mode: \"nftables\" is ignored; this proxy only uses IPVS",
            "FILE:4: hostnameOverride: \"other\" is ignored; --node takes precedence",
            "FILE:7: future: \"1\" is ignored; kube-proxy 1.37 does not have this field",
        ]
    );
}

#[test]
fn an_invalid_field_is_refused_with_its_place() {
    let refused = |lines: &str| with(&[], lines).unwrap_err();
    assert_eq!(
        refused("ipvs: {syncPeriod: soon}\n"),
        "--config: FILE:3: ipvs.syncPeriod: \"soon\" is not a duration; write for example 30s, 1m30s or 500ms"
    );
    assert!(refused("bindAddress: here\n").contains("not an IP address"));
    assert!(refused("healthzBindAddress: here\n").contains("is not IP:PORT"));
    assert!(refused("ipvs: {scheduler: 'R R'}\n").contains("is not a scheduler"));
    let other = |text: &str| configured(&[], text).unwrap_err();
    assert_eq!(
        other("apiVersion: v1\nkind: Config\n"),
        "--config: FILE:1: apiVersion: \"v1\" is not of kubeproxy.config.k8s.io/"
    );
    assert_eq!(
        other("mode: ipvs\n"),
        "--config: FILE: not a KubeProxyConfiguration, because it has no kind"
    );
    assert!(other("kind: [\n").contains("not valid YAML"));
}

/// kube-proxy does not start with these either, and they would open node ports or masquerade
/// nothing.
#[test]
fn a_field_of_the_wrong_shape_is_refused_with_the_right_one() {
    for (lines, why) in [
        (
            "nodePortAddresses: 192.0.2.0/24",
            "nodePortAddresses: nodePortAddresses must be a list, such as [a, b], not \"192.0.2.0/24\"",
        ),
        (
            "nodePortAddresses: ''",
            "nodePortAddresses: nodePortAddresses must be a list, such as [a, b], not \"\"",
        ),
        (
            "nodePortAddresses: {primary: true}",
            "nodePortAddresses.primary: nodePortAddresses must be a list, such as [a, b], not a map",
        ),
        (
            "nodePortAddresses: [[primary]]",
            "nodePortAddresses[0][0]: nodePortAddresses[] must be text, not a list",
        ),
        (
            "clusterCIDR: [10.244.0.0/16]",
            "clusterCIDR[0]: clusterCIDR must be a range, or one of each IP family with a comma between, not a list",
        ),
        (
            "bindAddress: {a: 1}",
            "bindAddress.a: bindAddress must be an IP address, not a map",
        ),
        (
            "mode: [ipvs]",
            "mode[0]: mode must be one of iptables, ipvs, nftables, not a list",
        ),
        (
            "ipvs: 5",
            "ipvs: ipvs must be a map with fields such as scheduler, not \"5\"",
        ),
        (
            "ipvs: [{strictARP: true}]",
            "ipvs[0].strictARP: ipvs must be a map with fields such as scheduler, not a list",
        ),
        (
            "logging: {vmodule: [a]}",
            "logging.vmodule[0]: logging.vmodule[] must be a map with fields such as filePattern, not \"a\"",
        ),
        (
            "featureGates: AllAlpha=true",
            "featureGates: featureGates must be a map with true or false for each name, not \"AllAlpha=true\"",
        ),
        (
            "featureGates: {AllAlpha: [true]}",
            "featureGates.AllAlpha[0]: featureGates.AllAlpha must be true or false, not a list",
        ),
    ] {
        let refused = with(&[], lines).unwrap_err();
        assert_eq!(refused, format!("--config: FILE:3: {why}"));
    }
    let unknown = "ipvs: {future: [1], other: {strictARP: true}}\n";
    assert_eq!(with(&[], unknown).unwrap().1.len(), 2);
}

/// Empty lists and maps where kube-proxy has something else, and the errors.
const EMPTY: [(&str, &str); 13] = [
    (
        "ipvs: []",
        "ipvs[]: ipvs must be a map with fields such as scheduler, not a list",
    ),
    (
        "conntrack: []",
        "conntrack[]: conntrack must be a map with fields such as maxPerCore, not a list",
    ),
    (
        "nodePortAddresses: {}",
        "nodePortAddresses{}: nodePortAddresses must be a list, such as [a, b], not a map",
    ),
    (
        "clusterCIDR: {}",
        "clusterCIDR{}: clusterCIDR must be a range, or one of each IP family with a comma between, not a map",
    ),
    (
        "clusterCIDR: []",
        "clusterCIDR[]: clusterCIDR must be a range, or one of each IP family with a comma between, not a list",
    ),
    (
        "mode: []",
        "mode[]: mode must be one of iptables, ipvs, nftables, not a list",
    ),
    (
        "conntrack: {min: []}",
        "conntrack.min[]: conntrack.min must be a whole number, at least 0, not a list",
    ),
    (
        "ipvs: {strictARP: []}",
        "ipvs.strictARP[]: ipvs.strictARP must be true or false, not a list",
    ),
    (
        "ipvs: {syncPeriod: []}",
        "ipvs.syncPeriod[]: ipvs.syncPeriod must be a duration, such as 30s or 1m30s, more than 0s, not a list",
    ),
    (
        "featureGates: {A: []}",
        "featureGates.A[]: featureGates.A must be true or false, not a list",
    ),
    (
        "healthzBindAddress: []",
        "healthzBindAddress[]: healthzBindAddress must be IP:PORT, not a list",
    ),
    (
        "nodePortAddresses: [[]]",
        "nodePortAddresses[0][]: nodePortAddresses[] must be text, not a list",
    ),
    (
        "logging: {vmodule: {}}",
        "logging.vmodule{}: logging.vmodule must be a list, such as [a, b], not a map",
    ),
];

#[test]
fn an_empty_list_or_map_of_the_wrong_shape_is_refused() {
    for (lines, why) in EMPTY {
        let refused = with(&[], lines).unwrap_err();
        assert_eq!(refused, format!("--config: FILE:3: {why}"));
    }
}

#[test]
fn null_and_an_empty_list_or_map_of_the_right_shape_have_no_effect() {
    let (absent, _) = with(&[], "").unwrap();
    for lines in [
        "ipvs: {}",
        "ipvs: null",
        "nodePortAddresses: []",
        "nodePortAddresses: null",
        "clusterCIDR: null",
        "featureGates: {}",
        "featureGates: {A: null}",
        "logging: {vmodule: [], options: {}}",
        "logging: {vmodule: [{}]}",
        "conntrack: {min: null}",
        "future: []",
        "future: {a: {}}",
    ] {
        let (mut args, unfollowed) = with(&[], lines).unwrap();
        args.config.clone_from(&absent.config);
        assert_eq!((&args, unfollowed), (&absent, Vec::new()), "{lines}");
    }
}

#[test]
fn a_zero_of_another_kind_is_not_an_absent_value() {
    for lines in [
        "nodePortAddresses: [false]",
        "nodePortAddresses: [0]",
        "nodePortAddresses: ['']",
        "ipvs: {excludeCIDRs: ['']}",
        "clusterCIDR: 0",
        "detectLocalMode: false",
        "conntrack: {udpTimeout: false}",
        "conntrack: {min: 0s}",
        "featureGates: {A: ''}",
    ] {
        let refused = with(&[], lines).unwrap_err();
        assert!(refused.starts_with("--config: FILE:3: "), "{refused}");
    }
    let zeros = "clientConnection: {qps: 0.0}\nipvs: {syncPeriod: 0m, udpTimeout: '0'}\n";
    let (args, _) = with(&[], zeros).unwrap();
    assert_eq!(args.host.ipvs_udp_timeout, None);
}

/// The arguments after these flags, and the lines about ignored flags; or the error.
fn with_flags(flags: &[&str]) -> Result<(AgentArgs, Vec<String>), String> {
    let words = ["ipvs-topo", "agent", "--node-name=n1"];
    let words = words.iter().chain(flags).map(OsString::from);
    let cli = Cli::try_parse_from(words_for_clap(words)).map_err(|error| error.to_string())?;
    let Command::Agent(mut args) = cli.command else {
        panic!("another command");
    };
    let unfollowed = args.configure().map_err(|failure| {
        assert_eq!(failure.code(), 2);
        failure.message()
    })?;
    Ok((*args, unfollowed))
}

/// The fields of a YAML text by its indentation; an item of a list is `[]`.
fn fields(yaml: &str) -> BTreeSet<String> {
    let lines = yaml
        .lines()
        .filter(|line| !line.trim_start().starts_with('#'));
    let mut path: Vec<(usize, &str)> = Vec::new();
    let mut fields = BTreeSet::new();
    for line in lines {
        let (name, value) = line.trim_start().split_once(':').unwrap();
        let indent = line.len() - line.trim_start().len();
        path.retain(|(outer, _)| *outer < indent);
        path.push((indent, name));
        if !value.is_empty() {
            let names: Vec<&str> = path.iter().map(|(_, name)| *name).collect();
            fields.insert(names.join("."));
        }
    }
    fields
}

/// The file has every field of the API; lists and maps are null in it, and kubeadm leaves some out.
#[test]
fn the_table_has_every_field_of_kube_proxy_and_no_other() {
    let mut of_api = fields(OF_KUBEADM);
    let head = ["apiVersion", "kind"].map(|name| of_api.remove(name));
    assert_eq!(head, [true, true]);
    let splits = ["json", "text"].map(|format| format!("logging.options.{format}.splitStream"));
    of_api.extend(splits);
    of_api.extend(["logging.format", "logging.vmodule"].map(str::to_owned));
    let of_table: BTreeSet<String> = settings::all()
        .filter(|setting| !setting.field.is_empty())
        .map(|setting| {
            let list = setting.field.split("[]").next().unwrap();
            list.trim_end_matches(".*").to_owned()
        })
        .collect();
    assert_eq!(of_table, of_api);
}

/// KP-CF-10 to KP-CF-42
#[test]
fn every_flag_of_kube_proxy_is_accepted_or_refused_with_a_remedy() {
    let of_kube_proxy: BTreeSet<(&str, bool)> = flags::all()
        .map(|flag| (flag.name, flag.kind == FlagKind::Switch))
        .collect();
    let named = settings::all().filter(|setting| !setting.flag.is_empty());
    let is_switch = |setting: &ProxySetting| {
        setting.values == value::ValueKind::Switch && !setting.field.ends_with('*')
    };
    let of_table: BTreeSet<(&str, bool)> = named
        .map(|setting| (setting.flag, is_switch(setting)))
        .collect();
    assert_eq!(of_table, of_kube_proxy);
    let cli = Cli::command();
    let agent = cli.find_subcommand("agent").unwrap();
    for (flag, _) in of_kube_proxy {
        let mut known = agent.get_arguments().flat_map(|arg| {
            let aliases = arg.get_all_aliases().unwrap_or_default();
            arg.get_long().into_iter().chain(aliases)
        });
        assert!(
            flag == "version" || known.any(|name| name == flag),
            "--{flag}"
        );
    }
}

/// kubeadm's `DaemonSet` has `--hostname-override`, and manifests/base has `--node-name`.
#[test]
fn of_a_flag_that_is_given_twice_the_last_value_counts_and_lists_add_up() {
    let (args, unfollowed) = with_flags(&[
        "--hostname-override=n2",
        "--proxy-mode=nftables",
        "--proxy-mode=ipvs",
        "--masquerade-all",
        "--masquerade-all=false",
        "--cluster-cidr=10.0.0.0/8,fd00::/64",
        "--cluster-cidr=10.1.0.0/16,fd01::/64",
        "--nodeport-addresses=primary",
        "--nodeport-addresses=10.0.0.0/8,localhost",
        "--feature-gates=A=true",
        "--feature-gates=B=true",
        "--vmodule=a=4",
        "--vmodule=b=5",
    ])
    .unwrap();
    assert_eq!((args.node(), args.clients.masquerade_all), ("n2", false));
    let ranges = args.clients.cluster_cidr.iter().map(ToString::to_string);
    assert_eq!(ranges.collect::<Vec<_>>(), ["10.1.0.0/16", "fd01::/64"]);
    assert_eq!(args.service.nodeport_addresses.len(), 3);
    let ignored = unfollowed
        .iter()
        .map(|line| line.split(" is ignored").next().unwrap());
    assert_eq!(
        ignored.collect::<Vec<_>>(),
        [
            "--feature-gates=A: \"true\"",
            "--feature-gates=B: \"true\"",
            "--vmodule: \"a=4,b=5\""
        ]
    );
    let excluded = [
        "--ipvs-exclude-cidrs=all",
        "--ipvs-exclude-cidrs=10.0.0.0/8",
    ];
    assert!(with_flags(&excluded).unwrap_err().contains("all"));
    let level = |flags: &[&str]| with_flags(flags).unwrap().0.log_level();
    assert_eq!(level(&["--v=6", "--v=4"]), 1);
    assert_eq!(level(&["-v=6", "-v=4"]), 1);
    assert_eq!(level(&["-v", "-v"]), 2);
    for (flags, expected) in [
        (&["-v", "2"][..], 0),
        (&["-v2"], 0),
        (&["-v4"], 1),
        (&["-v", "6"], 2),
        (&["-v6", "-v", "4", "--masquerade-all"], 1),
        (&["-vv"], 2),
        (&["-v", "--masquerade-all"], 1),
    ] {
        assert_eq!(level(flags), expected, "{flags:?}");
    }
}

#[test]
fn only_lists_of_kube_proxy_add_up() {
    let cli = Cli::command();
    let agent = cli.find_subcommand("agent").unwrap();
    for flag in flags::all().filter(|flag| flag.kind != FlagKind::Native) {
        let is_named = |arg: &&clap::Arg| {
            let aliases = arg.get_all_aliases().unwrap_or_default();
            arg.get_long()
                .into_iter()
                .chain(aliases)
                .any(|name| name == flag.name)
        };
        let arg = agent.get_arguments().find(is_named).unwrap();
        let adds_up = matches!(arg.get_action(), ArgAction::Append);
        assert_eq!(adds_up, flag.kind == FlagKind::List, "{}", flag.name);
    }
}

/// The words of `strconv.ParseBool`.
#[test]
fn a_switch_of_the_command_line_is_read_as_in_go() {
    let switches = |flag: &str| {
        let (args, _) = with_flags(&[flag])?;
        let AgentArgs { host, clients, .. } = &args;
        Ok::<_, String>([
            ("--masquerade-all", Some(clients.masquerade_all)),
            ("--ipvs-strict-arp", host.ipvs_strict_arp),
            (
                "--conntrack-tcp-be-liberal",
                Some(host.conntrack_tcp_be_liberal),
            ),
            (
                "--bind-address-hard-fail",
                Some(args.bind_address_hard_fail),
            ),
        ])
    };
    for (flag, _) in switches("-v").unwrap() {
        let value = |text: &str| {
            let all = switches(&format!("{flag}{text}"))?;
            Ok::<_, String>(all.into_iter().find(|(name, _)| *name == flag).unwrap().1)
        };
        for text in ["", "=1", "=t", "=T", "=true", "=True", "=TRUE"] {
            assert_eq!(value(text), Ok(Some(true)), "{flag}{text}");
        }
        for text in ["=0", "=f", "=F", "=false", "=False", "=FALSE"] {
            assert_eq!(value(text), Ok(Some(false)), "{flag}{text}");
        }
        for text in ["=yes", "=tRUE", "=2"] {
            assert!(value(text).is_err(), "{flag}{text}");
        }
    }
}

#[test]
fn every_row_has_a_remedy_or_a_reason_and_one_place() {
    let mut seen = BTreeSet::new();
    for setting in settings::all() {
        assert!(!setting.note.is_empty(), "{setting:?}");
        assert!(seen.insert((setting.field, setting.flag)), "{setting:?}");
        let is_refused = matches!(setting.effect, SettingEffect::Refused);
        assert!(!is_refused || setting.field.is_empty(), "{setting:?}");
    }
}

/// Without a line about an ignored setting.
fn assert_same(flags: &[&str], lines: &str) {
    let (mut by_flag, unfollowed) = with_flags(flags).unwrap();
    assert_eq!(unfollowed, Vec::<String>::new(), "{flags:?}");
    let (mut by_file, unfollowed) = with(&[], lines).unwrap();
    assert_eq!(unfollowed, Vec::<String>::new(), "{lines}");
    by_flag.proxy_flags = ProxyFlags::default();
    by_file.config = None;
    assert_eq!(format!("{by_flag:?}"), format!("{by_file:?}"));
}

#[test]
fn a_flag_is_written_as_its_field() {
    for (flags, lines) in [
        (
            &["--ipvs-udp-timeout=30s1m"][..],
            "ipvs: {udpTimeout: 30s1m}\n",
        ),
        (
            &["--bind-address=192.000.002.009"],
            "bindAddress: 192.000.002.009\n",
        ),
        (
            &["--cluster-cidr=010.0.0.0/08,fd00::/064"],
            "clusterCIDR: 010.0.0.0/08,fd00::/064\n",
        ),
        (
            &["--nodeport-addresses=192.000.002.0/24"],
            "nodePortAddresses: [192.000.002.0/24]\n",
        ),
        (
            &[
                "--healthz-bind-address=127.000.000.001:01",
                "--metrics-bind-address=127.0.0.01",
            ],
            "healthzBindAddress: 127.000.000.001:01\nmetricsBindAddress: 127.0.0.01\n",
        ),
    ] {
        assert_same(flags, lines);
    }
}

#[test]
fn a_flag_does_what_its_field_does() {
    let cases = [
        (&["--logging-format=json"][..], "logging: {format: json}\n"),
        (&["--v=4"], "logging: {verbosity: 4}\n"),
        (&["--bind-address-hard-fail"], "bindAddressHardFail: true\n"),
        (&["--bind-address=192.0.2.9"], "bindAddress: 192.0.2.9\n"),
        (&["--oom-score-adj", "-500"], "oomScoreAdj: -500\n"),
        (&["--oom-score-adj=0"], "oomScoreAdj: 0\n"),
        (&["--ipvs-scheduler=wlc"], "ipvs: {scheduler: wlc}\n"),
        (&["--ipvs-scheduler=rr"], "ipvs: {scheduler: rr}\n"),
        (&["--ipvs-sync-period=45s"], "ipvs: {syncPeriod: 45s}\n"),
        (
            &["--cluster-cidr=10.0.0.0/8,fd00::/64"],
            "clusterCIDR: 10.0.0.0/8,fd00::/64\n",
        ),
        (
            &["--nodeport-addresses=primary,10.0.0.0/8"],
            "nodePortAddresses: [primary, 10.0.0.0/8]\n",
        ),
        (
            &["--healthz-bind-address=127.0.0.1"],
            "healthzBindAddress: 127.0.0.1\n",
        ),
        (
            &[
                "--proxy-mode=ipvs",
                "--kube-api-qps=50",
                "--kube-api-burst=100",
            ],
            "mode: ipvs\nclientConnection: {qps: 50, burst: 100}\n",
        ),
        (
            &[
                "--ipvs-exclude-cidrs=10.0.0.0/8,10.1.0.0/16",
                "--ipvs-strict-arp",
            ],
            "ipvs: {excludeCIDRs: [10.0.0.0/8, 10.1.0.0/16], strictARP: true}\n",
        ),
        (
            &["--feature-gates=AllAlpha=true,KubeProxyIPVS=false"],
            "featureGates: {AllAlpha: true, KubeProxyIPVS: false}\n",
        ),
    ];
    for (flags, lines) in cases {
        assert_same(flags, lines);
    }
    let (args, _) = with_flags(&["--scheduler=rr"]).unwrap();
    assert_eq!(args.service.scheduler, Scheduler::Rr);
    let (args, _) = with_flags(&["--oom-score-adj=-500", "-v=6"]).unwrap();
    assert_eq!((args.oom_score_adj, args.log_level()), (Some(-500), 2));
    let (args, _) = with(&["-vv"], "logging: {format: json}\n").unwrap();
    assert_eq!((args.log_format, args.log_level()), (LogFormat::Json, 2));
}

/// Installers of kube-proxy write flags whose value they do not know.
#[test]
fn a_flag_with_an_empty_value_is_as_absent() {
    let (absent, _) = with_flags(&[]).unwrap();
    for flag in [
        "bind-address",
        "cluster-cidr",
        "config",
        "detect-local-mode",
        "external-ip-ranges",
        "feature-gates",
        "hostname-override",
        "ipvs-exclude-cidrs",
        "ipvs-scheduler",
        "kube-api-content-type",
        "kubeconfig",
        "logging-format",
        "master",
        "node-ip",
        "nodeport-addresses",
        "pod-bridge-interface",
        "pod-interface-name-prefix",
        "proxy-mode",
        "service-cidr",
        "show-hidden-metrics-for-version",
        "vmodule",
        "write-config-to",
    ] {
        let flag = format!("--{flag}");
        for words in [&[&*format!("{flag}=")][..], &[&*flag, ""][..]] {
            let (mut args, unfollowed) = with_flags(words).unwrap();
            args.proxy_flags = ProxyFlags::default();
            assert_eq!((&args, unfollowed), (&absent, Vec::new()), "{words:?}");
        }
    }
    for flag in ["--ipvs-udp-timeout=", "--conntrack-min=", "--version="] {
        with_flags(&[flag]).unwrap_err();
    }
    let (off, _) = with_flags(&["--healthz-bind-address=", "--metrics-bind-address="]).unwrap();
    let servers = [off.healthz_bind_address, off.metrics_bind_address];
    assert_eq!(servers.map(|bind| bind.0), [None, None]);
}

#[test]
fn only_flags_of_the_agent_are_rewritten() {
    let kept = |words: &[&str]| {
        let words = words.iter().map(OsString::from);
        let kept = words_for_clap(words).join(OsStr::new(" "));
        kept.into_string().unwrap()
    };
    let agent = [
        "ipvs-topo",
        "agent",
        "--cluster-cidr=",
        "--master",
        "",
        "-v",
    ];
    assert_eq!(kept(&agent), "ipvs-topo agent -v");
    let agent = [
        "ipvs-topo",
        "agent",
        "--master",
        "--cluster-cidr",
        "10.0.0.0/8",
    ];
    assert_eq!(kept(&agent), agent.join(" "));
    for other in [
        &["ipvs-topo", "render", "--service-cidr=", "--cluster", ""][..],
        &["ipvs-topo", "render", "--node", "agent", "--master="],
        &["ipvs-topo", "--color", "agent", "render", "--master="],
        &["ipvs-topo", "render", "-v2"],
    ] {
        assert_eq!(kept(other), other.join(" "));
    }
    let coloured = ["ipvs-topo", "--colour", "never", "agent", "--master="];
    assert_eq!(kept(&coloured), "ipvs-topo --colour never agent");
}

/// KP-CF-01
#[test]
fn flags_of_the_log_override_the_file() {
    let lines = "logging: {format: text, verbosity: 2}\n";
    for verbosity in ["-v=6", "--v=6"] {
        let (args, _) = with(&[verbosity, "--logging-format=json"], lines).unwrap();
        assert_eq!((args.log_format, args.log_level()), (LogFormat::Json, 2));
    }
}

/// KP-CF-16, KP-CF-17
#[test]
fn a_port_of_zero_turns_a_server_off() {
    let (args, _) = with_flags(&["--healthz-port=0", "--metrics-port", "0"]).unwrap();
    assert_eq!(
        (args.healthz_bind_address.0, args.metrics_bind_address.0),
        (None, None)
    );
    let (args, _) = with_flags(&["--healthz-port=1", "--healthz-bind-address=127.0.0.1"]).unwrap();
    assert_eq!(
        args.healthz_bind_address.0.unwrap().to_string(),
        "127.0.0.1:1"
    );
}

#[test]
fn a_flag_that_is_not_followed_is_reported_or_refused_with_a_remedy() {
    let flags = ["--feature-gates=A=true", "--vmodule=a=4,b=5"];
    let (_, unfollowed) = with_flags(&flags).unwrap();
    assert_eq!(
        unfollowed,
        [
            "--feature-gates=A: \"true\" is ignored; neither kube-proxy nor the agent has this feature gate; remove it",
            "--vmodule: \"a=4,b=5\" is ignored; the agent has no files of Go; set `RUST_LOG`, for example info,agent::reconcile=debug",
        ]
    );
    let refused = |flag: &str| with_flags(&[flag]).unwrap_err();
    assert!(refused("--cleanup").contains("docs/migrate.md"));
    assert!(refused("--init-only=true").contains("--sysctl-dir"));
    assert!(refused("--write-config-to=/x").contains("/configz"));
    assert!(
        refused("--proxy-mode=nftables")
            .contains("--proxy-mode: \"nftables\": this proxy only uses IPVS")
    );
    assert!(refused("--proxy-mode=userspace").contains("not one of iptables, ipvs, nftables"));
    assert!(refused("--oom-score-adj=1001").contains("from -1000 to 1000"));
    assert!(refused("--unknown").contains("unexpected argument"));
    assert_eq!(
        refused("--feature-gates=AllAlpha=true,foo"),
        "--feature-gates: missing bool value for foo; write foo=true or foo=false"
    );
    for gate in ["foo=", "foo=maybe"] {
        let why = refused(&format!("--feature-gates={gate}"));
        assert!(why.starts_with("--feature-gates=foo: \""), "{why}");
    }
    for word in ["0", "f", "F", "false", "False", "FALSE"] {
        let flags = ["cleanup", "init-only", "profiling"].map(|flag| format!("--{flag}={word}"));
        let (_, unfollowed) = with_flags(&flags.each_ref().map(String::as_str)).unwrap();
        assert_eq!(unfollowed, Vec::<String>::new(), "{word}");
    }
}

#[test]
fn a_flag_is_refused_as_its_field_is() {
    for (flags, lines, why) in [
        (
            "--nodeport-addresses=primary,primary",
            "nodePortAddresses: [primary, primary]",
            ": \"primary\" appears twice; remove one",
        ),
        (
            "--conntrack-max-per-core=-1",
            "conntrack: {maxPerCore: -1}",
            ": \"-1\" is not a whole number, at least 0",
        ),
        (
            "--conntrack-min=x",
            "conntrack: {min: x}",
            ": \"x\" is not a whole number, at least 0",
        ),
        (
            "--conntrack-min=9223372036854775808",
            "conntrack: {min: 9223372036854775808}",
            ": \"9223372036854775808\" is not a whole number, at least 0",
        ),
        (
            "--ipvs-udp-timeout=PT30S",
            "ipvs: {udpTimeout: PT30S}",
            ": \"PT30S\" is not a duration",
        ),
    ] {
        let refused = with_flags(&[flags]).unwrap_err();
        assert!(refused.contains(why), "{refused}");
        let refused = with(&[], lines).unwrap_err();
        assert!(refused.contains(why), "{refused}");
    }
    let twice = [
        "--nodeport-addresses=localhost",
        "--nodeport-addresses=localhost",
    ];
    assert!(with_flags(&twice).is_err());
}

/// Empty text in the file has no effect, so it is not the remedy there.
#[test]
fn an_invalid_address_of_a_server_has_the_remedy_of_its_place() {
    for (field, flag, port) in [
        ("healthzBindAddress", "--healthz-bind-address", 10256),
        ("metricsBindAddress", "--metrics-bind-address", 10249),
    ] {
        let off = format!(
            "to turn this server off, remove this field, which overrides flags, and set {flag}="
        );
        assert_eq!(
            with(&[], &format!("{field}: '0.0.0.0:0'\n")).unwrap_err(),
            format!(
                "--config: FILE:3: {field}: port 0 is not a fixed port; write 1 to 65535; {off}"
            )
        );
        assert_eq!(
            with(&[], &format!("{field}: here\n")).unwrap_err(),
            format!(
                "--config: FILE:3: {field}: \"here\" is not IP:PORT; write for example 0.0.0.0:{port} or [::]:{port}; {off}"
            )
        );
        let refused = with_flags(&[&format!("{flag}=0.0.0.0:0")]).unwrap_err();
        let off = "write 1 to 65535, or \"\" to turn this server off";
        assert!(refused.contains(off), "{refused}");
    }
}

/// KP-NI-03
#[test]
fn the_name_of_the_node_is_that_of_the_option_the_file_or_the_host() {
    let named = |flags: &[&str], lines: &str| {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(format!("{HEAD}{lines}").as_bytes()).unwrap();
        let words = [
            "ipvs-topo",
            "agent",
            "--config",
            file.path().to_str().unwrap(),
        ];
        let Command::Agent(mut args) = Cli::parse_from(words.iter().chain(flags)).command else {
            panic!("another command");
        };
        let unfollowed = args.configure().unwrap();
        (args.node().to_owned(), unfollowed.len())
    };
    let host = rustix::system::uname();
    let host = host.nodename().to_str().unwrap().to_ascii_lowercase();
    assert_eq!(named(&[], ""), (host, 0));
    assert_eq!(
        named(&[], "hostnameOverride: ' N2 '\n"),
        ("n2".to_owned(), 0)
    );
    let flag = ["--hostname-override= N1 "];
    assert_eq!(named(&flag, "hostnameOverride: n2\n"), ("n1".to_owned(), 1));
    assert_eq!(named(&flag, "hostnameOverride: N1\n"), ("n1".to_owned(), 0));
}

/// KP-CF-50, KP-CF-52, KP-CF-33: the limits of kube-proxy's validation.
#[test]
fn a_value_that_kube_proxy_refuses_is_refused() {
    for lines in [
        "mode: userspace\n",
        "iptables: {masqueradeBit: 32}\n",
        "iptables: {syncPeriod: -1s}\n",
        "ipvs: {minSyncPeriod: -1s}\n",
        "ipvs: {minSyncPeriod: 31s}\n",
        "ipvs: {syncPeriod: 5s, minSyncPeriod: 6s}\n",
        "ipvs: {excludeCIDRs: [10.0.0.0]}\n",
        "ipvs: {udpTimeout: -1s}\n",
        "conntrack: {maxPerCore: -1}\n",
        "conntrack: {tcpCloseWaitTimeout: -1h}\n",
        "oomScoreAdj: -1001\n",
        "clientConnection: {burst: -1}\n",
        "configSyncPeriod: -1s\n",
        "clusterCIDR: '10.0.0.0/8,10.1.0.0/16'\n",
        "clusterCIDR: '10.0.0.0/8,fd00::/64,fd01::/64'\n",
        "nodePortAddresses: [primary, primary]\n",
        "detectLocalMode: Auto\n",
        "logging: {format: xml}\n",
        "featureGates: {AllAlpha: maybe}\n",
        "metricsBindAddress: '127.0.0.1:65536'\n",
    ] {
        let refused = with(&[], lines).unwrap_err();
        assert!(refused.contains("--config: FILE:3: "), "{refused}");
    }
    let lines = "bindAddress: 192.000.002.001\nclusterCIDR: 010.0.0.0/08\nipvs: {syncPeriod: 0s, minSyncPeriod: 0s}\niptables: {masqueradeBit: 0, minSyncPeriod: 1s}\n";
    let (args, unfollowed) = with(&[], lines).unwrap();
    assert_eq!(unfollowed, Vec::<String>::new());
    assert_eq!(args.node_ip, ["192.0.2.1".parse::<IpAddr>().unwrap()]);
    assert_eq!(args.clients.cluster_cidr[0].to_string(), "10.0.0.0/8");
}

/// KP-HC-20
#[test]
fn configz_has_kube_proxys_fields_with_the_values_in_use() {
    fn leaves(path: &str, value: &serde_json::Value, found: &mut Vec<String>) {
        match value {
            serde_json::Value::Object(fields) => {
                for (name, value) in fields {
                    let joint = if path.is_empty() { "" } else { "." };
                    leaves(&format!("{path}{joint}{name}"), value, found);
                }
            }
            serde_json::Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    leaves(&format!("{path}[{index}]"), item, found);
                }
            }
            _ => found.push(path.to_owned()),
        }
    }
    let lines = "ipvs: {scheduler: wlc}\nlogging: {format: json}\nbindAddressHardFail: true\nnodePortAddresses: [primary]\n";
    let (args, _) = with(&[], lines).unwrap();
    let configz = crate::start::configz(&args);
    let shown = &configz["kubeproxy.config.k8s.io"];
    assert_eq!(shown["ipvs"]["scheduler"], "wlc");
    assert_eq!(shown["logging"]["format"], "json");
    assert_eq!(shown["bindAddressHardFail"], true);
    assert_eq!(shown["oomScoreAdj"], -999);
    let mut fields = Vec::new();
    leaves("", shown, &mut fields);
    fields.retain(|field| field != "apiVersion" && field != "kind");
    assert!(fields.len() > 8, "{fields:?}");
    for field in &fields {
        assert!(settings::of_field(field).is_some(), "{field}");
    }
    let is_applied = |setting: &&ProxySetting| {
        matches!(setting.effect, SettingEffect::Applied(_)) && !setting.field.is_empty()
    };
    for setting in settings::all().filter(is_applied) {
        let is_shown = fields.iter().any(|field| setting.has(field));
        assert!(is_shown, "/configz lacks {}", setting.field);
    }
}
