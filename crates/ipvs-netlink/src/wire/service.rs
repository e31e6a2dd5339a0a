//! `IPVS_SVC_ATTR_*`: a virtual service.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use netlink_pipeline::{
    AttributeValue, DecodeError, NetworkU16, Raw, Writer, attribute_table, require,
};

use super::address::InetAddress;
use super::stats;
use crate::{Family, Netmask, Protocol, Service, ServiceEntry, ServiceFlags, ServiceId};

/// `AF_INET` and `AF_INET6`.
const AF_INET: u16 = 2;
const AF_INET6: u16 = 10;

/// Sets all flags. The kernel keeps its own bookkeeping bits itself.
const EVERY_FLAG: u32 = u32::MAX;

attribute_table! {
    /// The attributes of a service, in the order in which `ipvsadm` sends them.
    ServiceAttributes {
        IPVS_SVC_ATTR_AF = 1 => family: u16,
        IPVS_SVC_ATTR_FWMARK = 5 => mark: u32,
        IPVS_SVC_ATTR_PROTOCOL = 2 => protocol: u16,
        IPVS_SVC_ATTR_ADDR = 3 => address: InetAddress,
        IPVS_SVC_ATTR_PORT = 4 => port: NetworkU16,
        IPVS_SVC_ATTR_SCHED_NAME = 6 => scheduler: Cow<'a, str>,
        IPVS_SVC_ATTR_PE_NAME = 11 => engine: Cow<'a, str>,
        IPVS_SVC_ATTR_FLAGS = 7 => flags: FlagsAndMask,
        IPVS_SVC_ATTR_TIMEOUT = 8 => timeout: u32,
        IPVS_SVC_ATTR_NETMASK = 9 => netmask: [u8; 4],
        IPVS_SVC_ATTR_STATS = 10 => stats: Raw<'a>,
        IPVS_SVC_ATTR_STATS64 = 12 => stats64: Raw<'a>,
    }
}

/// `struct ip_vs_flags`: the flags, and the mask of those to set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FlagsAndMask {
    flags: u32,
    mask: u32,
}

impl AttributeValue<'_> for FlagsAndMask {
    fn read(bytes: &[u8], what: &'static str) -> Result<Self, DecodeError> {
        let flags = u32::read(bytes, what)?;
        let mask = u32::read(bytes.get(4..).unwrap_or_default(), what)?;
        Ok(Self { flags, mask })
    }
}

/// Appends the key of a service.
pub(super) fn write_key(id: &ServiceId, out: &mut Writer<'_>) {
    let family = family_number(id.family()).to_ne_bytes();
    out.fixed(IPVS_SVC_ATTR_AF, family);
    match *id {
        ServiceId::Address {
            protocol,
            address,
            port,
        } => {
            out.fixed(IPVS_SVC_ATTR_PROTOCOL, protocol.number().to_ne_bytes());
            out.fixed(IPVS_SVC_ATTR_ADDR, address_bytes(address));
            out.fixed(IPVS_SVC_ATTR_PORT, port.to_be_bytes());
        }
        ServiceId::FirewallMark { mark, .. } => {
            out.fixed(IPVS_SVC_ATTR_FWMARK, mark.to_ne_bytes());
        }
    }
}

/// Appends the attributes that create or change a service, in the order in which `ipvsadm` sends them.
pub(super) fn write(service: &Service, out: &mut Writer<'_>) {
    write_key(&service.id, out);
    out.text(IPVS_SVC_ATTR_SCHED_NAME, &service.scheduler);
    if let Some(engine) = &service.persistence_engine {
        out.text(IPVS_SVC_ATTR_PE_NAME, engine);
    }
    let [f0, f1, f2, f3] = service.flags.bits().to_ne_bytes();
    let [m0, m1, m2, m3] = EVERY_FLAG.to_ne_bytes();
    out.fixed(IPVS_SVC_ATTR_FLAGS, [f0, f1, f2, f3, m0, m1, m2, m3]);
    out.fixed(IPVS_SVC_ATTR_TIMEOUT, service.timeout.to_ne_bytes());
    let netmask = match service.netmask {
        Netmask::V4(mask) => mask.octets(),
        // The kernel reads the number in host order, although the attribute is called `__be32`.
        Netmask::V6(length) => length.to_ne_bytes(),
    };
    out.fixed(IPVS_SVC_ATTR_NETMASK, netmask);
    out.unknown(&service.unknown);
}

/// Decodes the key of the service.
pub(crate) fn id(table: &ServiceAttributes<'_>) -> Result<ServiceId, DecodeError> {
    let family = read_family(
        require(table.family, "IPVS_SVC_ATTR_AF")?,
        "IPVS_SVC_ATTR_AF",
    )?;
    Ok(match table.mark.filter(|mark| *mark != 0) {
        Some(mark) => ServiceId::FirewallMark { family, mark },
        None => ServiceId::Address {
            protocol: Protocol::new(require(table.protocol, "IPVS_SVC_ATTR_PROTOCOL")?),
            address: read_address(family, require(table.address, "IPVS_SVC_ATTR_ADDR")?),
            port: require(table.port, "IPVS_SVC_ATTR_PORT")?.0,
        },
    })
}

/// Decodes the service in a reply, or in a request that creates or changes one.
pub(crate) fn entry(table: &ServiceAttributes<'_>) -> Result<ServiceEntry, DecodeError> {
    let id = id(table)?;
    let netmask = require(table.netmask, "IPVS_SVC_ATTR_NETMASK")?;
    let scheduler = require(table.scheduler.as_deref(), "IPVS_SVC_ATTR_SCHED_NAME")?;
    let service = Service {
        id,
        scheduler: scheduler.to_owned(),
        flags: ServiceFlags::from_bits(require(table.flags, "IPVS_SVC_ATTR_FLAGS")?.flags),
        timeout: require(table.timeout, "IPVS_SVC_ATTR_TIMEOUT")?,
        netmask: match id.family() {
            Family::V4 => Netmask::V4(Ipv4Addr::from(netmask)),
            Family::V6 => Netmask::V6(u32::from_ne_bytes(netmask)),
        },
        persistence_engine: table.engine.as_deref().map(str::to_owned),
        unknown: table.unknown.as_slice().into(),
    };
    Ok(ServiceEntry {
        service,
        stats: stats::read(table.stats64, table.stats)?,
    })
}

pub(super) const fn family_number(family: Family) -> u16 {
    match family {
        Family::V4 => AF_INET,
        Family::V6 => AF_INET6,
    }
}

pub(super) fn read_family(number: u16, what: &'static str) -> Result<Family, DecodeError> {
    match number {
        AF_INET => Ok(Family::V4),
        AF_INET6 => Ok(Family::V6),
        _ => Err(DecodeError::Value {
            what,
            value: number.into(),
        }),
    }
}

/// Encodes an address in the kernel's field for both families.
pub(super) fn address_bytes(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) => {
            let [a, b, c, d] = address.octets();
            [a, b, c, d, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
        }
        IpAddr::V6(address) => address.octets(),
    }
}

pub(super) fn read_address(family: Family, InetAddress(bytes): InetAddress) -> IpAddr {
    match (family, bytes) {
        (Family::V4, [a, b, c, d, ..]) => Ipv4Addr::new(a, b, c, d).into(),
        (Family::V6, bytes) => Ipv6Addr::from(bytes).into(),
    }
}
