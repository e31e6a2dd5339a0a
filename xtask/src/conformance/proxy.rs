//! Starts what serves Services in the cluster of a run.

use std::fs;

use anyhow::{Context as _, ensure};

use testbed::lab::{NODES, RunningLab};
use testbed::paths;

use crate::cluster;

/// The option for the namespace of kube-proxy.
const SYSTEM: &str = "--namespace=kube-system";

/// The agents, with flags that fit the lab.
const MANIFESTS: &str = "xtask/src/conformance/manifests";

/// The same with a DNS server on each node.
const MANIFESTS_WITH_DNS: &str = "xtask/src/conformance/dns";

/// kube-proxy in ipvs mode with kubeadm's objects, which the tests of the lab use, too.
const KUBE_PROXY: &str = "crates/cli/tests/lab/kube-proxy.yaml";

/// What serves Services.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub(crate) enum Proxy {
    /// The agents of this project.
    IpvsTopo,
    /// The agents, and the DNS servers of this project instead of `CoreDNS`.
    IpvsTopoDns,
    /// kube-proxy in nftables mode.
    Nftables,
    /// kube-proxy in ipvs mode.
    Ipvs,
}

impl Proxy {
    pub(super) const ALL: [Self; 4] = [
        Self::IpvsTopo,
        Self::IpvsTopoDns,
        Self::Nftables,
        Self::Ipvs,
    ];

    /// The name on the command line and in file names.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::IpvsTopo => "ipvs-topo",
            Self::IpvsTopoDns => "ipvs-topo-dns",
            Self::Nftables => "nftables",
            Self::Ipvs => "ipvs",
        }
    }

    /// The options of kubectl for the namespace and the label of its Pods.
    pub(super) fn pods(self) -> [&'static str; 2] {
        match self {
            Self::IpvsTopo | Self::IpvsTopoDns => [
                "--namespace=ipvs-topo-system",
                "--selector=app.kubernetes.io/name=ipvs-topo-agent",
            ],
            Self::Nftables | Self::Ipvs => [SYSTEM, "--selector=k8s-app=kube-proxy"],
        }
    }

    /// Installs it, and waits until it runs on every node.
    pub(super) fn start(self, lab: &RunningLab) -> anyhow::Result<()> {
        match self {
            Self::IpvsTopo => start_agents(lab, MANIFESTS),
            Self::IpvsTopoDns => {
                start_agents(lab, MANIFESTS_WITH_DNS)?;
                cluster::wait_for(lab, SYSTEM, "daemonset/ipvs-topo-dns")
            }
            Self::Nftables | Self::Ipvs => {
                cluster::kubectl(lab, &self.kube_proxy()?, &["apply", "-f", "-"])?;
                cluster::wait_for(lab, SYSTEM, "daemonset/kube-proxy")
            }
        }
    }

    /// Stops `CoreDNS` if the DNS servers of this project are to answer alone.
    pub(super) fn replace_dns(self, lab: &RunningLab) -> anyhow::Result<()> {
        match self {
            Self::IpvsTopo | Self::Nftables | Self::Ipvs => Ok(()),
            Self::IpvsTopoDns => {
                let words = ["scale", SYSTEM, "deployment/coredns", "--replicas=0"];
                cluster::kubectl(lab, "", &words)?;
                cluster::wait_for(lab, SYSTEM, "deployment/coredns")
            }
        }
    }

    /// Returns the objects of kube-proxy in this mode.
    fn kube_proxy(self) -> anyhow::Result<String> {
        let file = paths::root().join(KUBE_PROXY);
        let objects = fs::read_to_string(&file);
        let objects = objects.with_context(|| format!("cannot read {}", file.display()))?;
        let mode = format!("mode: {}", self.name());
        Ok(objects
            .replace("VERSION", env!("CARGO_PKG_VERSION"))
            .replace("mode: ipvs", &mode))
    }
}

fn start_agents(lab: &RunningLab, manifests: &str) -> anyhow::Result<()> {
    cluster::install(lab, manifests)?;
    cluster::wait_for_agents(lab)?;
    no_kube_proxy(lab)
}

/// Fails if kube-proxy runs on a node or has left something there.
fn no_kube_proxy(lab: &RunningLab) -> anyhow::Result<()> {
    for node in NODES {
        // kubelet has chains with KUBE- in their names, too.
        let line = "{ pidof kube-proxy; nft list tables | grep kube-proxy; \
             iptables-save | grep KUBE-SERVICES; ipset list -n | grep KUBE-; } 2>/dev/null; true";
        let found = lab.output(node, line)?;
        ensure!(
            found.trim().is_empty(),
            "kube-proxy is on node {node}, which ipvs-topo serves:\n{found}"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kube_proxys_objects_have_the_mode_and_no_placeholder() {
        for proxy in [Proxy::Nftables, Proxy::Ipvs] {
            let objects = proxy.kube_proxy().unwrap();
            let mode = format!("    mode: {}\n", proxy.name());
            assert!(objects.contains(&mode), "{objects}");
            assert!(!objects.contains("VERSION"), "{objects}");
        }
    }
}
