//! `IPVS_DAEMON_ATTR_*`: a synchronisation daemon.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::{Daemon, DaemonState};
use netlink_pipeline::{DecodeError, Writer, attribute_table, require};

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

/// Appends the key of a daemon.
pub(super) fn write_key(state: DaemonState, out: &mut Writer<'_>) {
    let number = match state {
        DaemonState::Primary => MASTER,
        DaemonState::Backup => BACKUP,
        DaemonState::Other(number) => number,
    };
    out.fixed(IPVS_DAEMON_ATTR_STATE, number.to_ne_bytes());
}

/// Appends the attributes that start a daemon, in the order in which `ipvsadm` sends them.
pub(super) fn write(daemon: &Daemon, out: &mut Writer<'_>) {
    write_key(daemon.state, out);
    out.text(IPVS_DAEMON_ATTR_MCAST_IFN, &daemon.interface);
    out.fixed(IPVS_DAEMON_ATTR_SYNC_ID, daemon.sync_id.to_ne_bytes());
    if let Some(length) = daemon.max_length {
        out.fixed(IPVS_DAEMON_ATTR_SYNC_MAXLEN, length.to_ne_bytes());
    }
    match daemon.group {
        Some(IpAddr::V4(group)) => out.fixed(IPVS_DAEMON_ATTR_MCAST_GROUP, group.octets()),
        Some(IpAddr::V6(group)) => out.fixed(IPVS_DAEMON_ATTR_MCAST_GROUP6, group.octets()),
        None => {}
    }
    if let Some(port) = daemon.port {
        out.fixed(IPVS_DAEMON_ATTR_MCAST_PORT, port.to_ne_bytes());
    }
    if let Some(ttl) = daemon.ttl {
        out.fixed(IPVS_DAEMON_ATTR_MCAST_TTL, [ttl]);
    }
    out.unknown(&daemon.unknown);
}

/// Decodes the daemon's role.
pub(crate) fn state(table: &DaemonAttributes<'_>) -> Result<DaemonState, DecodeError> {
    Ok(match require(table.state, "IPVS_DAEMON_ATTR_STATE")? {
        MASTER => DaemonState::Primary,
        BACKUP => DaemonState::Backup,
        other => DaemonState::Other(other),
    })
}

/// Decodes the daemon in a reply, or in a request that starts one.
pub(crate) fn entry(table: &DaemonAttributes<'_>) -> Result<Daemon, DecodeError> {
    let group4 = table.group4.map(|bytes| Ipv4Addr::from(bytes).into());
    let group6 = table.group6.map(|bytes| Ipv6Addr::from(bytes).into());
    let interface = require(table.interface.as_deref(), "IPVS_DAEMON_ATTR_MCAST_IFN")?;
    Ok(Daemon {
        state: state(table)?,
        interface: interface.to_owned(),
        sync_id: require(table.sync_id, "IPVS_DAEMON_ATTR_SYNC_ID")?,
        max_length: table.max_length,
        group: group6.or(group4),
        port: table.port,
        ttl: table.ttl,
        unknown: table.unknown.as_slice().into(),
    })
}
