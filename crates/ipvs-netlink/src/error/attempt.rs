//! The attempted operation and its object, for error messages.

use std::fmt;
use std::net::SocketAddr;

use super::kind::ErrorKind;
use crate::{Command, DaemonState, ServiceId};

/// An attempted operation.
#[derive(Clone, Debug)]
pub(crate) struct Attempt {
    pub(crate) verb: Verb,
    pub(crate) object: AttemptObject,
    /// The requested scheduler; the kernel's error does not say that this is what does not exist.
    scheduler: Option<Box<str>>,
    /// The requested persistence engine.
    engine: Option<Box<str>>,
}

/// The operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Open,
    Add,
    Change,
    Delete,
    Read,
    Zero,
    Start,
    Stop,
    Send,
}

/// The object of the operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AttemptObject {
    Family,
    Service(ServiceId),
    Services,
    Destination(ServiceId, SocketAddr),
    Destinations(ServiceId),
    Counters,
    Timeouts,
    Info,
    Daemon(DaemonState),
    Daemons,
    Commands(usize),
}

impl Attempt {
    pub(crate) fn new(verb: Verb, object: AttemptObject) -> Self {
        Self {
            verb,
            object,
            scheduler: None,
            engine: None,
        }
    }

    /// The operation of a command.
    pub(crate) fn of(command: &Command) -> Self {
        let (verb, object) = match command {
            Command::NewService(service) => (Verb::Add, AttemptObject::Service(service.id)),
            Command::SetService(service) => (Verb::Change, AttemptObject::Service(service.id)),
            Command::DelService(id) => (Verb::Delete, AttemptObject::Service(*id)),
            Command::NewDest(id, dest) => (Verb::Add, AttemptObject::Destination(*id, dest.id())),
            Command::SetDest(id, dest) => {
                (Verb::Change, AttemptObject::Destination(*id, dest.id()))
            }
            Command::DelDest(id, dest) => (Verb::Delete, AttemptObject::Destination(*id, *dest)),
            Command::Zero(id) => (Verb::Zero, AttemptObject::Service(*id)),
            Command::ZeroAll => (Verb::Zero, AttemptObject::Counters),
            Command::SetTimeouts(_) => (Verb::Change, AttemptObject::Timeouts),
            Command::Flush => (Verb::Delete, AttemptObject::Services),
            Command::NewDaemon(daemon) => (Verb::Start, AttemptObject::Daemon(daemon.state)),
            Command::DelDaemon(state) => (Verb::Stop, AttemptObject::Daemon(*state)),
        };
        let mut attempt = Self::new(verb, object);
        if let Command::NewService(service) | Command::SetService(service) = command {
            attempt.scheduler = Some(service.scheduler.as_str().into());
            attempt.engine = service.persistence_engine.as_deref().map(Into::into);
        }
        attempt
    }

    /// Writes the names that the kernel did not know.
    pub(super) fn fmt_names(&self, f: &mut fmt::Formatter<'_>, kind: ErrorKind) -> fmt::Result {
        if kind != ErrorKind::UnknownScheduler {
            return Ok(());
        }
        if let Some(scheduler) = &self.scheduler {
            write!(f, " \"{scheduler}\"")?;
        }
        if let Some(engine) = &self.engine {
            write!(f, " or unknown persistence engine \"{engine}\"")?;
        }
        Ok(())
    }

    /// Writes the remedy, if there is one.
    pub(super) fn fmt_remedy(&self, f: &mut fmt::Formatter<'_>, kind: ErrorKind) -> fmt::Result {
        match kind {
            ErrorKind::ModuleMissing => f.write_str("; load it: modprobe ip_vs"),
            ErrorKind::NotPermitted => {
                f.write_str("; CAP_NET_ADMIN in the initial user namespace is needed")
            }
            ErrorKind::OutcomeUnknown => f.write_str("; read the object again"),
            ErrorKind::UnknownScheduler => {
                if let Some(scheduler) = &self.scheduler {
                    write!(f, "; load it: modprobe ip_vs_{scheduler}")?;
                }
                if let Some(engine) = &self.engine {
                    write!(f, ", modprobe ip_vs_pe_{engine}")?;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = match self.verb {
            Verb::Open => "open",
            Verb::Add => "add",
            Verb::Change => "change",
            Verb::Delete => "delete",
            Verb::Read => "read",
            Verb::Zero => "zero",
            Verb::Start => "start",
            Verb::Stop => "stop",
            Verb::Send => "send",
        };
        write!(f, "{verb} {}", self.object)
    }
}

impl fmt::Display for AttemptObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Family => f.write_str("the kernel's IPVS"),
            Self::Service(id) => write!(f, "service {id}"),
            Self::Services => f.write_str("all services"),
            Self::Destination(id, dest) => write!(f, "destination {dest} of service {id}"),
            Self::Destinations(id) => write!(f, "the destinations of service {id}"),
            Self::Counters => f.write_str("all counters"),
            Self::Timeouts => f.write_str("the connection timeouts"),
            Self::Info => f.write_str("the kernel's IPVS version"),
            Self::Daemon(state) => write!(f, "the {state} synchronisation daemon"),
            Self::Commands(count) => write!(f, "{count} commands"),
            Self::Daemons => f.write_str("the synchronisation daemons"),
        }
    }
}
