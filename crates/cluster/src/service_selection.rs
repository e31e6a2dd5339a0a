//! Which Services a consumer of the snapshot uses.

/// Which Services a consumer of the snapshot uses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ServiceSelection {
    /// Those that this node proxy serves: with a cluster IP, and not left to another proxy.
    #[default]
    Proxied,
    /// Those that this node proxy serves, and headless ones: a simulation of both.
    ProxiedAndHeadless,
    /// All, for DNS: also headless Services, those of type `ExternalName` and those of
    /// other proxies. Slices have the hostnames of their endpoints.
    All,
}
