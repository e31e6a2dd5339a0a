//! Defines where a control plane listens, and derives the flags of each part.

use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

/// The address of the host's loopback in a guest with user-mode networking.
pub const FROM_GUEST: &str = "10.0.2.2";

/// Service CIDRs of both families.
const SERVICE_RANGES: &str = "10.96.0.0/16,fd00:10:96::/112";

/// The cluster CIDR, for nodes with kubelets.
const POD_RANGE: &str = "10.244.0.0/16";

/// The cluster IP of `kubernetes.default`.
const SERVICE_ADDRESS: &str = "10.96.0.1";

/// The range of API server ports: below the ephemeral ports, so that the API server finds its port free after a restart.
const PORTS: std::ops::Range<u16> = 20_000..32_000;

/// The range of node ports without kubelets: `fill` needs 10,000 and more.
const NODE_PORT_RANGE: &str = "16000-32767";

/// The controllers that need kubelets, or treat nodes without one as dead.
const NEED_KUBELETS: &str = "-node-lifecycle-controller,-taint-eviction-controller,\
     -persistentvolume-attach-detach-controller,-persistentvolume-binder-controller";

/// A part of the control plane.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, clap::ValueEnum,
)]
pub(crate) enum ControlPlanePart {
    Etcd,
    /// The API server.
    KubeApiserver,
    KubeControllerManager,
    /// Only with nodes.
    KubeScheduler,
}

impl ControlPlanePart {
    /// The subcommand of the program.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::KubeApiserver => "kube-apiserver",
            Self::KubeControllerManager => "kube-controller-manager",
            Self::KubeScheduler => "kube-scheduler",
        }
    }
}

/// The addresses and parts of a control plane.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ControlPlaneConfig {
    /// A prefix of every command that enters the control plane's network namespace.
    pub(crate) launch: Vec<String>,
    /// The nodes that have kubelets.
    pub(crate) nodes: Vec<String>,
    bind: String,
    /// The address for clients on this machine.
    address: String,
    port: u16,
    /// The endpoint of `kubernetes.default` for Pods.
    advertised: String,
    /// Every part in start order.
    pub(crate) parts: Vec<ControlPlanePart>,
}

impl ControlPlaneConfig {
    /// Listens on the loopback, on a free port, for clients on this machine and in guests.
    pub(crate) fn loopback() -> anyhow::Result<Self> {
        let address = "127.0.0.1".to_owned();
        Ok(Self {
            launch: Vec::new(),
            nodes: Vec::new(),
            port: free_port(&address, anywhere()?)?,
            bind: address.clone(),
            address,
            advertised: FROM_GUEST.to_owned(),
            parts: vec![
                ControlPlanePart::Etcd,
                ControlPlanePart::KubeApiserver,
                ControlPlanePart::KubeControllerManager,
            ],
        })
    }

    /// Listens on `address` for `nodes` with kubelets. `launch` enters the network namespace with that address.
    pub(crate) fn with_nodes(launch: Vec<String>, address: &str, nodes: Vec<String>) -> Self {
        Self {
            launch,
            nodes,
            bind: address.to_owned(),
            address: address.to_owned(),
            port: 6443,
            advertised: address.to_owned(),
            parts: vec![
                ControlPlanePart::Etcd,
                ControlPlanePart::KubeApiserver,
                ControlPlanePart::KubeControllerManager,
                ControlPlanePart::KubeScheduler,
            ],
        }
    }

    /// Returns a command that runs `program` in the control plane's network namespace.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let Some((first, rest)) = self.launch.split_first() else {
            return Command::new(program);
        };
        let mut command = Command::new(first);
        command.args(rest).arg(program);
        command
    }

    pub(crate) fn url(&self) -> String {
        format!("https://{}:{}", self.address, self.port)
    }

    /// Returns the addresses in the API server's certificate.
    pub(crate) fn addresses(&self) -> String {
        [&self.address, &self.advertised, SERVICE_ADDRESS].join(",")
    }

    /// Returns the flags of `part`. Paths are relative to the control plane's folder.
    pub(crate) fn flags(&self, part: ControlPlanePart) -> Vec<String> {
        match part {
            ControlPlanePart::Etcd => owned(&["--data-dir=."]),
            ControlPlanePart::KubeApiserver => self.server(),
            ControlPlanePart::KubeControllerManager => self.manager(),
            ControlPlanePart::KubeScheduler => owned(&[
                "--kubeconfig=scheduler.kubeconfig",
                "--leader-elect=false",
                "--secure-port=0",
            ]),
        }
    }

    fn server(&self) -> Vec<String> {
        let mut flags = owned(&[
            "--etcd-servers=unix://client.sock",
            "--tls-cert-file=apiserver.crt",
            "--tls-private-key-file=apiserver.key",
            "--client-ca-file=ca.crt",
            "--service-account-issuer=https://kubernetes.default.svc",
            "--service-account-key-file=service-accounts.key",
            "--service-account-signing-key-file=service-accounts.key",
            "--authorization-mode=Node,RBAC",
            "--enable-admission-plugins=NodeRestriction",
            "--allow-privileged=true",
            "--audit-policy-file=audit.yaml",
            "--audit-log-path=audit.log",
        ]);
        flags.extend([
            format!("--bind-address={}", self.bind),
            format!("--secure-port={}", self.port),
            format!("--advertise-address={}", self.advertised),
            format!("--service-cluster-ip-range={SERVICE_RANGES}"),
        ]);
        if self.nodes.is_empty() {
            flags.push(format!("--service-node-port-range={NODE_PORT_RANGE}"));
        } else {
            flags.extend(owned(&[
                "--kubelet-client-certificate=kubelet-client.crt",
                "--kubelet-client-key=kubelet-client.key",
                "--kubelet-preferred-address-types=InternalIP",
            ]));
        }
        flags
    }

    fn manager(&self) -> Vec<String> {
        let mut flags = owned(&[
            "--kubeconfig=controller-manager.kubeconfig",
            "--service-account-private-key-file=service-accounts.key",
            "--root-ca-file=ca.crt",
            "--use-service-account-credentials=true",
            "--leader-elect=false",
            "--secure-port=0",
            // Tests write as fast as they can and wait for the controllers.
            "--kube-api-qps=500",
            "--kube-api-burst=1000",
        ]);
        if self.nodes.is_empty() {
            flags.push(format!("--controllers=*,{NEED_KUBELETS}"));
        } else {
            flags.push("--allocate-node-cidrs=true".to_owned());
            flags.push(format!("--cluster-cidr={POD_RANGE}"));
        }
        flags
    }
}

fn owned(flags: &[&str]) -> Vec<String> {
    flags.iter().map(|flag| (*flag).to_owned()).collect()
}

/// Returns the first port to try. It varies, so that control planes that start together differ.
fn anywhere() -> anyhow::Result<u16> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
    let number = now.subsec_nanos().wrapping_add(std::process::id());
    let count = u32::from(PORTS.end - PORTS.start);
    Ok(PORTS.start + u16::try_from(number % count)?)
}

/// Returns a free port of `address`, from `first` on.
fn free_port(address: &str, first: u16) -> anyhow::Result<u16> {
    (first..PORTS.end)
        .chain(PORTS.start..first)
        .find(|port| TcpListener::bind((address, *port)).is_ok())
        .with_context(|| format!("no port of {address} is free"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_that_is_taken_is_not_free() {
        let first = anywhere().unwrap();
        assert!(PORTS.contains(&first));
        let mut all = PORTS;
        let listener = all.find_map(|port| TcpListener::bind(("127.0.0.1", port)).ok());
        let listener = listener.unwrap();
        let taken = listener.local_addr().unwrap().port();
        let free = free_port("127.0.0.1", taken).unwrap();
        assert!(PORTS.contains(&free) && free != taken, "{free}");
    }
}
