//! The asynchronous client for IPVS, on tokio.

use super::core::Core;
use crate::error::{Attempt, AttemptObject, Cause, Error, Verb};
use crate::{Command, Daemon, DestinationEntry, Info, ServiceEntry, ServiceId, Timeouts};
use netlink_pipeline::{AsyncConnection, NetlinkProtocol, Options};

/// A connection to the kernel's IPVS in one network namespace, for tokio (with I/O enabled).
///
/// Each method does the same as the method of [`Client`](crate::Client) with the same name. Dropping a future is safe:
/// commands that were sent may have been carried out, and late replies do not disturb the next call.
///
/// ```no_run
/// # async fn show() -> Result<(), ipvs_netlink::Error> {
/// let mut ipvs = ipvs_netlink::AsyncClient::open().await?;
/// for entry in ipvs.services().await? {
///     println!("{}", entry.service.id);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct AsyncClient {
    core: Core<AsyncConnection>,
}

impl AsyncClient {
    /// Connects to IPVS in the calling thread's network namespace. Must be called within a tokio runtime.
    pub async fn open() -> Result<Self, Error> {
        Self::with_options(&Options::default()).await
    }

    /// Does the same as [`open`](Self::open), with the caller's buffer sizes and limits.
    pub async fn with_options(options: &Options) -> Result<Self, Error> {
        let opened = AsyncConnection::open(NetlinkProtocol::GENERIC, options);
        let connection = opened.map_err(|error| {
            let attempt = Attempt::new(Verb::Open, AttemptObject::Family);
            Error::new(attempt, Cause::Transport(error))
        })?;
        let core = Core::open(connection).await?;
        Ok(Self { core })
    }

    /// See [`Client::execute`](crate::Client::execute).
    pub async fn execute(&mut self, commands: &[Command]) -> Result<Vec<Result<(), Error>>, Error> {
        self.core.execute(commands).await
    }

    /// See [`Client::services`](crate::Client::services).
    pub async fn services(&mut self) -> Result<Vec<ServiceEntry>, Error> {
        self.core.services().await
    }

    /// See [`Client::service`](crate::Client::service).
    pub async fn service(&mut self, id: &ServiceId) -> Result<ServiceEntry, Error> {
        self.core.service(id).await
    }

    /// See [`Client::destinations`](crate::Client::destinations).
    pub async fn destinations(&mut self, id: &ServiceId) -> Result<Vec<DestinationEntry>, Error> {
        self.core.destinations(id).await
    }

    /// See [`Client::dump`](crate::Client::dump).
    pub async fn dump(&mut self) -> Result<Vec<(ServiceEntry, Vec<DestinationEntry>)>, Error> {
        self.core.dump_all().await
    }

    /// See [`Client::daemons`](crate::Client::daemons).
    pub async fn daemons(&mut self) -> Result<Vec<Daemon>, Error> {
        self.core.daemons().await
    }

    /// See [`Client::timeouts`](crate::Client::timeouts).
    pub async fn timeouts(&mut self) -> Result<Timeouts, Error> {
        self.core.timeouts().await
    }

    /// See [`Client::info`](crate::Client::info).
    pub async fn info(&mut self) -> Result<Info, Error> {
        self.core.info().await
    }

    /// See [`Client::family_id`](crate::Client::family_id).
    pub const fn family_id(&self) -> u16 {
        self.core.family()
    }

    /// See [`Client::encode`](crate::Client::encode).
    pub fn encode(&self, commands: &[Command], first: u32) -> Vec<Vec<u8>> {
        self.core.encode(commands, first)
    }
}
