//! `IPVS_CMD_*`: requests, and the outermost attributes of requests and replies.

use super::daemon::DaemonAttributes;
use super::destination::DestinationAttributes;
use super::service::ServiceAttributes;
use super::{daemon, destination, service, settings};
use crate::{Command, ServiceId, Timeouts};
use netlink_pipeline::{
    AttributeValue, Attributes, DecodeError, Writer, attribute_table, generic, require,
};

/// `IPVS_GENL_VERSION`.
const VERSION: u8 = 1;

const NEW_SERVICE: u8 = 1;
const SET_SERVICE: u8 = 2;
const DEL_SERVICE: u8 = 3;
const GET_SERVICE: u8 = 4;
const NEW_DEST: u8 = 5;
const SET_DEST: u8 = 6;
const DEL_DEST: u8 = 7;
const GET_DEST: u8 = 8;
const NEW_DAEMON: u8 = 9;
const DEL_DAEMON: u8 = 10;
const GET_DAEMON: u8 = 11;
const SET_CONFIG: u8 = 12;
const GET_CONFIG: u8 = 13;
const GET_INFO: u8 = 15;
const ZERO: u8 = 16;
const FLUSH: u8 = 17;

attribute_table! {
    /// The outermost attributes.
    CommandAttributes {
        IPVS_CMD_ATTR_SERVICE = 1 => service: ServiceAttributes<'a>,
        IPVS_CMD_ATTR_DEST = 2 => destination: DestinationAttributes<'a>,
        IPVS_CMD_ATTR_DAEMON = 3 => daemon: DaemonAttributes<'a>,
        IPVS_CMD_ATTR_TIMEOUT_TCP = 4 => timeout_tcp: u32,
        IPVS_CMD_ATTR_TIMEOUT_TCP_FIN = 5 => timeout_tcp_fin: u32,
        IPVS_CMD_ATTR_TIMEOUT_UDP = 6 => timeout_udp: u32,
    }
}

/// A request that only reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Query {
    /// Dumps all services.
    Services,
    /// Reads one service.
    Service(ServiceId),
    /// Dumps the destinations of a service.
    Destinations(ServiceId),
    /// Dumps the synchronisation daemons.
    Daemons,
    /// Reads the connection timeouts.
    Timeouts,
    /// Reads version and table size.
    Info,
}

/// Decodes the outermost attributes of a reply.
pub(crate) fn read(payload: &[u8]) -> Result<CommandAttributes<'_>, DecodeError> {
    CommandAttributes::read(generic::attributes(payload)?, "an IPVS answer")
}

/// Decodes one of the outermost attributes of a reply and skips the others: a dump has very many replies.
pub(crate) fn part<'a, T: AttributeValue<'a>>(
    payload: &'a [u8],
    number: u16,
    what: &'static str,
) -> Result<T, DecodeError> {
    for attribute in Attributes::new(generic::attributes(payload)?) {
        let attribute = attribute?;
        if attribute.number() == number {
            return T::read(attribute.value, what);
        }
    }
    Err(DecodeError::Missing { what })
}

/// Appends the payload of a command.
pub(crate) fn write(command: &Command, out: &mut Writer<'_>) {
    generic::write_header(number(command), VERSION, out);
    match command {
        Command::NewService(service) | Command::SetService(service) => {
            out.nested(IPVS_CMD_ATTR_SERVICE, |out| service::write(service, out));
        }
        Command::DelService(id) | Command::Zero(id) => write_key(id, out),
        Command::NewDest(id, dest) | Command::SetDest(id, dest) => {
            write_key(id, out);
            out.nested(IPVS_CMD_ATTR_DEST, |out| destination::write(dest, out));
        }
        Command::DelDest(id, dest) => {
            write_key(id, out);
            out.nested(IPVS_CMD_ATTR_DEST, |out| {
                destination::write_key(*dest, out);
            });
        }
        Command::SetTimeouts(timeouts) => write_timeouts(timeouts, out),
        Command::NewDaemon(daemon) => {
            out.nested(IPVS_CMD_ATTR_DAEMON, |out| daemon::write(daemon, out));
        }
        Command::DelDaemon(state) => {
            out.nested(IPVS_CMD_ATTR_DAEMON, |out| daemon::write_key(*state, out));
        }
        Command::ZeroAll | Command::Flush => {}
    }
}

fn write_key(id: &ServiceId, out: &mut Writer<'_>) {
    out.nested(IPVS_CMD_ATTR_SERVICE, |out| service::write_key(id, out));
}

const fn number(command: &Command) -> u8 {
    match command {
        Command::NewService(_) => NEW_SERVICE,
        Command::SetService(_) => SET_SERVICE,
        Command::DelService(_) => DEL_SERVICE,
        Command::NewDest(..) => NEW_DEST,
        Command::SetDest(..) => SET_DEST,
        Command::DelDest(..) => DEL_DEST,
        Command::Zero(_) | Command::ZeroAll => ZERO,
        Command::SetTimeouts(_) => SET_CONFIG,
        Command::Flush => FLUSH,
        Command::NewDaemon(_) => NEW_DAEMON,
        Command::DelDaemon(_) => DEL_DAEMON,
    }
}

fn write_timeouts(timeouts: &Timeouts, out: &mut Writer<'_>) {
    let numbered = [
        (IPVS_CMD_ATTR_TIMEOUT_TCP, timeouts.tcp),
        (IPVS_CMD_ATTR_TIMEOUT_TCP_FIN, timeouts.tcp_fin),
        (IPVS_CMD_ATTR_TIMEOUT_UDP, timeouts.udp),
    ];
    for (number, seconds) in numbered {
        if let Some(seconds) = seconds {
            out.fixed(number, seconds.to_ne_bytes());
        }
    }
}

/// Decodes the command in a request.
pub(crate) fn read_command(payload: &[u8]) -> Result<Option<Command>, DecodeError> {
    let table = read(payload)?;
    let service = || {
        let table = require(table.service.as_ref(), "IPVS_CMD_ATTR_SERVICE")?;
        service::entry(table).map(|entry| entry.service)
    };
    let id = || service::id(require(table.service.as_ref(), "IPVS_CMD_ATTR_SERVICE")?);
    let dest = || require(table.destination.as_ref(), "IPVS_CMD_ATTR_DEST");
    let full = |id: ServiceId| {
        let entry = destination::entry(dest()?, id.family())?;
        Ok((id, entry.destination))
    };
    let daemon = || require(table.daemon.as_ref(), "IPVS_CMD_ATTR_DAEMON");
    Ok(Some(match payload.first().copied() {
        Some(NEW_SERVICE) => Command::NewService(service()?),
        Some(SET_SERVICE) => Command::SetService(service()?),
        Some(DEL_SERVICE) => Command::DelService(id()?),
        Some(NEW_DEST) => id()
            .and_then(full)
            .map(|(id, dest)| Command::NewDest(id, dest))?,
        Some(SET_DEST) => id()
            .and_then(full)
            .map(|(id, dest)| Command::SetDest(id, dest))?,
        Some(DEL_DEST) => {
            let id = id()?;
            Command::DelDest(id, destination::id(dest()?, id.family())?)
        }
        Some(NEW_DAEMON) => Command::NewDaemon(daemon::entry(daemon()?)?),
        Some(DEL_DAEMON) => Command::DelDaemon(daemon::state(daemon()?)?),
        Some(SET_CONFIG) => Command::SetTimeouts(settings::timeouts(&table)),
        Some(ZERO) if table.service.is_some() => Command::Zero(id()?),
        Some(ZERO) => Command::ZeroAll,
        Some(FLUSH) => Command::Flush,
        _ => return Ok(None),
    }))
}

/// Appends the payload of a query.
pub(crate) fn write_query(query: &Query, out: &mut Writer<'_>) {
    let (number, id) = match query {
        Query::Services => (GET_SERVICE, None),
        Query::Service(id) => (GET_SERVICE, Some(id)),
        Query::Destinations(id) => (GET_DEST, Some(id)),
        Query::Daemons => (GET_DAEMON, None),
        Query::Timeouts => (GET_CONFIG, None),
        Query::Info => (GET_INFO, None),
    };
    generic::write_header(number, VERSION, out);
    if let Some(id) = id {
        write_key(id, out);
    }
}
