//! `IPVS_DAEMON_ATTR_*`: a synchronisation daemon.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::DecodeError;
use super::service::need;
use super::unknown::{borrowed, owned};
use crate::{Daemon, DaemonState};

/// `IP_VS_STATE_MASTER` and `IP_VS_STATE_BACKUP`.
const MASTER: u32 = 1;
const BACKUP: u32 = 2;

attribute_table! {
    /// The attributes of a daemon, in the order in which `ipvsadm` sends them.
    DaemonAttributes {
        IPVS_DAEMON_ATTR_STATE = 1 => state: u32,
        IPVS_DAEMON_ATTR_MCAST_IFN = 2 => interface: Cow<'a, str>,
        IPVS_DAEMON_ATTR_SYNC_ID = 3 => sync_id: u32,
        IPVS_DAEMON_ATTR_SYNC_MAXLEN = 4 => max_length: u16,
        IPVS_DAEMON_ATTR_MCAST_GROUP = 5 => group4: [u8; 4],
        IPVS_DAEMON_ATTR_MCAST_GROUP6 = 6 => group6: [u8; 16],
        IPVS_DAEMON_ATTR_MCAST_PORT = 7 => port: u16,
        IPVS_DAEMON_ATTR_MCAST_TTL = 8 => ttl: u8,
    }
}

impl DaemonAttributes<'_> {
    /// What the kernel needs to find a daemon.
    pub(crate) fn key(state: DaemonState) -> Self {
        Self {
            state: Some(match state {
                DaemonState::Primary => MASTER,
                DaemonState::Backup => BACKUP,
                DaemonState::Other(number) => number,
            }),
            ..Self::default()
        }
    }
}

impl<'a> DaemonAttributes<'a> {
    /// What the kernel needs to start a daemon.
    pub(crate) fn full(daemon: &'a Daemon) -> Self {
        let (group4, group6) = match daemon.group {
            Some(IpAddr::V4(group)) => (Some(group.octets()), None),
            Some(IpAddr::V6(group)) => (None, Some(group.octets())),
            None => (None, None),
        };
        Self {
            interface: Some(Cow::Borrowed(&daemon.interface)),
            sync_id: Some(daemon.sync_id),
            max_length: daemon.max_length,
            group4,
            group6,
            port: daemon.port,
            ttl: daemon.ttl,
            unknown: borrowed(&daemon.unknown),
            ..DaemonAttributes::key(daemon.state)
        }
    }
}

/// The daemon's role.
pub(crate) fn state(table: &DaemonAttributes<'_>) -> Result<DaemonState, DecodeError> {
    Ok(match need(table.state, "IPVS_DAEMON_ATTR_STATE")? {
        MASTER => DaemonState::Primary,
        BACKUP => DaemonState::Backup,
        other => DaemonState::Other(other),
    })
}

/// The daemon in an answer of the kernel, or in a request that starts one.
pub(crate) fn entry(table: &DaemonAttributes<'_>) -> Result<Daemon, DecodeError> {
    let group4 = table.group4.map(|bytes| Ipv4Addr::from(bytes).into());
    let group6 = table.group6.map(|bytes| Ipv6Addr::from(bytes).into());
    let interface = need(table.interface.as_deref(), "IPVS_DAEMON_ATTR_MCAST_IFN")?;
    Ok(Daemon {
        state: state(table)?,
        interface: interface.to_owned(),
        sync_id: need(table.sync_id, "IPVS_DAEMON_ATTR_SYNC_ID")?,
        max_length: table.max_length,
        group: group6.or(group4),
        port: table.port,
        ttl: table.ttl,
        unknown: owned(&table.unknown),
    })
}
