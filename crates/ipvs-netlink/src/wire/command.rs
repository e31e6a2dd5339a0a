//! `IPVS_CMD_*`: requests, and the outermost attributes of requests and answers.

use super::daemon::DaemonAttributes;
use super::destination::DestinationAttributes;
use super::service::{ServiceAttributes, need};
use super::value::Value;
use super::{DecodeError, Writer, daemon, destination, genl, service, settings};
use crate::{Command, ServiceId, Timeouts};

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

/// What can be asked of the kernel to tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Query {
    /// Every service; a dump.
    Services,
    /// One service.
    Service(ServiceId),
    /// Every destination of a service; a dump.
    Destinations(ServiceId),
    /// The synchronisation daemons; a dump.
    Daemons,
    /// The connection timeouts.
    Timeouts,
    /// Version and table size.
    Info,
}

impl CommandAttributes<'_> {
    fn service_key(id: &ServiceId) -> Self {
        Self {
            service: Some(ServiceAttributes::key(id)),
            ..Self::default()
        }
    }
}

/// The outermost attributes of an answer.
pub(crate) fn read(payload: &[u8]) -> Result<CommandAttributes<'_>, DecodeError> {
    CommandAttributes::read(genl::attributes(payload)?, "an IPVS answer")
}

/// Appends the payload of a command.
pub(crate) fn write(command: &Command, out: &mut Writer<'_>) {
    let (number, attributes) = describe(command);
    genl::write_header(number, VERSION, out);
    attributes.write(out);
}

/// The command in a request.
pub(crate) fn read_command(payload: &[u8]) -> Result<Option<Command>, DecodeError> {
    let table = read(payload)?;
    let service = || {
        let table = need(table.service.as_ref(), "IPVS_CMD_ATTR_SERVICE")?;
        service::entry(table).map(|entry| entry.service)
    };
    let id = || service::id(need(table.service.as_ref(), "IPVS_CMD_ATTR_SERVICE")?);
    let dest = || need(table.destination.as_ref(), "IPVS_CMD_ATTR_DEST");
    let full = |id: ServiceId| {
        let entry = destination::entry(dest()?, id.family())?;
        Ok((id, entry.destination))
    };
    let daemon = || need(table.daemon.as_ref(), "IPVS_CMD_ATTR_DAEMON");
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
    let (number, attributes) = match query {
        Query::Services => (GET_SERVICE, CommandAttributes::default()),
        Query::Service(id) => (GET_SERVICE, CommandAttributes::service_key(id)),
        Query::Destinations(id) => (GET_DEST, CommandAttributes::service_key(id)),
        Query::Daemons => (GET_DAEMON, CommandAttributes::default()),
        Query::Timeouts => (GET_CONFIG, CommandAttributes::default()),
        Query::Info => (GET_INFO, CommandAttributes::default()),
    };
    genl::write_header(number, VERSION, out);
    attributes.write(out);
}

fn describe(command: &Command) -> (u8, CommandAttributes<'_>) {
    let none = CommandAttributes::default();
    match command {
        Command::NewService(service) => {
            let service = Some(ServiceAttributes::full(service));
            (NEW_SERVICE, CommandAttributes { service, ..none })
        }
        Command::SetService(service) => {
            let service = Some(ServiceAttributes::full(service));
            (SET_SERVICE, CommandAttributes { service, ..none })
        }
        Command::DelService(id) => (DEL_SERVICE, CommandAttributes::service_key(id)),
        Command::NewDest(id, dest) => {
            let destination = DestinationAttributes::full(dest);
            (NEW_DEST, with_destination(id, destination))
        }
        Command::SetDest(id, dest) => {
            let destination = DestinationAttributes::full(dest);
            (SET_DEST, with_destination(id, destination))
        }
        Command::DelDest(id, dest) => {
            let destination = DestinationAttributes::key(*dest);
            (DEL_DEST, with_destination(id, destination))
        }
        Command::Zero(id) => (ZERO, CommandAttributes::service_key(id)),
        Command::ZeroAll => (ZERO, none),
        Command::SetTimeouts(timeouts) => (SET_CONFIG, with_timeouts(timeouts)),
        Command::Flush => (FLUSH, none),
        Command::NewDaemon(daemon) => {
            let daemon = Some(DaemonAttributes::full(daemon));
            (NEW_DAEMON, CommandAttributes { daemon, ..none })
        }
        Command::DelDaemon(state) => {
            let daemon = Some(DaemonAttributes::key(*state));
            (DEL_DAEMON, CommandAttributes { daemon, ..none })
        }
    }
}

fn with_destination<'a>(
    id: &ServiceId,
    destination: DestinationAttributes<'a>,
) -> CommandAttributes<'a> {
    CommandAttributes {
        service: Some(ServiceAttributes::key(id)),
        destination: Some(destination),
        ..CommandAttributes::default()
    }
}

fn with_timeouts(timeouts: &Timeouts) -> CommandAttributes<'static> {
    CommandAttributes {
        timeout_tcp: timeouts.tcp,
        timeout_tcp_fin: timeouts.tcp_fin,
        timeout_udp: timeouts.udp,
        ..CommandAttributes::default()
    }
}
