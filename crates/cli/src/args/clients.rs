//! How clients are recognized and masqueraded, as in kube-proxy (KP-CF-23, KP-CF-30, KP-CF-31).

use agent::agent_config::DetectLocal;
use clap::{Args, ValueEnum};
use dataplane::nftables::{LinkName, Links};
use topology_core::model::IpNetwork;

use super::values;
use crate::exit::Failure;

/// How packets of this node's pods are recognized.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "PascalCase")]
pub enum DetectLocalMode {
    /// By `--cluster-cidr`.
    #[default]
    #[value(name = "ClusterCIDR")]
    ClusterCidr,
    /// By `spec.podCIDRs` of this Node.
    #[value(name = "NodeCIDR")]
    NodeCidr,
    /// By the link of `--pod-bridge-interface`.
    BridgeInterface,
    /// By the links of `--pod-interface-name-prefix`.
    InterfaceNamePrefix,
}

#[derive(Debug, Clone, PartialEq, Args)]
pub struct ClientArgs {
    /// The address ranges of the cluster's pods. Default: `spec.podCIDRs` of this Node.
    // Of two such flags the last one counts, as in kube-proxy.
    #[arg(long, value_name = "CIDR", value_delimiter = ',', action = clap::ArgAction::Set, value_parser = values::cidr)]
    pub cluster_cidr: Vec<IpNetwork>,

    /// How packets of this node's pods are recognized: other connections to cluster IPs are
    /// masqueraded.
    #[arg(long, value_enum, value_name = "MODE", default_value_t)]
    pub detect_local_mode: DetectLocalMode,

    /// The bridge of this node's pods, for the mode `BridgeInterface`.
    #[arg(long, value_name = "LINK")]
    pub pod_bridge_interface: Option<LinkName>,

    /// The beginning of the names of the pods' links on this node, for the mode
    /// `InterfaceNamePrefix`.
    #[arg(long, value_name = "PREFIX")]
    pub pod_interface_name_prefix: Option<LinkName>,

    /// Masquerade every connection to a cluster IP.
    #[arg(
        long,
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_value_t = false,
        default_missing_value = "true",
        value_parser = values::boolean
    )]
    pub masquerade_all: bool,
}

impl ClientArgs {
    /// The mode with its name.
    ///
    /// # Errors
    /// The name that the mode needs is missing.
    pub fn detect_local(&self) -> Result<DetectLocal, Failure> {
        let needs = |name: &Option<LinkName>, mode: &str, flag: &str, field: &str| {
            name.clone().ok_or_else(|| {
                let field = format!("detectLocal.{field} in the file of --config");
                Failure::input(format_args!("the mode {mode} needs {flag}, or {field}"))
            })
        };
        Ok(match self.detect_local_mode {
            DetectLocalMode::ClusterCidr => DetectLocal::ClusterCidr,
            DetectLocalMode::NodeCidr => DetectLocal::NodeCidr,
            DetectLocalMode::BridgeInterface => DetectLocal::Links(Links::Named(needs(
                &self.pod_bridge_interface,
                "BridgeInterface",
                "--pod-bridge-interface",
                "bridgeInterface",
            )?)),
            DetectLocalMode::InterfaceNamePrefix => DetectLocal::Links(Links::WithPrefix(needs(
                &self.pod_interface_name_prefix,
                "InterfaceNamePrefix",
                "--pod-interface-name-prefix",
                "interfaceNamePrefix",
            )?)),
        })
    }
}
