//! The connection synchronisation daemons.

use std::net::IpAddr;

use crate::UnknownAttributes;

/// The role of a synchronisation daemon. Both may run at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum DaemonState {
    /// Sends connections to the others (`ipvsadm --start-daemon master`).
    Primary,
    /// Receives connections (`ipvsadm --start-daemon backup`).
    Backup,
    /// A state that this version of the crate has no name for.
    Other(u32),
}

/// A synchronisation daemon: how it runs, or how it is to be started.
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
    /// The role.
    pub state: DaemonState,
    /// The multicast interface's name, at most 15 bytes.
    pub interface: String,
    /// Only daemons with the same number talk to each other; 0 to 255, 0 accepts all in the backup role.
    pub sync_id: u32,
    /// UDP payload bytes of one message; the kernel chooses by the interface's MTU when absent.
    pub max_length: Option<u16>,
    /// The multicast group; 224.0.0.81 when absent.
    pub group: Option<IpAddr>,
    /// The UDP port; 8848 when absent.
    pub port: Option<u16>,
    /// The time to live of messages; 1 when absent.
    pub ttl: Option<u8>,
    /// Attributes that this version of the crate has no name for, kept for the way back.
    pub unknown: UnknownAttributes,
}

impl Daemon {
    /// A daemon on an interface, everything else left to the kernel.
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
