//! Encodes the kernel's tables as netlink messages for the bare loop, and stores them in a file.

use std::fs;
use std::net::IpAddr;
use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};
use ipvs_netlink::{Client, Command, ServiceId};
use netlink_pipeline::{Datagram, Limits, Request};

use super::bare_socket::EncodedDatagram;

/// `IPVS_CMD_GET_SERVICE` of `linux/ip_vs.h`.
const GET_SERVICE: u8 = 4;
/// `IPVS_CMD_GET_DEST` of `linux/ip_vs.h`.
const GET_DEST: u8 = 8;
/// `IPVS_GENL_VERSION` of `linux/ip_vs.h`.
const VERSION: u8 = 1;
/// `IPVS_CMD_ATTR_SERVICE` of `linux/ip_vs.h`.
const ATTR_SERVICE: u16 = 1;
/// `NLM_F_DUMP` of `linux/netlink.h`.
const FLAG_DUMP: u16 = 0x300;
/// `AF_INET` of `linux/socket.h`.
const AF_INET: u16 = 2;
/// Bytes of the length before each datagram in the file.
const LENGTH: usize = 4;

/// Encodes the messages that make an empty kernel equal to this one, and counts the commands in them.
///
/// Virtual servers are sorted by address, each followed by its real servers.
pub(crate) fn capture() -> Result<(Vec<EncodedDatagram>, u64)> {
    let mut client = Client::open()?;
    let mut entries = client.dump()?;
    entries.sort_by_key(|(entry, _)| entry.service.id);
    let mut commands = Vec::new();
    for (entry, destinations) in entries {
        let id = entry.service.id;
        commands.push(Command::NewService(entry.service));
        let reals = destinations.into_iter().map(|entry| entry.destination);
        commands.extend(reals.map(|real| Command::NewDest(id, real)));
    }
    let datagrams = client
        .encode(&commands, 1)
        .into_iter()
        .map(EncodedDatagram::new);
    Ok((datagrams.collect(), u64::try_from(commands.len())?))
}

/// Encodes the requests of a full dump: the virtual servers, then the real servers of each.
pub(crate) fn dump_requests() -> Result<Vec<EncodedDatagram>> {
    let mut client = Client::open()?;
    let family = client.family_id();
    let mut sequence = 1;
    let mut requests = vec![request(family, sequence, |out| {
        out.bytes(&[GET_SERVICE, VERSION, 0, 0]);
    })?];
    for entry in client.services()? {
        sequence += 1;
        let ServiceId::Address {
            protocol,
            address: IpAddr::V4(address),
            port,
        } = entry.service.id
        else {
            bail!("{:?} is not one of the made-up Services", entry.service.id);
        };
        requests.push(request(family, sequence, |out| {
            out.bytes(&[GET_DEST, VERSION, 0, 0]);
            out.nested(ATTR_SERVICE, |out| {
                // IPVS_SVC_ATTR_AF, _PROTOCOL, _ADDR (a union of 16 bytes) and _PORT.
                out.attribute(1, &AF_INET.to_ne_bytes());
                out.attribute(2, &protocol.number().to_ne_bytes());
                let mut union = [0; 16];
                union[..4].copy_from_slice(&address.octets());
                out.attribute(3, &union);
                out.attribute(4, &port.to_be_bytes());
            });
        })?);
    }
    Ok(requests)
}

fn request(
    family: u16,
    sequence: u32,
    fill: impl FnOnce(&mut netlink_pipeline::Writer<'_>),
) -> Result<EncodedDatagram> {
    let mut datagram = Datagram::new(Limits::default(), usize::MAX);
    datagram.push(Request::new(family, FLAG_DUMP), fill)?;
    Ok(EncodedDatagram::new(datagram.seal(sequence).to_vec()))
}

/// Writes datagrams to a file.
pub(crate) fn write(path: &Path, datagrams: &[EncodedDatagram]) -> Result<()> {
    let mut file = Vec::new();
    for datagram in datagrams {
        file.extend(u32::try_from(datagram.bytes.len())?.to_ne_bytes());
        file.extend(&datagram.bytes);
    }
    fs::write(path, file).with_context(|| path.display().to_string())
}

/// Reads the file that [`write()`] wrote.
pub(crate) fn read(path: &Path) -> Result<Vec<EncodedDatagram>> {
    let file = fs::read(path).with_context(|| path.display().to_string())?;
    let mut rest = file.as_slice();
    let mut datagrams = Vec::new();
    while let Some((length, behind)) = rest.split_first_chunk::<LENGTH>() {
        let length = usize::try_from(u32::from_ne_bytes(*length))?;
        ensure!(length <= behind.len(), "{} is cut short", path.display());
        let (bytes, behind) = behind.split_at(length);
        datagrams.push(EncodedDatagram::new(bytes.to_vec()));
        rest = behind;
    }
    Ok(datagrams)
}

#[cfg(test)]
mod tests {
    use ipvs_netlink::{Destination, Protocol, Service, codec};

    use super::*;

    #[test]
    fn datagrams_in_a_file_are_read_unchanged() {
        let id = ServiceId::address(Protocol::TCP, "10.96.0.16".parse().unwrap(), 80);
        let mut commands = vec![Command::NewService(Service::new(id, "wrr"))];
        for host in 1..=250_u8 {
            let real = Destination::new(IpAddr::from([10, 128, 0, host]), 8080, 1);
            commands.push(Command::NewDest(id, real));
        }
        let datagrams: Vec<_> = codec::encode(&commands, 0x1c, Limits::default(), 1)
            .into_iter()
            .map(EncodedDatagram::new)
            .collect();
        assert_eq!(
            datagrams.last().unwrap().last,
            251,
            "the last sequence number"
        );
        let path = std::env::temp_dir().join(format!("messages-{}", std::process::id()));
        write(&path, &datagrams).unwrap();
        let again = read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        assert_eq!(again, datagrams);
    }
}
