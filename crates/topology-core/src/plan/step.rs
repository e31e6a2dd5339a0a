//! A change of the kernel, which prints as the equivalent command.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use crate::scheduler::Scheduler;
use crate::virtual_server::{RealServer, VirtualServerKey};

/// A change of the kernel. Prints as the command that an operator would type.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Step {
    /// Add a virtual server without real servers.
    AddServer {
        /// The virtual server.
        key: VirtualServerKey,
        /// The scheduler, with the flag [`Scheduler::fallback`] if it has one.
        scheduler: Scheduler,
        /// Persistence in seconds; `None` without.
        persistence: Option<u32>,
    },
    /// Change the settings of a virtual server in place; its connections stay.
    EditServer {
        /// The virtual server.
        key: VirtualServerKey,
        /// The scheduler, with the flag [`Scheduler::fallback`] if it has one.
        scheduler: Scheduler,
        /// Persistence in seconds; `None` without.
        persistence: Option<u32>,
    },
    /// Delete a virtual server with its real servers.
    DeleteServer {
        /// The virtual server.
        key: VirtualServerKey,
    },
    /// Add a real server.
    AddReal {
        /// The virtual server.
        key: VirtualServerKey,
        /// The real server.
        real: RealServer,
    },
    /// Change the weight of a real server; its connections stay.
    EditReal {
        /// The virtual server.
        key: VirtualServerKey,
        /// The real server with its new weight.
        real: RealServer,
    },
    /// Set the weight of a leaving real server to 0, so that its connections can end.
    DrainReal {
        /// The virtual server.
        key: VirtualServerKey,
        /// The address of the real server.
        address: IpAddr,
        /// Its port.
        port: u16,
    },
    /// Delete a real server.
    DeleteReal {
        /// The virtual server.
        key: VirtualServerKey,
        /// The address of the real server.
        address: IpAddr,
        /// Its port.
        port: u16,
    },
    /// Delete the conntrack entries of clients that used a UDP real server, so that their next packet is scheduled
    /// again.
    DeleteFlows {
        /// The virtual server.
        key: VirtualServerKey,
        /// The address of the real server.
        address: IpAddr,
        /// Its port.
        port: u16,
    },
}

impl Step {
    /// The virtual server of the step.
    pub const fn key(&self) -> &VirtualServerKey {
        match self {
            Self::AddServer { key, .. }
            | Self::EditServer { key, .. }
            | Self::DeleteServer { key }
            | Self::AddReal { key, .. }
            | Self::EditReal { key, .. }
            | Self::DrainReal { key, .. }
            | Self::DeleteReal { key, .. }
            | Self::DeleteFlows { key, .. } => key,
        }
    }

    /// A stable name of the kind of step, for metrics.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::AddServer { .. } => "add_server",
            Self::EditServer { .. } => "edit_server",
            Self::DeleteServer { .. } => "delete_server",
            Self::AddReal { .. } => "add_real",
            Self::EditReal { .. } => "edit_real",
            Self::DrainReal { .. } => "drain_real",
            Self::DeleteReal { .. } => "delete_real",
            Self::DeleteFlows { .. } => "forget_flows",
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let server = |f: &mut fmt::Formatter<'_>,
                      option,
                      key,
                      scheduler: &Scheduler,
                      persistence: &Option<u32>| {
            write!(f, "ipvsadm {option} {key} -s {scheduler}")?;
            if let Some(flag) = scheduler.fallback() {
                write!(f, " -b {flag}")?;
            }
            persistence.map_or(Ok(()), |seconds| write!(f, " -p {seconds}"))
        };
        let real = |f: &mut fmt::Formatter<'_>, option, key, address, port, weight| {
            write!(
                f,
                "ipvsadm {option} {key} -r {} -m -w {weight}",
                SocketAddr::new(address, port)
            )
        };
        match self {
            Self::AddServer {
                key,
                scheduler,
                persistence,
            } => server(f, "-A", key, scheduler, persistence),
            Self::EditServer {
                key,
                scheduler,
                persistence,
            } => server(f, "-E", key, scheduler, persistence),
            Self::DeleteServer { key } => write!(f, "ipvsadm -D {key}"),
            Self::AddReal { key, real: to } => real(f, "-a", key, to.address, to.port, to.weight),
            Self::EditReal { key, real: to } => real(f, "-e", key, to.address, to.port, to.weight),
            Self::DrainReal { key, address, port } => real(f, "-e", key, *address, *port, 0),
            Self::DeleteReal { key, address, port } => {
                write!(
                    f,
                    "ipvsadm -d {key} -r {}",
                    SocketAddr::new(*address, *port)
                )
            }
            Self::DeleteFlows { key, address, port } => {
                f.write_str("conntrack -D -p udp ")?;
                if let VirtualServerKey::Address {
                    address: vip,
                    port: vip_port,
                    ..
                } = key
                {
                    write!(f, "--orig-dst {vip} --orig-port-dst {vip_port} ")?;
                }
                write!(f, "--reply-src {address} --reply-port-src {port}")
            }
        }
    }
}
