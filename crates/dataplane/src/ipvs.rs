//! Implements [`Kernel`] with `ipvs-netlink`. No other file uses both `ipvs-netlink` and `topology-core`.

mod kernel;

use std::net::SocketAddr;
use std::sync::Arc;

use ipvs_netlink::{
    AsyncClient, Command, Destination, DestinationEntry, ErrorKind, Forward, Netmask, Service,
    ServiceEntry, ServiceFlags, ServiceId, Stats, Timeouts,
};
use topology_core::mirror::{ObservedRealServer, ObservedServer, StepOutcome};
use topology_core::model::{Family, Protocol};
use topology_core::plan::Step;
use topology_core::scheduler::Scheduler;
use topology_core::virtual_server::{RealServer, VirtualServerKey};

pub use kernel::{
    DrainState, IpvsTimeouts, Kernel, KernelError, KernelReal, KernelServer, ListedServer,
    ServerReading, StepError, Traffic, observe_all,
};

/// The IPVS table of this network namespace.
#[derive(Debug)]
pub struct Ipvs {
    client: AsyncClient,
    /// Scheduler names seen so far, so that ten thousand virtual servers share one string.
    schedulers: Vec<Arc<str>>,
}

impl Ipvs {
    /// Connects. The error names the missing module or permission.
    pub async fn open() -> Result<Self, ipvs_netlink::Error> {
        Ok(Self {
            client: AsyncClient::open().await?,
            schedulers: Vec::new(),
        })
    }

    /// Sends a read request that needs the same permission as a write.
    pub async fn probe(&mut self) -> Result<(), ipvs_netlink::Error> {
        self.client.timeouts().await.map(drop)
    }

    fn listed(&mut self, service: &Service) -> Option<ListedServer> {
        let key = key(&service.id)?;
        let observed = ObservedServer {
            scheduler: self.intern(&service.scheduler),
            persistence: service.persistence(),
            plain: is_plain(service),
            real_servers: Vec::new(),
        };
        Some(ListedServer { key, observed })
    }

    fn intern(&mut self, name: &str) -> Arc<str> {
        if let Some(known) = self.schedulers.iter().find(|known| &***known == name) {
            return Arc::clone(known);
        }
        let name: Arc<str> = name.into();
        self.schedulers.push(Arc::clone(&name));
        name
    }

    async fn service(
        &mut self,
        key: &VirtualServerKey,
    ) -> Result<Option<ServiceEntry>, KernelError> {
        unless_gone(self.client.service(&id(key)).await)
    }
}

impl Kernel for Ipvs {
    async fn list(&mut self) -> Result<Vec<ListedServer>, KernelError> {
        let services = self.client.services().await.map_err(KernelError::new)?;
        Ok(services
            .iter()
            .filter_map(|entry| self.listed(&entry.service))
            .collect())
    }

    async fn fill(&mut self, listed: ListedServer) -> Result<Option<ServerReading>, KernelError> {
        let ListedServer { key, mut observed } = listed;
        let Some(entries) = unless_gone(self.client.destinations(&id(&key)).await)? else {
            return Ok(None);
        };
        observed.real_servers = entries.iter().map(real_server).collect();
        let connections = entries.iter().map(connections).collect();
        Ok(Some(ServerReading {
            observed,
            connections,
        }))
    }

    async fn read(&mut self, key: &VirtualServerKey) -> Result<Option<ServerReading>, KernelError> {
        let entry = self.service(key).await?;
        match entry.and_then(|entry| self.listed(&entry.service)) {
            Some(listed) => self.fill(listed).await,
            None => Ok(None),
        }
    }

    async fn show(&mut self, key: &VirtualServerKey) -> Result<Option<KernelServer>, KernelError> {
        let Some(ServiceEntry { service, .. }) = self.service(key).await? else {
            return Ok(None);
        };
        let entries = unless_gone(self.client.destinations(&service.id).await)?;
        Ok(Some(KernelServer {
            key: *key,
            scheduler: self.intern(&service.scheduler),
            persistence: service.persistence(),
            real_servers: entries.unwrap_or_default().iter().map(shown).collect(),
        }))
    }

    async fn apply(&mut self, steps: &[Step]) -> Vec<Result<(), StepError>> {
        let mut commands = Vec::with_capacity(steps.len());
        commands.extend(steps.iter().filter_map(command));
        let mut results = match self.client.execute(&commands).await {
            Ok(results) => results
                .into_iter()
                .map(|result| result.map_err(|error| failed(&error)))
                .collect(),
            Err(error) => vec![Err(lost(&error)); commands.len()],
        }
        .into_iter();
        let unanswered = || {
            Err(StepError {
                outcome: StepOutcome::Unknown,
                no_scheduler: false,
                text: "no answer".to_owned(),
            })
        };
        steps
            .iter()
            .map(|step| match step {
                Step::DeleteFlows { .. } => Ok(()),
                _ => results.next().unwrap_or_else(unanswered),
            })
            .collect()
    }

    async fn timeouts(&mut self) -> Result<IpvsTimeouts, KernelError> {
        let read = self.client.timeouts().await;
        let Timeouts { tcp, tcp_fin, udp } = read.map_err(KernelError::new)?;
        Ok(IpvsTimeouts { tcp, tcp_fin, udp })
    }

    async fn set_timeouts(&mut self, timeouts: IpvsTimeouts) -> Result<(), KernelError> {
        let IpvsTimeouts { tcp, tcp_fin, udp } = timeouts;
        let command = Command::SetTimeouts(Timeouts { tcp, tcp_fin, udp });
        let results = self.client.execute(&[command]).await;
        let results = results.map_err(KernelError::new)?;
        results
            .into_iter()
            .try_for_each(|result| result.map_err(KernelError::new))
    }
}

/// The command of a step; `None` for a step that does not concern IPVS.
fn command(step: &Step) -> Option<Command> {
    Some(match step {
        Step::AddServer {
            key,
            scheduler,
            persistence,
        } => Command::NewService(service(key, *scheduler, *persistence)),
        Step::EditServer {
            key,
            scheduler,
            persistence,
        } => Command::SetService(service(key, *scheduler, *persistence)),
        Step::DeleteServer { key } => Command::DelService(id(key)),
        Step::AddReal { key, real } => Command::NewDest(id(key), destination(real)),
        Step::EditReal { key, real } => Command::SetDest(id(key), destination(real)),
        Step::DrainReal { key, address, port } => {
            Command::SetDest(id(key), Destination::new(*address, *port, 0))
        }
        Step::DeleteReal { key, address, port } => {
            Command::DelDest(id(key), SocketAddr::new(*address, *port))
        }
        Step::DeleteFlows { .. } => return None,
    })
}

fn service(key: &VirtualServerKey, scheduler: Scheduler, persistence: Option<u32>) -> Service {
    let service = Service::new(id(key), scheduler.name()).with_flags(flags(scheduler));
    match persistence {
        Some(seconds) => service.with_persistence(seconds),
        None => service,
    }
}

fn destination(real: &RealServer) -> Destination {
    Destination::new(real.address, real.port, real.weight)
}

/// Converts our key to the kernel's.
fn id(key: &VirtualServerKey) -> ServiceId {
    match *key {
        VirtualServerKey::Address {
            protocol,
            address,
            port,
        } => {
            let protocol = match protocol {
                Protocol::Tcp => ipvs_netlink::Protocol::TCP,
                Protocol::Udp => ipvs_netlink::Protocol::UDP,
                Protocol::Sctp => ipvs_netlink::Protocol::SCTP,
            };
            ServiceId::address(protocol, address, port)
        }
        VirtualServerKey::FirewallMark { family, mark } => {
            let family = match family {
                Family::V4 => ipvs_netlink::Family::V4,
                Family::V6 => ipvs_netlink::Family::V6,
            };
            ServiceId::firewall_mark(family, mark)
        }
    }
}

/// Converts the kernel's key to ours; `None` for protocols that no Service has.
fn key(id: &ServiceId) -> Option<VirtualServerKey> {
    Some(match *id {
        ServiceId::Address {
            protocol,
            address,
            port,
        } => {
            let protocol = match protocol {
                ipvs_netlink::Protocol::TCP => Protocol::Tcp,
                ipvs_netlink::Protocol::UDP => Protocol::Udp,
                ipvs_netlink::Protocol::SCTP => Protocol::Sctp,
                _ => return None,
            };
            VirtualServerKey::Address {
                protocol,
                address,
                port,
            }
        }
        ServiceId::FirewallMark { family, mark } => {
            let family = match family {
                ipvs_netlink::Family::V4 => Family::V4,
                ipvs_netlink::Family::V6 => Family::V6,
            };
            VirtualServerKey::FirewallMark { family, mark }
        }
    })
}

/// The flags of the scheduler: always with fallback, so that clients of a real server of weight 0 are not refused.
fn flags(scheduler: Scheduler) -> ServiceFlags {
    match scheduler.fallback() {
        Some(_) => ServiceFlags::HASH_FALLBACK,
        None => ServiceFlags::default(),
    }
}

/// Whether everything except scheduler and persistence has the values that we write. Attributes that only a newer
/// kernel knows do not count, because this version could not write them.
fn is_plain(service: &Service) -> bool {
    let mut flags = service.flags;
    flags.remove(ServiceFlags::PERSISTENT);
    let ours = service
        .scheduler
        .parse()
        .map_or_else(|_unknown| ServiceFlags::default(), self::flags);
    flags == ours
        && service.netmask == Netmask::host(service.id.family())
        && service.persistence_engine.is_none()
}

fn real_server(entry: &DestinationEntry) -> ObservedRealServer {
    let Destination {
        address,
        port,
        forward,
        weight,
        upper_threshold,
        lower_threshold,
        ..
    } = entry.destination;
    // Old kernels report a real server at one of the host's own addresses as `Local`.
    let forwards = matches!(forward, Forward::Masquerade | Forward::Local);
    ObservedRealServer {
        address,
        port,
        weight,
        plain: forwards && upper_threshold == 0 && lower_threshold == 0,
    }
}

fn connections(entry: &DestinationEntry) -> u64 {
    u64::from(entry.active) + u64::from(entry.inactive)
}

fn shown(entry: &DestinationEntry) -> KernelReal {
    KernelReal {
        address: entry.destination.address,
        port: entry.destination.port,
        weight: entry.destination.weight,
        active: entry.active,
        inactive: entry.inactive,
        persistent: entry.persistent,
        traffic: Some(traffic(&entry.stats)),
        drain: DrainState::None,
    }
}

fn traffic(stats: &Stats) -> Traffic {
    Traffic {
        connections: stats.connections,
        bytes_in: stats.in_bytes,
        bytes_out: stats.out_bytes,
        connections_rate: stats.rates.connections,
        bytes_in_rate: stats.rates.in_bytes,
        bytes_out_rate: stats.rates.out_bytes,
    }
}

fn unless_gone<T>(result: Result<T, ipvs_netlink::Error>) -> Result<Option<T>, KernelError> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == ErrorKind::NoSuchService => Ok(None),
        Err(error) => Err(KernelError::new(error)),
    }
}

fn failed(error: &ipvs_netlink::Error) -> StepError {
    let outcome = match error.kind() {
        ErrorKind::AlreadyExists => StepOutcome::AlreadyExists,
        ErrorKind::NoSuchService | ErrorKind::NoSuchDestination => StepOutcome::Missing,
        ErrorKind::OutcomeUnknown => StepOutcome::Unknown,
        _ => StepOutcome::Failed,
    };
    StepError {
        outcome,
        no_scheduler: error.kind() == ErrorKind::UnknownScheduler,
        text: error.to_string(),
    }
}

/// The error for a failed conversation: any of the commands may have been carried out.
fn lost(error: &ipvs_netlink::Error) -> StepError {
    StepError {
        outcome: StepOutcome::Unknown,
        no_scheduler: false,
        text: error.to_string(),
    }
}
