//! Encodes and decodes IPVS values, for callers that send or capture netlink messages themselves.
//!
//! [`encode`] returns complete datagrams. The `decode_` functions read the payload of one message of the IPVS family,
//! after the 16 bytes of the netlink header: it starts with the generic-netlink header.

use crate::wire::{command, daemon, destination, service, settings};
use crate::{
    Command, Daemon, DestinationEntry, Family, Info, Netmask, ServiceEntry, ServiceId, Timeouts,
};
use netlink_pipeline::{
    Datagram, DecodeError, Limits, Request, Source, Unsendable, generic, require,
};

/// Encodes commands into datagrams, numbered from `first`, with one acknowledgement requested for each datagram.
///
/// `family` is [`Client::family_id`](crate::Client::family_id). Commands that cannot be sent are left out.
///
/// ```
/// use netlink_pipeline::Limits;
/// use ipvs_netlink::{Command, codec};
///
/// let datagrams = codec::encode(&[Command::ZeroAll, Command::Flush], 0x1c, Limits::default(), 1);
/// assert_eq!(datagrams.len(), 1);
/// assert_eq!(datagrams[0].len(), 2 * (16 + 4));
/// ```
pub fn encode(commands: &[Command], family: u16, limits: Limits, first: u32) -> Vec<Vec<u8>> {
    netlink_pipeline::datagrams(&mut CommandSource::new(commands, family), limits, first)
}

/// Decodes the service in a reply to `IPVS_CMD_GET_SERVICE`.
pub fn decode_service(payload: &[u8]) -> Result<ServiceEntry, DecodeError> {
    let table = command::part(
        payload,
        command::IPVS_CMD_ATTR_SERVICE,
        "IPVS_CMD_ATTR_SERVICE",
    )?;
    service::entry(&table)
}

/// Decodes the destination in a reply to `IPVS_CMD_GET_DEST`. `service` is the family of the requested service.
pub fn decode_destination(
    payload: &[u8],
    service: Family,
) -> Result<DestinationEntry, DecodeError> {
    let table = command::part(payload, command::IPVS_CMD_ATTR_DEST, "IPVS_CMD_ATTR_DEST")?;
    destination::entry(&table, service)
}

/// Decodes the daemon in a reply to `IPVS_CMD_GET_DAEMON`.
pub fn decode_daemon(payload: &[u8]) -> Result<Daemon, DecodeError> {
    let table = command::read(payload)?;
    daemon::entry(&require(table.daemon, "IPVS_CMD_ATTR_DAEMON")?)
}

/// Decodes the timeouts in a reply to `IPVS_CMD_GET_CONFIG`.
pub fn decode_timeouts(payload: &[u8]) -> Result<Timeouts, DecodeError> {
    Ok(settings::timeouts(&command::read(payload)?))
}

/// Decodes the version and table size in a reply to `IPVS_CMD_GET_INFO`.
pub fn decode_info(payload: &[u8]) -> Result<Info, DecodeError> {
    settings::info(generic::attributes(payload)?)
}

/// Decodes the command in a request, such as one captured from `ipvsadm`; `None` for a request that only reads.
pub fn decode_command(payload: &[u8]) -> Result<Option<Command>, DecodeError> {
    command::read_command(payload)
}

/// Commands that are being encoded into datagrams.
pub(crate) struct CommandSource<'a> {
    commands: std::slice::Iter<'a, Command>,
    request: Request,
}

impl<'a> CommandSource<'a> {
    pub(crate) fn new(commands: &'a [Command], family: u16) -> Self {
        Self {
            commands: commands.iter(),
            request: Request::new(family, 0),
        }
    }
}

impl Source for CommandSource<'_> {
    fn write_next(&mut self, datagram: &mut Datagram) -> Option<Result<(), Unsendable>> {
        let command = self.commands.next()?;
        Some(
            check(command)
                .and_then(|()| datagram.push(self.request, |out| command::write(command, out))),
        )
    }
}

/// Longest name in bytes: `IP_VS_SCHEDNAME_MAXLEN` and similar limits, without the NUL.
const LONGEST_NAME: usize = 15;

/// Refuses values that the kernel would misinterpret.
fn check(command: &Command) -> Result<(), Unsendable> {
    match command {
        Command::NewService(service) | Command::SetService(service) => {
            check_name(&service.scheduler, "a scheduler's name has 1 to 15 bytes")?;
            if let Some(engine) = &service.persistence_engine {
                check_name(engine, "a persistence engine's name has 1 to 15 bytes")?;
            }
            check_netmask(service.id.family(), service.netmask)?;
            check_key(&service.id)
        }
        Command::NewDaemon(daemon) => {
            check_name(&daemon.interface, "an interface's name has 1 to 15 bytes")
        }
        Command::DelService(id)
        | Command::NewDest(id, _)
        | Command::SetDest(id, _)
        | Command::DelDest(id, _)
        | Command::Zero(id) => check_key(id),
        _ => Ok(()),
    }
}

fn check_name(name: &str, why: &'static str) -> Result<(), Unsendable> {
    let fits = (1..=LONGEST_NAME).contains(&name.len()) && !name.contains('\0');
    fits.then_some(()).ok_or(Unsendable(why))
}

/// Refuses the netmask of the other family: both are one attribute, so the kernel would read an IPv4 mask as a prefix
/// length, or a prefix length as a mask.
fn check_netmask(family: Family, netmask: Netmask) -> Result<(), Unsendable> {
    let is_same = matches!(
        (family, netmask),
        (Family::V4, Netmask::V4(_)) | (Family::V6, Netmask::V6(_))
    );
    is_same.then_some(()).ok_or(Unsendable(
        "the netmask is of another family than the service",
    ))
}

/// Refuses mark 0: the kernel would take the service for one with an address.
fn check_key(id: &ServiceId) -> Result<(), Unsendable> {
    match id {
        ServiceId::FirewallMark { mark: 0, .. } => Err(Unsendable("0 is not a firewall mark")),
        _ => Ok(()),
    }
}
