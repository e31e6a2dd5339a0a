//! The commands that change the kernel's IPVS table.

use std::net::SocketAddr;

use crate::{Daemon, DaemonState, Destination, Service, ServiceId, Timeouts};

/// One change. A list of commands is sent in few datagrams, and each command has its own result.
///
/// The kernel carries out commands in order and does not stop at one that fails.
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
    /// Removes a destination. Its connections end at its next packet, or at once with `expire_nodest_conn` (`ipvsadm
    /// -d`).
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
