//! `guest bench echo`: a pod that sends every byte back. A few threads serve one connection each at a time, so that no
//! connection costs a new thread.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::thread;

use anyhow::{Context as _, Result};

/// Number of connections that are served at the same time; clients open fewer.
const WORKERS: u32 = 8;

/// `guest bench echo`.
#[derive(clap::Args)]
pub(crate) struct EchoArgs {
    /// Address and port to listen on.
    #[arg(long)]
    listen: SocketAddr,
}

impl EchoArgs {
    /// Serves until it is killed.
    pub(crate) fn run(&self) -> Result<()> {
        let place = || format!("cannot listen on {}", self.listen);
        let listener = TcpListener::bind(self.listen).with_context(place)?;
        thread::scope(|scope| {
            for _ in 0..WORKERS {
                scope.spawn(|| {
                    loop {
                        // A client that has left must not stop the server.
                        drop(serve_one(&listener));
                    }
                });
            }
        });
        Ok(())
    }
}

/// Serves one connection until the client closes it.
pub(super) fn serve_one(listener: &TcpListener) -> std::io::Result<()> {
    let (mut stream, _) = listener.accept()?;
    stream.set_nodelay(true)?;
    let mut bytes = [0; 64];
    loop {
        let length = stream.read(&mut bytes)?;
        if length == 0 {
            return Ok(());
        }
        stream.write_all(bytes.get(..length).unwrap_or_default())?;
    }
}
