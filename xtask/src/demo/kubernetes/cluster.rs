//! The lab's cluster as the demo uses it: kubectl, the clients, the kernels, the agents.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::SocketAddr;
use std::process::{Child, ChildStdout, Command, Stdio};

use anyhow::{Context as _, ensure};
use guest_wire::table::{self, Real};
use guest_wire::{Tally, View};

use testbed::lab::Running;

/// Connections a second of each client while something changes.
const RATE: &str = "20";

/// The agent's program on a node, which its container has and the node has not.
const PROGRAM: &str = "/proc/$(pidof ipvs-topo)/root/usr/bin/ipvs-topo";

/// Real servers by their address.
pub(super) type Table = BTreeMap<SocketAddr, Real>;

/// The cluster.
pub(super) struct Cluster {
    pub(super) lab: Running,
}

impl Cluster {
    /// What kubectl prints.
    pub(super) fn kubectl(&self, words: &[&str]) -> anyhow::Result<String> {
        self.kubectl_with("", words)
    }

    /// The same, with `input` on its standard input.
    pub(super) fn kubectl_with(&self, input: &str, words: &[&str]) -> anyhow::Result<String> {
        let mut child = self
            .lab
            .kubectl()?
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let mut stdin = child.stdin.take().context("no input")?;
        stdin.write_all(input.as_bytes())?;
        drop(stdin);
        let done = child.wait_with_output()?;
        let said = String::from_utf8_lossy(&done.stderr);
        ensure!(done.status.success(), "kubectl {}: {said}", words.join(" "));
        Ok(String::from_utf8_lossy(&done.stdout).into_owned())
    }

    /// Which pod with the label `app` in `namespace` runs on `node`, in the words of `column`.
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

    /// What the kernel of `node` holds of the virtual server `target`.
    pub(super) fn table(&self, node: &str, target: SocketAddr) -> anyhow::Result<Table> {
        let text = self.lab.output(node, "cat /proc/net/ip_vs")?;
        Ok(table::parse(&text, target))
    }

    /// What the agent of `node` wants for the Service, which has one virtual server.
    pub(super) fn view(&self, node: &str, service: &str) -> anyhow::Result<View> {
        // `status` ends with 1 while the kernel is not as wanted yet.
        let line = format!("{PROGRAM} status {service} -o json || true");
        let told = self.lab.output(node, &line)?;
        let views = View::all(told.as_bytes()).context("`ipvs-topo status -o json` changed")?;
        let view = views.into_iter().next();
        view.with_context(|| format!("no virtual server of {service}"))
    }

    /// Starts to connect from the pod `uid` on `node`, in the words of `how`.
    fn client(
        &self,
        [node, uid]: [&str; 2],
        target: SocketAddr,
        how: &str,
    ) -> anyhow::Result<Client> {
        // In the pod's network, with its own program; an emulated node takes seconds for `kubectl exec`.
        let line = format!(
            "pid=$(grep -l {uid} /proc/[0-9]*/cgroup | head -n 1 | cut -d / -f 3); \
             exec nsenter -t $pid -n /proc/$pid/root/usr/bin/guest load --target {target} -o json {how}"
        );
        Client::start(self.lab.session(node)?, &line)
    }

    /// Starts to send `connections`.
    pub(super) fn send(
        &self,
        from: [&str; 2],
        target: SocketAddr,
        connections: u64,
    ) -> anyhow::Result<Client> {
        self.client(
            from,
            target,
            &format!("--parallel 4 --connections {connections}"),
        )
    }

    /// Connects again and again; returns when it does.
    pub(super) fn keep_sending(
        &self,
        from: [&str; 2],
        target: SocketAddr,
    ) -> anyhow::Result<Client> {
        let mut client = self.client(from, target, &format!("--rate {RATE} --every 1"))?;
        client.tally()?;
        Ok(client)
    }
}

/// A client at work.
pub(super) struct Client {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Client {
    fn start(mut session: Command, line: &str) -> anyhow::Result<Self> {
        session.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = session.spawn()?;
        let input = child.stdin.as_mut().context("no input")?;
        writeln!(input, "{line}")?;
        let lines = BufReader::new(child.stdout.take().context("no output")?);
        Ok(Self { child, lines })
    }

    /// The next count that it tells.
    fn tally(&mut self) -> anyhow::Result<Tally> {
        let mut line = String::new();
        self.lines.read_line(&mut line)?;
        serde_json::from_str(&line).context("a client ended without a result")
    }

    /// Lets it finish; the last count that it told. One without a number of connections is stopped.
    pub(super) fn finish(mut self) -> anyhow::Result<Tally> {
        drop(self.child.stdin.take());
        let mut last = self.tally()?;
        while !self.lines.fill_buf()?.is_empty() {
            last = self.tally()?;
        }
        self.child.wait()?;
        Ok(last)
    }
}
