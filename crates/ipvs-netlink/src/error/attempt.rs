//! What was tried, and on what.

use std::fmt;
use std::net::SocketAddr;

use super::ErrorKind;
use crate::{Command, DaemonState, ServiceId};

/// What was tried.
#[derive(Clone, Debug)]
pub(crate) struct Attempt {
    pub(crate) verb: Verb,
    pub(crate) object: Object,
    /// The scheduler asked for, because the kernel only says that something does not exist.
    scheduler: Option<Box<str>>,
    /// The persistence engine asked for.
    engine: Option<Box<str>>,
}

/// What was to be done.
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

/// What it was to be done to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Object {
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
    pub(crate) fn new(verb: Verb, object: Object) -> Self {
        Self {
            verb,
            object,
            scheduler: None,
            engine: None,
        }
    }

    /// What a command tries.
    pub(crate) fn of(command: &Command) -> Self {
        let (verb, object) = match command {
            Command::NewService(service) => (Verb::Add, Object::Service(service.id)),
            Command::SetService(service) => (Verb::Change, Object::Service(service.id)),
            Command::DelService(id) => (Verb::Delete, Object::Service(*id)),
            Command::NewDest(id, dest) => (Verb::Add, Object::Destination(*id, dest.id())),
            Command::SetDest(id, dest) => (Verb::Change, Object::Destination(*id, dest.id())),
            Command::DelDest(id, dest) => (Verb::Delete, Object::Destination(*id, *dest)),
            Command::Zero(id) => (Verb::Zero, Object::Service(*id)),
            Command::ZeroAll => (Verb::Zero, Object::Counters),
            Command::SetTimeouts(_) => (Verb::Change, Object::Timeouts),
            Command::Flush => (Verb::Delete, Object::Services),
            Command::NewDaemon(daemon) => (Verb::Start, Object::Daemon(daemon.state)),
            Command::DelDaemon(state) => (Verb::Stop, Object::Daemon(*state)),
        };
        let mut attempt = Self::new(verb, object);
        if let Command::NewService(service) | Command::SetService(service) = command {
            attempt.scheduler = Some(service.scheduler.as_str().into());
            attempt.engine = service.persistence_engine.as_deref().map(Into::into);
        }
        attempt
    }

    /// The names that the kernel did not know.
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

    /// What would help.
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

impl fmt::Display for Object {
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
