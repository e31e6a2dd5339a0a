//! `--config`: the `KubeProxyConfiguration` of kube-proxy (KP-CF-10 to KP-CF-52).
//!
//! As in kube-proxy, the file overrides the flags, except for the node's name. Zero, empty and null
//! leave a setting unchanged, because kubeadm writes many of them. Each field that the agent does
//! not follow is reported.

pub mod change;

use std::fmt::Display;
use std::net::IpAddr;
use std::path::Path;

use cluster::source::{Leaf, leaves};
use topology_core::model::{IpNetwork, NodePortEntry, ParseNodePortEntryError};
use topology_core::scheduler::{Scheduler, UnknownScheduler};

use super::{AgentArgs, values};
use crate::exit::Failure;

const KIND: &str = "KubeProxyConfiguration";
const GROUP: &str = "kubeproxy.config.k8s.io/";

/// Fields without effect here, and prefixes of such fields.
const WITHOUT_EFFECT: [&str; 15] = [
    "bindAddressHardFail",
    "clientConnection.",
    "configSyncPeriod",
    "featureGates",
    "iptables.localhostNodePorts",
    "iptables.masqueradeBit",
    "iptables.minSyncPeriod",
    "iptables.syncPeriod",
    // The agent never changes foreign virtual servers.
    "ipvs.excludeCIDRs",
    // The agent applies a single change at once.
    "ipvs.minSyncPeriod",
    "nftables.",
    "portRange",
    "showHiddenMetricsForVersion",
    "windowsRunAsService",
    "winkernel.",
];

/// Prefixes of fields that the agent does not follow, with the remedy.
const OTHERWISE: [(&str, &str); 3] = [
    ("enableProfiling", "the agent has no profiling endpoint"),
    ("logging.", "set --log-format and -v"),
    (
        "oomScoreAdj",
        "set the priority class of the pod, which kubelet follows",
    ),
];

impl AgentArgs {
    /// Overrides flags with the file of `--config`. Returns a line for each field that is ignored.
    ///
    /// # Errors
    /// The file cannot be read, is not a `KubeProxyConfiguration`, or has an invalid field.
    pub fn configure(&mut self) -> Result<Vec<String>, Failure> {
        let Some(path) = self.config.clone() else {
            return Ok(Vec::new());
        };
        let mut leaves = leaves(&path).map_err(at_flag)?;
        if !leaves.iter().any(|leaf| leaf.field == "kind") {
            let file = path.display();
            return Err(at_flag(format_args!(
                "{file}: not a {KIND}, because it has no kind"
            )));
        }
        let mut unfollowed = Vec::new();
        // First, because other addresses take precedence over it.
        leaves.sort_by_key(|leaf| leaf.field != "bindAddress");
        for leaf in &leaves {
            let taken = self.take(leaf);
            let why = taken.map_err(|why| at_flag(about(&path, leaf, &why)))?;
            let why = why.map(|why| format!("{:?} is ignored; {why}", leaf.text));
            unfollowed.extend(why.map(|why| about(&path, leaf, &why)));
        }
        Ok(unfollowed)
    }

    /// Applies one field; returns the reason if it is ignored.
    fn take(&mut self, leaf: &Leaf) -> Result<Option<&'static str>, String> {
        let text = leaf.text.trim();
        if let Some(taken) = self.host.take(&leaf.field, text) {
            return taken.map(|()| None);
        }
        let says_nothing = matches!(text, "" | "0" | "0s" | "false");
        match &*leaf.field {
            "kind" if text != KIND => return Err(format!("{text:?} is not {KIND}")),
            "apiVersion" if !text.starts_with(GROUP) => {
                return Err(format!("{text:?} is not of {GROUP}"));
            }
            "kind" | "apiVersion" => {}
            _ if says_nothing => {}
            "mode" if text != "ipvs" => {
                return Ok(Some("this proxy only uses IPVS"));
            }
            "hostnameOverride" if values::node_name(text).as_ref() != Ok(&self.node_name) => {
                return Ok(Some("--node takes precedence"));
            }
            "mode" | "hostnameOverride" => {}
            "clientConnection.kubeconfig" if self.origin.cluster.is_none() => {
                self.origin.kubeconfig = Some(text.into());
            }
            "healthzBindAddress" => self.healthz_bind_address = values::healthz_address(text)?,
            "metricsBindAddress" => self.metrics_bind_address = values::metrics_address(text)?,
            "bindAddress" => self.bind(text)?,
            // With equal weights `wrr` does the same as `rr`, and `rr` cannot give shares.
            "ipvs.scheduler" => {
                self.service.scheduler = match text
                    .parse()
                    .map_err(|error: UnknownScheduler| error.to_string())?
                {
                    Scheduler::Rr => Scheduler::Wrr,
                    other => other,
                }
            }
            "clusterCIDR" => {
                let ranges: Result<Vec<IpNetwork>, String> =
                    text.split(',').map(values::cidr).collect();
                self.cluster_cidr = ranges?;
            }
            "iptables.masqueradeAll" => self.clients.masquerade_all = values::boolean(text)?,
            "detectLocalMode"
            | "detectLocal.bridgeInterface"
            | "detectLocal.interfaceNamePrefix" => self.clients.take(&leaf.field, text)?,
            // kubeadm writes `false`, which has no effect: no ARP replies is the default here.
            "ipvs.strictARP" => self.host.ipvs_strict_arp = Some(values::boolean(text)?),
            "ipvs.syncPeriod" => self.check_period = text.parse()?,
            field if field.starts_with("nodePortAddresses[") => {
                return self.add_node_port_addresses(field, text);
            }
            field => return Ok(unfollowed(field)),
        }
        Ok(None)
    }

    /// Adds an entry of the list, which replaces that of the flag.
    fn add_node_port_addresses(
        &mut self,
        field: &str,
        text: &str,
    ) -> Result<Option<&'static str>, String> {
        let entry = text
            .parse()
            .map_err(|error: ParseNodePortEntryError| error.to_string())?;
        if field.ends_with("[0]") {
            self.service.nodeport_addresses.clear();
        }
        self.service.nodeport_addresses.push(entry);
        let is_localhost = entry == NodePortEntry::Localhost;
        Ok(is_localhost.then_some("IPVS does not serve node ports on loopback addresses"))
    }

    /// The node's address, except an unspecified one. IPv6 also makes the servers listen on IPv6.
    fn bind(&mut self, text: &str) -> Result<(), String> {
        let address: IpAddr = text.parse().map_err(|_error| {
            format!("{text:?} is not an IP address; write for example 192.0.2.10")
        })?;
        if !address.is_unspecified() {
            self.node_ip = vec![address];
        }
        if address.is_ipv6() {
            self.healthz_bind_address = values::healthz_address("::")?;
            self.metrics_bind_address = values::metrics_address("::1")?;
        }
        Ok(())
    }
}

/// The reason for ignoring a field; `None` if that has no effect.
fn unfollowed(field: &str) -> Option<&'static str> {
    if WITHOUT_EFFECT.iter().any(|known| field.starts_with(known)) {
        return None;
    }
    let otherwise = OTHERWISE.iter().find(|(known, _)| field.starts_with(known));
    Some(otherwise.map_or("kube-proxy 1.37 does not have this field", |(_, why)| why))
}

fn about(path: &Path, leaf: &Leaf, why: &str) -> String {
    format!("{}:{}: {}: {why}", path.display(), leaf.line, leaf.field)
}

fn at_flag(why: impl Display) -> Failure {
    Failure::input(format_args!("--config: {why}"))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use clap::Parser as _;

    use super::*;
    use crate::args::{Cli, Command};

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
        let unfollowed = args
            .configure()
            .map_err(|failure| strip(failure.message()))?;
        Ok((*args, unfollowed.into_iter().map(strip).collect()))
    }

    const HEAD: &str =
        "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n";

    fn with(flags: &[&str], lines: &str) -> Result<(AgentArgs, Vec<String>), String> {
        configured(flags, &format!("{HEAD}{lines}"))
    }

    /// KP-DS-05, KP-CF-50: as `kubeadm init` of Kubernetes 1.37 writes it, except for the
    /// addresses.
    const OF_KUBEADM: &str = include_str!("proxy_config/kubeadm.yaml");

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
        let lines = "nodePortAddresses: [primary, 192.0.2.0/24]\n";
        let (args, unfollowed) = with(&["--nodeport-addresses=all"], lines).unwrap();
        assert_eq!(unfollowed, Vec::<String>::new());
        let entries = args.service.nodeport_addresses;
        assert_eq!(
            entries.iter().map(ToString::to_string).collect::<Vec<_>>(),
            ["primary", "192.0.2.0/24"]
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
        assert_eq!(strict(&[], "false"), None);
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
        let wrong = with(&[], "detectLocalMode: Bridge\n").unwrap_err();
        assert!(
            wrong.contains("FILE:3: detectLocalMode: \"Bridge\" is not one of"),
            "{wrong}"
        );
        let wrong = with(&[], "detectLocal: {bridgeInterface: 'a b'}\n").unwrap_err();
        assert!(wrong.contains("not the name of a link"), "{wrong}");
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
                "FILE:6: nodePortAddresses[1]: \"localhost\" is ignored; IPVS does not serve node ports on loopback addresses",
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
}
