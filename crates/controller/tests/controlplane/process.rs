//! Controllers as processes, with the account and the rules of `manifests/base`.

use std::io::{self, BufRead, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use crate::audit::NAMESPACE;
use crate::kubectl::{eventually, kubectl};

/// The account of the controller in `manifests/base`.
pub(crate) const ACCOUNT: &str = "ipvs-topo-controller";

/// The name of the Lease.
pub(crate) const LEASE: &str = "ipvs-topo-controller";

/// Waits until the field of an object has this value.
pub(crate) fn becomes(kind: &str, name: &str, path: &str, expected: &str) {
    let output = format!("-o=jsonpath={path}");
    eventually(&format!("{kind} {name} {path} = {expected}"), || {
        let found = kubectl(&["get", kind, name, &output]).ok()?;
        (found == expected).then_some(())
    });
}

/// A drain of the rack `b1` that ends in `hours`.
pub(crate) fn drain(name: &str, hours: i64) -> String {
    let expires = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(hours);
    format!(
        "apiVersion: topology.ipvs-topo.io/v1alpha1\nkind: TopologyDrain\nmetadata: {{name: {name}}}\nspec: {{match: {{key: example.com/rack, values: [b1]}}, expiresAt: \"{expires}\"}}\n"
    )
}

/// A controller process, which is killed when this is dropped.
pub(crate) struct Controller {
    name: String,
    child: Child,
    log: Arc<Mutex<String>>,
}

impl Controller {
    pub(crate) fn start(kubeconfig: &str, name: &str) -> Self {
        Self::with(kubeconfig, name, &[])
    }

    /// Starts a controller with more options.
    pub(crate) fn with(kubeconfig: &str, name: &str, more: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_ipvs-topo-controller"))
            .args(["--kubeconfig", kubeconfig, "--namespace", NAMESPACE])
            .args(["--name", name, "--bind-address", "127.0.0.1:0"])
            .args(more)
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let log = Arc::new(Mutex::new(String::new()));
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let copy = Arc::clone(&log);
        thread::spawn(move || keep(stderr, &copy));
        Self {
            name: name.to_owned(),
            child,
            log,
        }
    }

    /// Waits until the log contains `words`.
    pub(crate) fn until_logged(&self, words: &str) {
        let what = format!("{words:?} in the log of {}", self.name);
        eventually(&what, || self.log().contains(words).then_some(()));
    }

    /// Whether the metric `ipvs_topo_controller_leader` is 1.
    pub(crate) fn reports_leadership(&self) -> bool {
        let value = eventually("the metric of the leader", || {
            let text = self.metrics().ok()?;
            let mut lines = text.lines();
            let value = lines.find_map(|line| line.strip_prefix("ipvs_topo_controller_leader "))?;
            Some(value.to_owned())
        });
        value == "1"
    }

    fn metrics(&self) -> io::Result<String> {
        let log = self.log();
        let parts = log.split_once("server listens address=");
        let (_, address) = parts.ok_or(io::ErrorKind::NotConnected)?;
        let mut stream = TcpStream::connect(address.lines().next().unwrap_or_default())?;
        stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    }

    fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// Whether the controller holds the Lease.
    pub(crate) fn leads(&self) -> bool {
        holder().is_some_and(|holder| holder.starts_with(&format!("{}_", self.name)))
    }

    /// Sends a signal, such as `STOP`.
    pub(crate) fn signal(&self, signal: &str) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args(["-s", signal, &id]).status();
        assert!(sent.unwrap().success());
    }

    /// Sends SIGTERM; returns whether the controller exited with success.
    pub(crate) fn end(mut self) -> bool {
        self.signal("TERM");
        let status = eventually("the exit of a controller", || {
            self.child.try_wait().unwrap()
        });
        status.success()
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Stores the log lines of a controller and copies them to stderr.
fn keep(stderr: impl BufRead, log: &Mutex<String>) {
    for line in stderr.lines().map_while(Result::ok) {
        // A closed stderr is no error.
        drop(writeln!(io::stderr(), "{line}"));
        let mut log = log.lock().unwrap();
        log.push_str(&line);
        log.push('\n');
    }
}

/// The holder of the Lease.
pub(crate) fn holder() -> Option<String> {
    let path = "-o=jsonpath={.spec.holderIdentity}";
    kubectl(&["get", "lease", LEASE, "-n", NAMESPACE, path]).ok()
}
