//! Controllers as processes, with the account and the rules of `manifests/base`.

use std::io::{self, BufRead, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use crate::audit::NAMESPACE;
use crate::kubectl::{eventually, kubectl};

/// The account that `manifests/base` makes.
pub(crate) const ACCOUNT: &str = "ipvs-topo-controller";

/// What the leader holds.
pub(crate) const LEASE: &str = "ipvs-topo-controller";

/// The field of an object, once it is this.
pub(crate) fn becomes(kind: &str, name: &str, path: &str, wanted: &str) {
    let output = format!("-o=jsonpath={path}");
    eventually(&format!("{kind} {name} {path} = {wanted}"), || {
        let found = kubectl(&["get", kind, name, &output]).ok()?;
        (found == wanted).then_some(())
    });
}

/// A drain of the rack `b1` that ends in so many hours.
pub(crate) fn drain(name: &str, hours: i64) -> String {
    let expires = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(hours);
    format!(
        "apiVersion: topology.ipvs-topo.io/v1alpha1\nkind: TopologyDrain\nmetadata: {{name: {name}}}\nspec: {{match: {{key: example.com/rack, values: [b1]}}, expiresAt: \"{expires}\"}}\n"
    )
}

/// A controller; killed when it goes.
pub(crate) struct Controller {
    name: String,
    child: Child,
    log: Arc<Mutex<String>>,
}

impl Controller {
    /// Starts one.
    pub(crate) fn start(kubeconfig: &str, name: &str) -> Self {
        Self::with(kubeconfig, name, &[])
    }

    /// Starts one with more flags.
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
        let told = BufReader::new(child.stderr.take().unwrap());
        let kept = Arc::clone(&log);
        thread::spawn(move || keep(told, &kept));
        Self {
            name: name.to_owned(),
            child,
            log,
        }
    }

    /// Waits until its log has these words.
    pub(crate) fn until_logged(&self, words: &str) {
        let what = format!("{words:?} in the log of {}", self.name);
        eventually(&what, || self.log().contains(words).then_some(()));
    }

    /// Whether `/metrics` says that it leads.
    pub(crate) fn says_that_it_leads(&self) -> bool {
        let figure = eventually("the figure of a leader", || {
            let text = self.metrics().ok()?;
            let mut lines = text.lines();
            let figure =
                lines.find_map(|line| line.strip_prefix("ipvs_topo_controller_leader "))?;
            Some(figure.to_owned())
        });
        figure == "1"
    }

    fn metrics(&self) -> io::Result<String> {
        let log = self.log();
        let listens = log.split_once("server listens address=");
        let (_, address) = listens.ok_or(io::ErrorKind::NotConnected)?;
        let mut stream = TcpStream::connect(address.lines().next().unwrap_or_default())?;
        stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    }

    fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// Whether it holds the lease.
    pub(crate) fn leads(&self) -> bool {
        holder().is_some_and(|holder| holder.starts_with(&format!("{}_", self.name)))
    }

    /// Sends it a signal, such as `STOP`.
    pub(crate) fn signal(&self, signal: &str) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args(["-s", signal, &id]).status();
        assert!(sent.unwrap().success());
    }

    /// Asks it to end, and returns whether it ended well.
    pub(crate) fn end(mut self) -> bool {
        self.signal("TERM");
        let ended = eventually("the end of a controller", || self.child.try_wait().unwrap());
        ended.success()
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Keeps what a controller says, and passes it on.
fn keep(told: impl BufRead, kept: &Mutex<String>) {
    for line in told.lines().map_while(Result::ok) {
        // Where nobody reads it, it is kept all the same.
        drop(writeln!(io::stderr(), "{line}"));
        let mut kept = kept.lock().unwrap();
        kept.push_str(&line);
        kept.push('\n');
    }
}

/// Who holds the lease.
pub(crate) fn holder() -> Option<String> {
    let path = "-o=jsonpath={.spec.holderIdentity}";
    kubectl(&["get", "lease", LEASE, "-n", NAMESPACE, path]).ok()
}
