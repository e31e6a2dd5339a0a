//! The connection synchronisation daemons.

use std::net::IpAddr;

use crate::UnknownAttributes;

/// The role of a synchronisation daemon. Both may run at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum DaemonState {
    /// Sends connections to backups (`ipvsadm --start-daemon master`).
    Primary,
    /// Receives connections (`ipvsadm --start-daemon backup`).
    Backup,
    /// A role that this version of the crate does not know.
    Other(u32),
}

/// A synchronisation daemon: one that runs, or one to start.
///
/// ```
/// use ipvs_netlink::{Daemon, DaemonState};
///
/// let mut daemon = Daemon::new(DaemonState::Primary, "eth0", 7);
/// daemon.group = Some("224.0.0.81".parse().unwrap());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Daemon {
    /// Whether it sends or receives connections.
    pub state: DaemonState,
    /// Name of the multicast interface, at most 15 bytes.
    pub interface: String,
    /// Only daemons with the same number talk to each other; 0 to 255. In the backup role 0 accepts all.
    pub sync_id: u32,
    /// Most UDP payload bytes of one message; if absent, the kernel derives it from the interface's MTU.
    pub max_length: Option<u16>,
    /// The multicast group; 224.0.0.81 if absent.
    pub group: Option<IpAddr>,
    /// The UDP port; 8848 if absent.
    pub port: Option<u16>,
    /// The time to live of messages; 1 if absent.
    pub ttl: Option<u8>,
    /// Attributes that this version of the crate does not know, written back unchanged.
    pub unknown: UnknownAttributes,
}

impl Daemon {
    /// A daemon on an interface, with the kernel's defaults for everything else.
    pub fn new(state: DaemonState, interface: impl Into<String>, sync_id: u32) -> Self {
        Self {
            state,
            interface: interface.into(),
            sync_id,
            max_length: None,
            group: None,
            port: None,
            ttl: None,
            unknown: UnknownAttributes::default(),
        }
    }
}

impl std::fmt::Display for DaemonState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Primary => f.write_str("master"),
            Self::Backup => f.write_str("backup"),
            Self::Other(number) => write!(f, "state {number}"),
        }
    }
}
