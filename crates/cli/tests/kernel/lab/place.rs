//! A network namespace: commands, connections and servers inside of it.

use std::net::{IpAddr, TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::process::{Command, Stdio};

use super::connection::try_connect;
use super::process::Process;
use super::shell::{sh, succeeds, wait_until};

/// A network namespace with a link to the node.
#[derive(Debug)]
pub(crate) struct Place {
    pub(super) netns: String,
    pub(crate) v4: IpAddr,
    pub(crate) v6: IpAddr,
}

impl Place {
    /// The command, which runs inside.
    pub(crate) fn command(&self, line: &str) -> Command {
        let mut command = Command::new("ip");
        command.args([
            "netns",
            "exec",
            &self.netns,
            "sh",
            "-c",
            &format!("exec {line}"),
        ]);
        command.stdin(Stdio::null());
        command
    }

    /// Runs a command line inside; it must succeed.
    pub(crate) fn sh(&self, line: &str) -> String {
        sh(&format!("ip netns exec {} sh -c '{line}'", self.netns))
    }

    /// The prefix of a command line that runs inside.
    pub(crate) fn prefix(&self) -> String {
        format!("ip netns exec {}", self.netns)
    }

    /// Runs a command line inside and returns whether it succeeded.
    pub(crate) fn succeeds(&self, line: &str) -> bool {
        succeeds(&format!("{} {line}", self.prefix()))
    }

    /// Runs `what` in a thread inside.
    pub(crate) fn inside<T: Send>(&self, what: impl FnOnce() -> T + Send) -> T {
        let namespace = std::fs::File::open(format!("/run/netns/{}", self.netns)).unwrap();
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                let kind = Some(rustix::thread::LinkNameSpaceType::Network);
                rustix::thread::move_into_link_name_space(namespace.as_fd(), kind).unwrap();
                what()
            });
            thread.join().expect("the thread's own panic was printed")
        })
    }

    /// A connection from inside, which stays open.
    pub(crate) fn connect(&self, target: &str) -> TcpStream {
        self.inside(|| try_connect(target))
            .unwrap_or_else(|error| panic!("{target}: {error}"))
    }

    /// Listens on `port` of the IPv4 address.
    pub(crate) fn listen(&self, port: u16) -> TcpListener {
        self.inside(|| TcpListener::bind((self.v4, port)).unwrap())
    }

    /// Starts TCP servers on `port` of both families, which reply with `name`.
    pub(crate) fn serve(&self, port: u16, name: &str) -> Vec<Process> {
        let Self { v4, v6, .. } = self;
        [format!("{v4}:{port}"), format!("[{v6}]:{port}")]
            .into_iter()
            .map(|listen| {
                let server = self.spawn(&format!("guest serve --listen {listen} --name {name}"));
                self.wait_for_server(&listen);
                server
            })
            .collect()
    }

    /// Waits until a server listens at an address of this namespace.
    pub(crate) fn wait_for_server(&self, listen: &str) {
        wait_until("a server", || self.inside(|| try_connect(listen).is_ok()));
    }

    /// Starts a command inside, which ends when the returned value is dropped.
    pub(crate) fn spawn(&self, line: &str) -> Process {
        Process::spawn(self.command(line))
    }
}
