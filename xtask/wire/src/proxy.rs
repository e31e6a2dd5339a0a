//! Names the node proxies that `cargo xtask bench --kubernetes` compares.

/// A node proxy, as both command lines name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum ProxyKind {
    /// This project's agent.
    IpvsTopo,
    /// kube-proxy in ipvs mode.
    Ipvs,
    /// kube-proxy in nftables mode.
    Nftables,
}

impl ProxyKind {
    /// The name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::IpvsTopo => "ipvs-topo",
            Self::Ipvs => "kube-proxy ipvs",
            Self::Nftables => "kube-proxy nftables",
        }
    }
}
