//! `IPVS_DEST_ATTR_*`: a real server.

use std::net::SocketAddr;

use super::service::{address_bytes, family_number, need, read_address, read_family};
use super::unknown::{borrowed, owned};
use super::value::{NetworkU16, Raw};
use super::{DecodeError, stats};
use crate::{Destination, DestinationEntry, Family, Forward, Tunnel, TunnelFlags, TunnelKind};

/// `IP_VS_CONN_F_*`, the forwarding methods.
const MASQ: u32 = 0;
const LOCALNODE: u32 = 1;
const TUNNEL: u32 = 2;
const DROUTE: u32 = 3;
const BYPASS: u32 = 4;

/// `IP_VS_CONN_F_TUNNEL_TYPE_*`.
const TYPE_IPIP: u8 = 0;
const TYPE_GUE: u8 = 1;
const TYPE_GRE: u8 = 2;

attribute_table! {
    /// The attributes of a destination, in the order in which `ipvsadm` sends them.
    DestinationAttributes {
        IPVS_DEST_ATTR_ADDR_FAMILY = 11 => family: u16,
        IPVS_DEST_ATTR_ADDR = 1 => address: [u8; 16],
        IPVS_DEST_ATTR_PORT = 2 => port: NetworkU16,
        IPVS_DEST_ATTR_FWD_METHOD = 3 => method: u32,
        IPVS_DEST_ATTR_WEIGHT = 4 => weight: u32,
        IPVS_DEST_ATTR_TUN_TYPE = 13 => tunnel_type: u8,
        IPVS_DEST_ATTR_TUN_PORT = 14 => tunnel_port: NetworkU16,
        IPVS_DEST_ATTR_TUN_FLAGS = 15 => tunnel_flags: u16,
        IPVS_DEST_ATTR_U_THRESH = 5 => upper_threshold: u32,
        IPVS_DEST_ATTR_L_THRESH = 6 => lower_threshold: u32,
        IPVS_DEST_ATTR_ACTIVE_CONNS = 7 => active: u32,
        IPVS_DEST_ATTR_INACT_CONNS = 8 => inactive: u32,
        IPVS_DEST_ATTR_PERSIST_CONNS = 9 => persistent: u32,
        IPVS_DEST_ATTR_STATS = 10 => stats: Raw<'a>,
        IPVS_DEST_ATTR_STATS64 = 12 => stats64: Raw<'a>,
    }
}

impl DestinationAttributes<'_> {
    /// What the kernel needs to find a destination in its service.
    pub(crate) fn key(id: SocketAddr) -> Self {
        Self {
            family: Some(family_number(Family::of(id.ip()))),
            address: Some(address_bytes(id.ip())),
            port: Some(NetworkU16(id.port())),
            ..Self::default()
        }
    }
}

impl<'a> DestinationAttributes<'a> {
    /// What the kernel needs to make or change a destination.
    pub(crate) fn full(destination: &'a Destination) -> Self {
        let (method, tunnel) = match destination.forward {
            Forward::Masquerade => (MASQ, None),
            Forward::Local => (LOCALNODE, None),
            Forward::Tunnel(tunnel) => (TUNNEL, Some(tunnel)),
            Forward::Route => (DROUTE, None),
            Forward::Bypass => (BYPASS, None),
            Forward::Other(method) => (method, None),
        };
        Self {
            method: Some(method),
            weight: Some(destination.weight),
            tunnel_type: tunnel.map(|tunnel| kind_number(tunnel.kind)),
            tunnel_port: tunnel.map(|tunnel| NetworkU16(tunnel.port)),
            tunnel_flags: tunnel.map(|tunnel| tunnel.flags.bits()),
            upper_threshold: Some(destination.upper_threshold),
            lower_threshold: Some(destination.lower_threshold),
            unknown: borrowed(&destination.unknown),
            ..DestinationAttributes::key(destination.id())
        }
    }

    fn forward(&self) -> Result<Forward, DecodeError> {
        Ok(match need(self.method, "IPVS_DEST_ATTR_FWD_METHOD")? {
            MASQ => Forward::Masquerade,
            LOCALNODE => Forward::Local,
            // Kernels before 5.3 know IPIP only and send no tunnel attributes.
            TUNNEL => Forward::Tunnel(Tunnel {
                kind: read_kind(self.tunnel_type.unwrap_or(TYPE_IPIP)),
                port: self.tunnel_port.map_or(0, |port| port.0),
                flags: TunnelFlags::from_bits(self.tunnel_flags.unwrap_or(0)),
            }),
            DROUTE => Forward::Route,
            BYPASS => Forward::Bypass,
            other => Forward::Other(other),
        })
    }
}

/// What the kernel finds the destination by. `service` is the family of its service, which is the destination's where
/// nothing else is said (kernels before 3.18).
pub(crate) fn id(
    table: &DestinationAttributes<'_>,
    service: Family,
) -> Result<SocketAddr, DecodeError> {
    let family = match table.family.filter(|family| *family != 0) {
        Some(number) => read_family(number, "IPVS_DEST_ATTR_ADDR_FAMILY")?,
        None => service,
    };
    let address = read_address(family, need(table.address, "IPVS_DEST_ATTR_ADDR")?);
    Ok(SocketAddr::new(
        address,
        need(table.port, "IPVS_DEST_ATTR_PORT")?.0,
    ))
}

/// The destination in an answer of the kernel, or in a request that makes or changes one.
pub(crate) fn entry(
    table: &DestinationAttributes<'_>,
    service: Family,
) -> Result<DestinationEntry, DecodeError> {
    let id = id(table, service)?;
    let destination = Destination {
        address: id.ip(),
        port: id.port(),
        forward: table.forward()?,
        weight: need(table.weight, "IPVS_DEST_ATTR_WEIGHT")?,
        upper_threshold: table.upper_threshold.unwrap_or(0),
        lower_threshold: table.lower_threshold.unwrap_or(0),
        unknown: owned(&table.unknown),
    };
    Ok(DestinationEntry {
        destination,
        active: table.active.unwrap_or(0),
        inactive: table.inactive.unwrap_or(0),
        persistent: table.persistent.unwrap_or(0),
        stats: stats::read(table.stats64, table.stats)?,
    })
}

const fn kind_number(kind: TunnelKind) -> u8 {
    match kind {
        TunnelKind::Ipip => TYPE_IPIP,
        TunnelKind::Gue => TYPE_GUE,
        TunnelKind::Gre => TYPE_GRE,
        TunnelKind::Other(number) => number,
    }
}

const fn read_kind(number: u8) -> TunnelKind {
    match number {
        TYPE_IPIP => TunnelKind::Ipip,
        TYPE_GUE => TunnelKind::Gue,
        TYPE_GRE => TunnelKind::Gre,
        other => TunnelKind::Other(other),
    }
}
