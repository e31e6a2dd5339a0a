//! Connects from outside of the cluster, in the lab's network, to node ports and load balancer addresses.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use guest_wire::RequestCounts;

use super::cluster::{Cluster, SHOP, TIMEOUT};
use crate::demo::visit::Visit;
use testbed::lab::OUTSIDE;
use testbed::vm::build;
use testbed::vm::progress::ProgressLine;

/// Connections of each visit.
const CONNECTIONS: u64 = 20;
/// Connections of a visit that nothing answers; each waits for [`PATIENCE`].
const VAIN_CONNECTIONS: u64 = 2;
/// Milliseconds until a connection counts as failed: the kernel sends a lost packet again after 1 s.
const PATIENCE: &str = "2500";
/// Pause between two attempts to reach a server.
const PAUSE: Duration = Duration::from_millis(200);

/// A Service of `web.yaml`.
struct WebService {
    name: &'static str,
    policy: &'static str,
    /// The address that the demo gives it, as a load balancer's controller does; from a range for documentation
    /// (RFC 5737).
    address: &'static str,
    /// The node to which the load balancer sends.
    node: &'static str,
}

/// The server runs on n1.
const SERVICES: [WebService; 2] = [
    WebService {
        name: "web-local",
        policy: "Local",
        address: "203.0.113.10",
        node: "n1",
    },
    WebService {
        name: "web-cluster",
        policy: "Cluster",
        address: "203.0.113.11",
        node: "n2",
    },
];

/// A client outside of the cluster.
pub(super) struct Outsider<'a> {
    cluster: &'a Cluster,
    /// `guest` on this machine.
    program: PathBuf,
}

impl<'a> Outsider<'a> {
    /// Creates the server and its Services, and gives each a load balancer address with a route.
    pub(super) fn prepare(cluster: &'a Cluster) -> anyhow::Result<Self> {
        let step = ProgressLine::begin("publishing a server with node ports and load balancers");
        let web = include_str!("web.yaml").replace("VERSION", env!("CARGO_PKG_VERSION"));
        cluster.kubectl_with(&web, &["apply", "-f", "-"])?;
        cluster.rollout(SHOP, "deployment/web")?;
        for service in &SERVICES {
            let ingress = format!(
                "{{\"status\":{{\"loadBalancer\":{{\"ingress\":[{{\"ip\":\"{}\"}}]}}}}}}",
                service.address
            );
            cluster.kubectl(&[
                "patch",
                "service",
                service.name,
                SHOP,
                "--subresource=status",
                "--type=merge",
                "--patch",
                &ingress,
            ])?;
            let node = cluster.node_address(service.node)?;
            cluster.lab.route(service.address.parse()?, node)?;
        }
        let programs = build::programs(build::Profile::Guest)?;
        let program = build::program(&programs, "usr/bin/guest");
        let program = program.context("the guests hold no `guest`")?.to_owned();
        step.done("");
        Ok(Self { cluster, program })
    }

    /// Connects to the addresses of both Services, and to the node port of a node without an endpoint.
    pub(super) fn visit_all(&self) -> anyhow::Result<Vec<Visit>> {
        let step = ProgressLine::begin("connecting from outside of the cluster");
        let mut visits = Vec::new();
        for service in &SERVICES {
            let seen = match service.policy {
                "Local" => OUTSIDE.parse()?,
                // The address that the node masquerades with.
                _ => self.cluster.node_address(service.node)?,
            };
            let node_port = self.node_port(service, service.node)?;
            visits.push(self.visit(service, "node port", node_port, service.node, Some(seen))?);
            let address = SocketAddr::new(service.address.parse()?, 80);
            visits.push(self.visit(service, "load balancer", address, service.node, Some(seen))?);
        }
        let [local, _] = &SERVICES;
        let elsewhere = self.node_port(local, "n2")?;
        visits.insert(2, self.visit(local, "node port", elsewhere, "n2", None)?);
        step.done("");
        Ok(visits)
    }

    fn visit(
        &self,
        service: &WebService,
        kind: &'static str,
        target: SocketAddr,
        node: &'static str,
        expected: Option<IpAddr>,
    ) -> anyhow::Result<Visit> {
        let connections = if expected.is_some() {
            self.wait_for(target)?;
            CONNECTIONS
        } else {
            VAIN_CONNECTIONS
        };
        Ok(Visit {
            policy: service.policy,
            kind,
            target,
            node,
            counts: self.connect(target, connections)?,
            expected,
        })
    }

    /// Waits until the node serves `target`.
    fn wait_for(&self, target: SocketAddr) -> anyhow::Result<()> {
        let deadline = Instant::now() + TIMEOUT;
        while self.connect(target, 1)?.failed > 0 {
            if Instant::now() > deadline {
                bail!("{target} does not answer a client outside of the cluster in {TIMEOUT:?}");
            }
            std::thread::sleep(PAUSE);
        }
        Ok(())
    }

    fn connect(&self, target: SocketAddr, connections: u64) -> anyhow::Result<RequestCounts> {
        let mut load = self.cluster.lab.outside(&self.program)?;
        load.args(["load", "-o", "json", "--patience", PATIENCE]);
        load.args(["--target", &target.to_string()]);
        load.args(["--connections", &connections.to_string()]);
        // It exits with 1 if a connection failed.
        let output = load.output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        serde_json::from_slice(&output.stdout).with_context(|| format!("`guest load`: {said}"))
    }

    fn node_port(&self, service: &WebService, node: &str) -> anyhow::Result<SocketAddr> {
        let column = "-o=jsonpath={.spec.ports[0].nodePort}";
        let port = self
            .cluster
            .kubectl(&["get", "service", service.name, SHOP, column])?;
        Ok(SocketAddr::new(
            self.cluster.node_address(node)?,
            port.parse()?,
        ))
    }
}
