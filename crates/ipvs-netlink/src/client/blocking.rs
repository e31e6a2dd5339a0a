//! The blocking client for IPVS.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use super::core::Core;
use crate::error::{Attempt, AttemptObject, Cause, Error, Verb};
use crate::{Command, Daemon, DestinationEntry, Info, ServiceEntry, ServiceId, Timeouts};
use netlink_pipeline::{Connection, NetlinkProtocol, Options};

/// A connection to the kernel's IPVS in one network namespace. Every call blocks until the kernel has replied.
///
/// ```no_run
/// use ipvs_netlink::{Client, Command, Destination, Protocol, Service, ServiceId};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut ipvs = Client::open()?;
/// let id = ServiceId::address(Protocol::TCP, "10.96.0.10".parse()?, 80);
/// let real = Destination::new("10.244.1.2".parse()?, 8080, 96);
/// let commands = [Command::NewService(Service::new(id, "wrr")), Command::NewDest(id, real)];
/// for result in ipvs.execute(&commands)? {
///     result?;
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Client {
    core: Core<Connection>,
}

impl Client {
    /// Connects to IPVS in the calling thread's network namespace.
    ///
    /// The kernel loads its module if it can; otherwise the error is
    /// [`ErrorKind::ModuleMissing`](crate::ErrorKind::ModuleMissing).
    pub fn open() -> Result<Self, Error> {
        Self::with_options(&Options::default())
    }

    /// Does the same as [`open`](Self::open), with the caller's buffer sizes, limits and timeouts.
    pub fn with_options(options: &Options) -> Result<Self, Error> {
        let connection = Connection::open(NetlinkProtocol::GENERIC, options).map_err(|error| {
            let attempt = Attempt::new(Verb::Open, AttemptObject::Family);
            Error::new(attempt, Cause::Transport(error))
        })?;
        let core = ready(Core::open(connection))?;
        Ok(Self { core })
    }

    /// Carries out commands in order, and returns one result for each.
    ///
    /// A command that fails does not stop those after it. An error of the call itself means that the socket failed or
    /// the module was unloaded; any of the commands may or may not have been carried out.
    pub fn execute(&mut self, commands: &[Command]) -> Result<Vec<Result<(), Error>>, Error> {
        ready(self.core.execute(commands))
    }

    /// Dumps every service (`ipvsadm -L`, without the destinations).
    ///
    /// No service is listed twice: a dump with a duplicate is discarded and repeated, and the call fails with
    /// [`ErrorKind::Interrupted`](crate::ErrorKind::Interrupted) after [`Options::dump_attempts`] attempts. The kernel
    /// does not report services that were deleted during a dump. So in a table of more than some hundred services, one
    /// that existed the whole time can be missing. Up to Linux 6.12 at least, deletions in other network namespaces
    /// have this effect, too. [`service`](Self::service) is exact.
    pub fn services(&mut self) -> Result<Vec<ServiceEntry>, Error> {
        ready(self.core.services())
    }

    /// Reads one service.
    pub fn service(&mut self, id: &ServiceId) -> Result<ServiceEntry, Error> {
        ready(self.core.service(id))
    }

    /// Dumps every destination of a service.
    pub fn destinations(&mut self, id: &ServiceId) -> Result<Vec<DestinationEntry>, Error> {
        ready(self.core.destinations(id))
    }

    /// Dumps every service with its destinations (`ipvsadm -L`).
    ///
    /// The kernel has no consistent snapshot: a service that is deleted during the call has no destinations here.
    pub fn dump(&mut self) -> Result<Vec<(ServiceEntry, Vec<DestinationEntry>)>, Error> {
        ready(self.core.dump_all())
    }

    /// Dumps the running synchronisation daemons (`ipvsadm -L --daemon`).
    pub fn daemons(&mut self) -> Result<Vec<Daemon>, Error> {
        ready(self.core.daemons())
    }

    /// Reads the connection timeouts (`ipvsadm -L --timeout`).
    pub fn timeouts(&mut self) -> Result<Timeouts, Error> {
        ready(self.core.timeouts())
    }

    /// Reads the kernel's IPVS version and the size of its connection table.
    pub fn info(&mut self) -> Result<Info, Error> {
        ready(self.core.info())
    }

    /// The number that the kernel assigned to its IPVS family; reloading the module changes it.
    pub const fn family_id(&self) -> u16 {
        self.core.family()
    }

    /// Encodes commands into the datagrams that [`execute`](Self::execute) would send, numbered from `first`.
    pub fn encode(&self, commands: &[Command], first: u32) -> Vec<Vec<u8>> {
        self.core.encode(commands, first)
    }
}

/// Returns the result of a future that never waits, because everything it awaits is a blocking call.
fn ready<R>(future: impl Future<Output = R>) -> R {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(result) = future.as_mut().poll(&mut context) {
            return result;
        }
    }
}
