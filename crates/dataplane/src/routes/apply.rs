//! Reads our routes from the kernel and applies the desired ones.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use netlink_packet_route::RouteNetlinkMessage;
use netlink_pipeline::{RequestError, RequestResult};
use rustix::net::netdevice;
use topology_core::model::{Family, IpNetwork};

use super::addresses::Interface;
use super::desired::{LocalRoute, PROTOCOL, RouteDelta};
use super::diff::{RouteStep, diff};
use super::range::covers;
use super::wire;
use super::wire::Whose;
use crate::crash_point::CrashPoint;
use crate::routes::link;
use crate::routes::rtnl::Rtnl;

/// Why routes could not be read or written at all.
#[derive(Debug, thiserror::Error)]
pub enum RouteError {
    /// The conversation with the kernel failed.
    #[error("routes: {0}; the agent needs CAP_NET_ADMIN in the node's network namespace")]
    Netlink(#[from] netlink_pipeline::Error),
    /// There is no loopback link for the routes.
    #[error("routes: no link lo: {0}")]
    NoLoopback(#[source] rustix::io::Errno),
}

/// The result of applying the desired routes.
#[derive(Debug, Default)]
pub struct RouteReport {
    pub added: Vec<LocalRoute>,
    pub removed: Vec<LocalRoute>,
    /// Routes that the kernel refused, with its error.
    pub failed: Vec<(LocalRoute, String)>,
}

/// Our routes in the kernel, as far as known.
#[derive(Debug)]
pub struct RouteTable {
    rtnl: Rtnl,
    lo: u32,
    held: BTreeSet<LocalRoute>,
    /// Desired routes for whose prefixes another program has a `local` route. Packets are delivered all the same. Tried
    /// again after the next [`RouteTable::read`], and by [`RouteTable::add_taken`].
    taken: BTreeMap<IpNetwork, LocalRoute>,
}

impl RouteTable {
    /// Opens the socket. Nothing is known yet.
    pub fn open() -> Result<Self, RouteError> {
        let rtnl = Rtnl::open()?;
        let lo = index_of("lo").map_err(RouteError::NoLoopback)?;
        Ok(Self {
            rtnl,
            lo,
            held: BTreeSet::new(),
            taken: BTreeMap::new(),
        })
    }

    /// Reads our routes from the kernel.
    pub async fn read(&mut self) -> Result<(), RouteError> {
        self.held = self
            .list(Whose::Ours, |route| route.protocol == PROTOCOL)
            .await?;
        self.taken.clear();
        Ok(())
    }

    /// Lists foreign routes that deliver addresses inside `of` to this node.
    pub async fn foreign(&mut self, of: &BTreeSet<IpNetwork>) -> Result<Vec<String>, RouteError> {
        let inside = |route: &LocalRoute| of.iter().any(|range| covers(range, &route.to));
        let listed = self
            .list(Whose::All, |listed| {
                listed.protocol != PROTOCOL && inside(&listed.route)
            })
            .await?;
        Ok(listed
            .iter()
            .map(|route| format!("local {} table local", route.to))
            .collect())
    }

    async fn list(
        &mut self,
        whose: Whose,
        keep: impl Fn(&wire::ListedRoute) -> bool + Send + Sync,
    ) -> Result<BTreeSet<LocalRoute>, RouteError> {
        let mut routes = BTreeSet::new();
        for family in [Family::V4, Family::V6] {
            let read = |message| match message {
                RouteNetlinkMessage::NewRoute(route) => wire::listed(&route).filter(&keep),
                _ => None,
            };
            let listed = self
                .rtnl
                .dump(&wire::list_routes(family, whose), read)
                .await?;
            routes.extend(listed.into_iter().map(|listed| listed.route));
        }
        Ok(routes)
    }

    /// Our routes in the kernel.
    pub fn held(&self) -> &BTreeSet<LocalRoute> {
        &self.held
    }

    /// Applies `desired`. Adds new routes before it removes old ones, except if only the source of a route changes.
    pub async fn set(
        &mut self,
        desired: &BTreeSet<LocalRoute>,
        crash_point: &CrashPoint,
    ) -> Result<RouteReport, RouteError> {
        self.taken.retain(|_, route| desired.contains(route));
        let steps = diff(&self.held, &self.taken, desired);
        self.write(&steps, crash_point).await
    }

    /// Adds and removes single routes, at a cost that follows their number.
    pub async fn change(
        &mut self,
        delta: &RouteDelta,
        crash_point: &CrashPoint,
    ) -> Result<RouteReport, RouteError> {
        let RouteDelta { added, removed } = delta;
        for route in removed {
            self.taken.remove(&route.to);
        }
        let is_held = |route: &&LocalRoute| self.held.contains(*route);
        let removed = removed.iter().filter(is_held).copied().collect();
        let added = added.iter().filter(|route| !is_held(route));
        let steps = diff(&removed, &self.taken, &added.copied().collect());
        self.write(&steps, crash_point).await
    }

    /// Adds the desired routes whose prefixes another program had, unless it still has them.
    pub async fn add_taken(&mut self, crash_point: &CrashPoint) -> Result<RouteReport, RouteError> {
        let taken = std::mem::take(&mut self.taken).into_values();
        let steps: Vec<RouteStep> = taken.map(RouteStep::Add).collect();
        self.write(&steps, crash_point).await
    }

    async fn write(
        &mut self,
        steps: &[RouteStep],
        crash_point: &CrashPoint,
    ) -> Result<RouteReport, RouteError> {
        let mut report = RouteReport::default();
        if steps.is_empty() {
            return Ok(report);
        }
        let allowed = steps
            .get(..crash_point.allows(steps.len()))
            .unwrap_or_default();
        let messages = allowed.iter().map(|step| message(step, self.lo));
        let outcomes = self.rtnl.send(messages).await?;
        crash_point.record_writes(allowed.len());
        for (step, outcome) in allowed.iter().zip(outcomes) {
            self.settle(step, outcome, &mut report);
        }
        Ok(report)
    }

    fn settle(&mut self, step: &RouteStep, outcome: RequestResult, report: &mut RouteReport) {
        let errno = outcome.as_ref().err().and_then(|failure| errno(failure));
        match (step, outcome, errno) {
            (RouteStep::Add(route), Ok(()), _) => {
                self.held.insert(*route);
                report.added.push(*route);
            }
            (RouteStep::Remove(route), Ok(()), _) => {
                self.held.remove(route);
                report.removed.push(*route);
            }
            // The route is gone already, as desired.
            (RouteStep::Remove(route), Err(_), Some(rustix::io::Errno::SRCH)) => {
                self.held.remove(route);
            }
            (RouteStep::Add(route), Err(_), Some(rustix::io::Errno::EXIST)) => {
                self.taken.insert(route.to, *route);
            }
            (RouteStep::Add(route) | RouteStep::Remove(route), Err(failure), _) => {
                report.failed.push((*route, failure.to_string()));
            }
        }
    }

    /// Reads the addresses of this node, except those on `kube-ipvs0`, which are Service addresses.
    pub async fn interfaces(&mut self) -> Result<Vec<Interface>, RouteError> {
        let kube = index_of(link::NAME).ok();
        let read = |message| match message {
            RouteNetlinkMessage::NewAddress(address) => wire::address(&address),
            _ => None,
        };
        let listed = self.rtnl.dump(&wire::list_addresses(), read).await?;
        let named = listed
            .into_iter()
            .filter(|(index, ..)| Some(*index) != kube);
        Ok(named
            .map(|(index, address, prefix, global)| Interface {
                link: name_of(index),
                address,
                prefix,
                global,
            })
            .collect())
    }

    /// Reads the source addresses of the default routes.
    pub async fn default_sources(&mut self) -> Result<Vec<IpAddr>, RouteError> {
        let mut sources = Vec::new();
        for family in [Family::V4, Family::V6] {
            let answer = self.rtnl.request(&wire::far_away(family)).await?;
            if let Some(RouteNetlinkMessage::NewRoute(route)) = answer {
                sources.extend(wire::source(&route));
            }
        }
        Ok(sources)
    }

    /// Creates `kube-ipvs0` if there is no link with that name.
    pub async fn ensure_link(
        &mut self,
        crash_point: &CrashPoint,
    ) -> Result<LinkReport, RouteError> {
        if index_of(link::NAME).is_ok() {
            return Ok(LinkReport::Present);
        }
        let outcomes = self.rtnl.send(std::iter::once(link::create())).await?;
        crash_point.record_writes(1);
        let refused = outcomes.into_iter().find_map(Result::err);
        Ok(refused.map_or(LinkReport::Created, |failure| {
            LinkReport::Refused(failure.to_string())
        }))
    }
}

/// The result of creating `kube-ipvs0`.
#[derive(Debug)]
pub enum LinkReport {
    /// It existed.
    Present,
    /// It was created.
    Created,
    /// The kernel refused; its error.
    Refused(String),
}

fn message(step: &RouteStep, lo: u32) -> RouteNetlinkMessage {
    match step {
        RouteStep::Add(route) => RouteNetlinkMessage::NewRoute(wire::route_message(route, lo)),
        RouteStep::Remove(route) => RouteNetlinkMessage::DelRoute(wire::route_message(route, lo)),
    }
}

fn errno(failure: &RequestError) -> Option<rustix::io::Errno> {
    match failure {
        RequestError::Refused(nack) => Some(rustix::io::Errno::from_raw_os_error(nack.errno)),
        _ => None,
    }
}

fn index_of(link: &str) -> rustix::io::Result<u32> {
    netdevice::name_to_index(probe()?, link)
}

fn name_of(index: u32) -> String {
    let name = probe().and_then(|socket| netdevice::index_to_name(socket, index));
    name.unwrap_or_else(|_gone| format!("#{index}"))
}

/// Opens a socket for requests about links; the type does not matter.
fn probe() -> rustix::io::Result<rustix::fd::OwnedFd> {
    rustix::net::socket(
        rustix::net::AddressFamily::UNIX,
        rustix::net::SocketType::DGRAM,
        None,
    )
}
