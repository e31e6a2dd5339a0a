//! The blocking front for IPVS.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use super::core::Core;
use crate::error::{Attempt, Cause, Error, Object, Verb};
use crate::{Command, Daemon, DestinationEntry, Info, ServiceEntry, ServiceId, Timeouts};
use netlink_pipeline::{Connection, NetlinkProtocol, Options};

/// A connection to the kernel's IPVS in one network namespace. Every call blocks until the kernel has answered.
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
    /// Connects to the IPVS of the calling thread's network namespace.
    ///
    /// The kernel loads its module where it can; where it cannot, the error is
    /// [`ErrorKind::ModuleMissing`](crate::ErrorKind::ModuleMissing).
    pub fn open() -> Result<Self, Error> {
        Self::with_options(&Options::default())
    }

    /// As [`open`](Self::open), with buffers, limits and time limits of the caller's choice.
    pub fn with_options(options: &Options) -> Result<Self, Error> {
        let connection = Connection::open(NetlinkProtocol::GENERIC, options).map_err(|error| {
            let attempt = Attempt::new(Verb::Open, Object::Family);
            Error::new(attempt, Cause::Transport(error))
        })?;
        let core = ready(Core::open(connection))?;
        Ok(Self { core })
    }

    /// Carries out commands, in their order; one result for each.
    ///
    /// A command that fails does not stop those after it. The error of the call itself means that the socket failed
    /// or the module is gone, and any of the commands may or may not have been carried out.
    pub fn execute(&mut self, commands: &[Command]) -> Result<Vec<Result<(), Error>>, Error> {
        ready(self.core.execute(commands))
    }

    /// Every service (`ipvsadm -L`, without the destinations).
    ///
    /// No service comes twice: a reading in which one does is thrown away and done again, and given up as
    /// [`ErrorKind::Interrupted`](crate::ErrorKind::Interrupted) after [`Options::dump_attempts`]. But the kernel does
    /// not tell when services were deleted during a reading, so of a table beyond some hundred services one that was
    /// there all the time can be missing, and up to Linux 6.12 at least other network namespaces' deletions count
    /// too. [`service`](Self::service) tells for certain.
    pub fn services(&mut self) -> Result<Vec<ServiceEntry>, Error> {
        ready(self.core.services())
    }

    /// One service.
    pub fn service(&mut self, id: &ServiceId) -> Result<ServiceEntry, Error> {
        ready(self.core.service(id))
    }

    /// Every destination of a service.
    pub fn destinations(&mut self, id: &ServiceId) -> Result<Vec<DestinationEntry>, Error> {
        ready(self.core.destinations(id))
    }

    /// Every service with its destinations (`ipvsadm -L`).
    ///
    /// The kernel cannot show all at one moment: a service that is deleted meanwhile has no destinations here.
    pub fn dump(&mut self) -> Result<Vec<(ServiceEntry, Vec<DestinationEntry>)>, Error> {
        ready(self.core.everything())
    }

    /// The synchronisation daemons that run (`ipvsadm -L --daemon`).
    pub fn daemons(&mut self) -> Result<Vec<Daemon>, Error> {
        ready(self.core.daemons())
    }

    /// The connection timeouts (`ipvsadm -L --timeout`).
    pub fn timeouts(&mut self) -> Result<Timeouts, Error> {
        ready(self.core.timeouts())
    }

    /// The kernel's IPVS version and the size of its connection table.
    pub fn info(&mut self) -> Result<Info, Error> {
        ready(self.core.info())
    }

    /// The number that the kernel gave to its IPVS family; another one after a reload of the module.
    pub const fn family_id(&self) -> u16 {
        self.core.family()
    }

    /// The finished datagrams that [`execute`](Self::execute) would send, numbered from `first`.
    pub fn encode(&self, commands: &[Command], first: u32) -> Vec<Vec<u8>> {
        self.core.encode(commands, first)
    }
}

/// The result of a future that never waits, because everything it awaits is a blocking call.
fn ready<R>(future: impl Future<Output = R>) -> R {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(result) = future.as_mut().poll(&mut context) {
            return result;
        }
    }
}
