//! `IPVS_DEST_ATTR_*`: a real server.

use std::net::SocketAddr;

use super::address::InetAddress;
use super::service::{address_bytes, family_number, read_address, read_family};
use super::stats;
use crate::{Destination, DestinationEntry, Family, Forward, Tunnel, TunnelFlags, TunnelKind};
use netlink_pipeline::{DecodeError, NetworkU16, Raw, Writer, attribute_table, require};

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
        IPVS_DEST_ATTR_ADDR = 1 => address: InetAddress,
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

/// Appends the key of a destination within its service.
pub(super) fn write_key(id: SocketAddr, out: &mut Writer<'_>) {
    let family = family_number(Family::of(id.ip())).to_ne_bytes();
    out.fixed(IPVS_DEST_ATTR_ADDR_FAMILY, family);
    out.fixed(IPVS_DEST_ATTR_ADDR, address_bytes(id.ip()));
    out.fixed(IPVS_DEST_ATTR_PORT, id.port().to_be_bytes());
}

/// Appends the attributes that create or change a destination, in the order in which `ipvsadm` sends them.
pub(super) fn write(destination: &Destination, out: &mut Writer<'_>) {
    write_key(destination.id(), out);
    let method = method_number(destination.forward);
    out.fixed(IPVS_DEST_ATTR_FWD_METHOD, method.to_ne_bytes());
    out.fixed(IPVS_DEST_ATTR_WEIGHT, destination.weight.to_ne_bytes());
    if let Forward::Tunnel(tunnel) = destination.forward {
        out.fixed(IPVS_DEST_ATTR_TUN_TYPE, [kind_number(tunnel.kind)]);
        out.fixed(IPVS_DEST_ATTR_TUN_PORT, tunnel.port.to_be_bytes());
        out.fixed(IPVS_DEST_ATTR_TUN_FLAGS, tunnel.flags.bits().to_ne_bytes());
    }
    let (upper, lower) = (destination.upper_threshold, destination.lower_threshold);
    out.fixed(IPVS_DEST_ATTR_U_THRESH, upper.to_ne_bytes());
    out.fixed(IPVS_DEST_ATTR_L_THRESH, lower.to_ne_bytes());
    out.unknown(&destination.unknown);
}

const fn method_number(forward: Forward) -> u32 {
    match forward {
        Forward::Masquerade => MASQ,
        Forward::Local => LOCALNODE,
        Forward::Tunnel(_) => TUNNEL,
        Forward::Route => DROUTE,
        Forward::Bypass => BYPASS,
        Forward::Other(method) => method,
    }
}

impl DestinationAttributes<'_> {
    fn forward(&self) -> Result<Forward, DecodeError> {
        Ok(match require(self.method, "IPVS_DEST_ATTR_FWD_METHOD")? {
            MASQ => Forward::Masquerade,
            LOCALNODE => Forward::Local,
            // Kernels before 5.3 support IPIP only and send no tunnel attributes.
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

/// Decodes the key of the destination. `service` is the family of its service; it is the destination's family, too, if
/// there is no attribute for it (kernels before 3.18).
pub(crate) fn id(
    table: &DestinationAttributes<'_>,
    service: Family,
) -> Result<SocketAddr, DecodeError> {
    let family = match table.family.filter(|family| *family != 0) {
        Some(number) => read_family(number, "IPVS_DEST_ATTR_ADDR_FAMILY")?,
        None => service,
    };
    let address = read_address(family, require(table.address, "IPVS_DEST_ATTR_ADDR")?);
    Ok(SocketAddr::new(
        address,
        require(table.port, "IPVS_DEST_ATTR_PORT")?.0,
    ))
}

/// Decodes the destination in a reply, or in a request that creates or changes one.
pub(crate) fn entry(
    table: &DestinationAttributes<'_>,
    service: Family,
) -> Result<DestinationEntry, DecodeError> {
    let id = id(table, service)?;
    let destination = Destination {
        address: id.ip(),
        port: id.port(),
        forward: table.forward()?,
        weight: require(table.weight, "IPVS_DEST_ATTR_WEIGHT")?,
        upper_threshold: table.upper_threshold.unwrap_or(0),
        lower_threshold: table.lower_threshold.unwrap_or(0),
        unknown: table.unknown.as_slice().into(),
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
