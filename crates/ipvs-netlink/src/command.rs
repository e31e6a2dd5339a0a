//! Everything that can be asked of the kernel to change.

use std::net::SocketAddr;

use crate::{Daemon, DaemonState, Destination, Service, ServiceId, Timeouts};

/// One change. A list of them is sent in few datagrams and each has its own outcome.
///
/// The kernel works through commands in their order and does not stop at one that fails.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Command {
    /// Adds a service that must not exist yet (`ipvsadm -A`).
    NewService(Service),
    /// Changes a service that exists; its destinations and counters stay (`ipvsadm -E`).
    SetService(Service),
    /// Removes a service and all its destinations (`ipvsadm -D`).
    DelService(ServiceId),
    /// Adds a destination that must not exist yet (`ipvsadm -a`).
    NewDest(ServiceId, Destination),
    /// Changes a destination that exists; its connections and counters stay (`ipvsadm -e`).
    SetDest(ServiceId, Destination),
    /// Removes a destination; its connections end at once or with `expire_nodest_conn` (`ipvsadm -d`).
    DelDest(ServiceId, SocketAddr),
    /// Sets the counters of one service and its destinations to zero (`ipvsadm -Z -t ...`).
    Zero(ServiceId),
    /// Sets all counters to zero (`ipvsadm -Z`).
    ZeroAll,
    /// Sets the connection timeouts (`ipvsadm --set`).
    SetTimeouts(Timeouts),
    /// Removes every service (`ipvsadm -C`).
    Flush,
    /// Starts a synchronisation daemon (`ipvsadm --start-daemon`).
    NewDaemon(Daemon),
    /// Stops a synchronisation daemon (`ipvsadm --stop-daemon`).
    DelDaemon(DaemonState),
}
