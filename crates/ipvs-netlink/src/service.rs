//! Virtual services: what clients connect to.

mod flags;
mod id;
mod netmask;

pub use flags::ServiceFlags;
pub use id::{Family, Protocol, ServiceId};
pub use netmask::Netmask;

use crate::{Stats, UnknownAttributes};

/// A virtual service as written to the kernel.
///
/// Equal values describe the same kernel state, so a caller can compare a desired service with one it read.
///
/// ```
/// use ipvs_netlink::{Protocol, Service, ServiceFlags, ServiceId};
///
/// let id = ServiceId::address(Protocol::TCP, "10.96.0.10".parse().unwrap(), 80);
/// let mut service = Service::new(id, "wrr").with_persistence(300);
/// service.flags.insert(ServiceFlags::ONE_PACKET);
/// assert_eq!(service.persistence(), Some(300));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct Service {
    /// The key of the service.
    pub id: ServiceId,
    /// Name of the scheduler: `rr`, `wrr`, `lc`, `mh`, ... or `none`; at most 15 bytes.
    ///
    /// The kernel loads the module `ip_vs_<name>` if it does not know the name.
    pub scheduler: String,
    /// Persistence, one-packet scheduling and the scheduler's own flags.
    pub flags: ServiceFlags,
    /// How long a client stays with its real server, in seconds; used only with [`ServiceFlags::PERSISTENT`].
    pub timeout: u32,
    /// The part of a client's address that persistence compares; of the family of [`Self::id`].
    pub netmask: Netmask,
    /// Name of the persistence engine, such as `sip`; at most 15 bytes. The kernel loads `ip_vs_pe_<name>`.
    pub persistence_engine: Option<String>,
    /// Attributes that this version of the crate does not know, written back unchanged.
    pub unknown: UnknownAttributes,
}

impl Service {
    /// A service without persistence, flags or persistence engine.
    pub fn new(id: ServiceId, scheduler: impl Into<String>) -> Self {
        Self {
            id,
            scheduler: scheduler.into(),
            flags: ServiceFlags::default(),
            timeout: 0,
            netmask: Netmask::host(id.family()),
            persistence_engine: None,
            unknown: UnknownAttributes::default(),
        }
    }

    /// The same service, persistent for `seconds` (`ipvsadm -p SECONDS`).
    #[must_use]
    pub fn with_persistence(mut self, seconds: u32) -> Self {
        self.flags.insert(ServiceFlags::PERSISTENT);
        self.timeout = seconds;
        self
    }

    /// The same service with these flags added (`ipvsadm -o`, `-b FLAGS`).
    #[must_use]
    pub fn with_flags(mut self, flags: ServiceFlags) -> Self {
        self.flags.insert(flags);
        self
    }

    /// The same service with another persistence netmask (`ipvsadm -M`).
    #[must_use]
    pub fn with_netmask(mut self, netmask: Netmask) -> Self {
        self.netmask = netmask;
        self
    }

    /// The same service with a persistence engine (`ipvsadm --pe NAME`).
    #[must_use]
    pub fn with_persistence_engine(mut self, name: impl Into<String>) -> Self {
        self.persistence_engine = Some(name.into());
        self
    }

    /// The persistence time in seconds; `None` for a service without persistence.
    pub fn persistence(&self) -> Option<u32> {
        self.flags
            .contains(ServiceFlags::PERSISTENT)
            .then_some(self.timeout)
    }
}

/// A virtual service as read from the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServiceEntry {
    /// Its key and settings.
    pub service: Service,
    /// Its counters and rates.
    pub stats: Stats,
}
