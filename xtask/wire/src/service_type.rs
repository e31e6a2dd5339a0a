//! Names the types of the Services of a measured cluster.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The `spec.type` of Services, as command lines and Kubernetes name it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
pub enum ServiceType {
    /// Only a cluster IP.
    #[default]
    #[serde(rename = "ClusterIP")]
    #[value(name = "ClusterIP")]
    ClusterIp,
    /// Also a node port.
    #[value(name = "NodePort")]
    NodePort,
    /// Also a node port and a load balancer address.
    #[value(name = "LoadBalancer")]
    LoadBalancer,
}

impl fmt::Display for ServiceType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ClusterIp => "ClusterIP",
            Self::NodePort => "NodePort",
            Self::LoadBalancer => "LoadBalancer",
        })
    }
}

impl ServiceType {
    /// Returns the number of addresses and ports at which one port of a Service is reached on one node address.
    pub const fn frontends(self) -> u32 {
        match self {
            Self::ClusterIp => 1,
            Self::NodePort => 2,
            Self::LoadBalancer => 3,
        }
    }
}
