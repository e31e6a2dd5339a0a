//! Accesses the lab's cluster: kubectl, clients, kernels and agents.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{IpAddr, SocketAddr};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use anyhow::Context as _;
use guest_wire::proc_ip_vs::{self, RealServer};
use guest_wire::{RequestCounts, View};

use crate::cluster;
use testbed::lab::RunningLab;

/// The namespace of the Services and pods of the demo.
pub(super) const SHOP: &str = "--namespace=shop";

/// Limit for kernels and agents to follow a change.
pub(super) const TIMEOUT: Duration = Duration::from_secs(120);

/// Connections per second of each client during a change.
const RATE: &str = "20";

/// The path of the agent's program on a node, in the file system of its container.
const PROGRAM: &str = "/proc/$(pidof ipvs-topo)/root/usr/bin/ipvs-topo";

/// Prints each part of kube-proxy that a node runs or holds: its process, its nftables tables, its chains of iptables
/// (kubelet has others with the prefix `KUBE-`) and its IP sets.
const KUBE_PROXY_PARTS: &str = "pidof kube-proxy && echo a process; \
     nft list tables | grep -w kube-proxy; \
     { iptables-save; ip6tables-save; } 2>/dev/null | grep -E '^:KUBE-(SERVICES|NODEPORTS|PROXY)'; \
     ipset list -n 2>/dev/null | grep '^KUBE-'; true";

/// Real servers by their address.
pub(super) type Table = BTreeMap<SocketAddr, RealServer>;

/// The cluster.
pub(super) struct Cluster {
    pub(super) lab: RunningLab,
}

impl Cluster {
    /// Runs kubectl and returns its output.
    pub(super) fn kubectl(&self, words: &[&str]) -> anyhow::Result<String> {
        self.kubectl_with("", words)
    }

    /// Runs kubectl with `input` on its standard input.
    pub(super) fn kubectl_with(&self, input: &str, words: &[&str]) -> anyhow::Result<String> {
        cluster::kubectl(&self.lab, input, words)
    }

    /// Returns the metadata field `column` of the running pod on `node` that `app` selects in `namespace`.
    pub(super) fn pod(
        &self,
        [namespace, app]: [&str; 2],
        node: &str,
        column: &str,
    ) -> anyhow::Result<String> {
        let here = format!("--field-selector=spec.nodeName={node},status.phase=Running");
        let column = format!("-o=jsonpath={{.items[0].metadata.{column}}}");
        self.kubectl(&["get", "pods", namespace, "--selector", app, &here, &column])
    }

    /// Reads the real servers of the virtual server `target` from the kernel of `node`.
    pub(super) fn table(&self, node: &str, target: SocketAddr) -> anyhow::Result<Table> {
        let text = self.lab.output(node, "cat /proc/net/ip_vs")?;
        Ok(proc_ip_vs::parse(&text, target))
    }

    /// Returns the address of `node`.
    pub(super) fn node_address(&self, node: &str) -> anyhow::Result<IpAddr> {
        let column = "-o=jsonpath={.status.addresses[?(@.type==\"InternalIP\")].address}";
        Ok(self.kubectl(&["get", "node", node, column])?.parse()?)
    }

    /// Lists the parts of kube-proxy on `node`.
    pub(super) fn kube_proxy_parts(&self, node: &str) -> anyhow::Result<Vec<String>> {
        let parts = self.lab.output(node, KUBE_PROXY_PARTS)?;
        Ok(parts.lines().map(str::to_owned).collect())
    }

    /// Asks the agent of `node` for the Service's virtual server.
    pub(super) fn view(&self, node: &str, service: &str) -> anyhow::Result<View> {
        // `status` exits with 1 while the kernel does not match yet.
        let line = format!("{PROGRAM} status {service} -o json || true");
        let output = self.lab.output(node, &line)?;
        let views = View::all(output.as_bytes()).context("`ipvs-topo status -o json` changed")?;
        let view = views.into_iter().next();
        view.with_context(|| format!("no virtual server of {service}"))
    }

    /// Starts `guest load` with the arguments `how` in the pod `uid` on `node`.
    fn client(
        &self,
        [node, uid]: [&str; 2],
        target: SocketAddr,
        how: &str,
    ) -> anyhow::Result<LoadClient> {
        // `nsenter` instead of `kubectl exec`, which takes seconds on an emulated node.
        let line = format!(
            "pid=$(grep -l {uid} /proc/[0-9]*/cgroup | head -n 1 | cut -d / -f 3); \
             exec nsenter -t $pid -n /proc/$pid/root/usr/bin/guest load --target {target} -o json {how}"
        );
        LoadClient::start(self.lab.session(node)?, &line)
    }

    /// Starts a client that opens `connections`.
    pub(super) fn send(
        &self,
        from: [&str; 2],
        target: SocketAddr,
        connections: u64,
    ) -> anyhow::Result<LoadClient> {
        self.client(
            from,
            target,
            &format!("--parallel 4 --connections {connections}"),
        )
    }

    /// Starts a client that connects until it is stopped, and waits for its first counts.
    pub(super) fn keep_sending(
        &self,
        from: [&str; 2],
        target: SocketAddr,
    ) -> anyhow::Result<LoadClient> {
        let mut client = self.client(from, target, &format!("--rate {RATE} --every 1"))?;
        client.tally()?;
        Ok(client)
    }
}

/// A running client.
pub(super) struct LoadClient {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl LoadClient {
    fn start(mut session: Command, line: &str) -> anyhow::Result<Self> {
        session.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = session.spawn()?;
        let input = child.stdin.as_mut().context("no input")?;
        writeln!(input, "{line}")?;
        let lines = BufReader::new(child.stdout.take().context("no output")?);
        Ok(Self { child, lines })
    }

    /// Reads its next counts.
    fn tally(&mut self) -> anyhow::Result<RequestCounts> {
        let mut line = String::new();
        self.lines.read_line(&mut line)?;
        serde_json::from_str(&line).context("a client ended without a result")
    }

    /// Lets it finish and returns its last counts. Stops a client without a number of connections.
    pub(super) fn finish(mut self) -> anyhow::Result<RequestCounts> {
        drop(self.child.stdin.take());
        let mut last = self.tally()?;
        while !self.lines.fill_buf()?.is_empty() {
            last = self.tally()?;
        }
        self.child.wait()?;
        Ok(last)
    }
}
