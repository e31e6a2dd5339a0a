//! `guest serve`: a pod. It answers every connection with its name, so that a client can count which pods answered. It
//! has one thread and no process per connection, because guests are emulated.
//!
//! After SIGTERM it answers clients that are already connected, and exits.

use std::io::{ErrorKind, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::ExitCode;

use anyhow::Context;

use crate::sctp;
use crate::termination::Termination;

/// Options of `guest serve`.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of the command line"
)]
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Address and port to listen on.
    #[arg(long)]
    listen: SocketAddr,
    /// The text of every answer.
    #[arg(long)]
    name: String,
    /// Answer datagrams instead of connections.
    #[arg(long)]
    udp: bool,
    /// Answer SCTP associations instead of TCP connections.
    #[arg(long, conflicts_with = "udp")]
    sctp: bool,
    /// Keep connections open after the answer, until the client closes.
    #[arg(long, conflicts_with = "udp")]
    hold: bool,
    /// Add the client's address to the name, after a space.
    #[arg(long)]
    peer: bool,
}

/// The text of answers.
struct ReplyText<'a> {
    name: &'a str,
    peer: bool,
}

impl ReplyText<'_> {
    fn to(&self, client: SocketAddr) -> String {
        let Self { name, peer } = self;
        if *peer {
            format!("{name} {}\n", client.ip())
        } else {
            format!("{name}\n")
        }
    }
}

/// Serves until SIGTERM.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let termination = Termination::listen()?;
    let answer = ReplyText {
        name: &args.name,
        peer: args.peer,
    };
    let place = || format!("cannot listen on {}", args.listen);
    if args.udp {
        let socket = UdpSocket::bind(args.listen).with_context(place)?;
        datagrams(&socket, &termination, &answer)?;
    } else {
        let listener = if args.sctp {
            sctp::listen(args.listen)
        } else {
            TcpListener::bind(args.listen)
        };
        let listener = listener.with_context(place)?;
        connections(&listener, &termination, &answer, args.hold)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn connections(
    listener: &TcpListener,
    termination: &Termination,
    answer: &ReplyText<'_>,
    hold: bool,
) -> anyhow::Result<()> {
    let mut open: Vec<TcpStream> = Vec::new();
    listener.set_nonblocking(true)?;
    loop {
        let (mut stream, client) = match listener.accept() {
            Ok(accepted) => accepted,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                if termination.is_requested_before(listener)? {
                    return Ok(());
                }
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        // A client that has left must not stop the server.
        let answered = stream.write_all(answer.to(client).as_bytes());
        if hold && answered.is_ok() {
            open.retain(is_open);
            open.push(stream);
        }
    }
}

/// Returns whether the client has not closed its side.
fn is_open(stream: &TcpStream) -> bool {
    let mut byte = [0];
    let peeked = stream
        .set_nonblocking(true)
        .and_then(|()| stream.peek(&mut byte));
    match peeked {
        Ok(read) => read > 0,
        Err(error) => error.kind() == ErrorKind::WouldBlock,
    }
}

fn datagrams(
    socket: &UdpSocket,
    termination: &Termination,
    answer: &ReplyText<'_>,
) -> anyhow::Result<()> {
    let mut request = [0; 2048];
    while !termination.is_requested_before(socket)? {
        let (_length, client) = socket.recv_from(&mut request)?;
        // A client that has left must not stop the server.
        drop(socket.send_to(answer.to(client).as_bytes(), client));
    }
    Ok(())
}
