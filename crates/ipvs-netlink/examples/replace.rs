//! Sets exactly these real servers of a virtual service, without an interruption of service.
//!
//! `cargo build --package ipvs-netlink --examples`, then as root
//! `target/debug/examples/replace 10.96.0.10:80 192.0.2.1:8080=80 192.0.2.2:8080=20`.
//!
//! New real servers are added before old ones are removed, and equal ones are not changed, so their connections
//! continue.
#![expect(clippy::print_stdout, reason = "an example shows something")]

use std::collections::BTreeMap;
use std::error::Error;
use std::net::SocketAddr;

use ipvs_netlink::{Client, Command, Destination, ErrorKind, Protocol, Service, ServiceId};

const USAGE: &str = "usage: replace ADDRESS:PORT [ADDRESS:PORT=WEIGHT ...]";

fn main() -> Result<(), Box<dyn Error>> {
    replace(std::env::args().skip(1))
}

/// Runs the commands for the command-line arguments.
pub(crate) fn replace(mut words: impl Iterator<Item = String>) -> Result<(), Box<dyn Error>> {
    let address: SocketAddr = words.next().ok_or(USAGE)?.parse()?;
    let wanted = words
        .map(|word| parse(&word))
        .collect::<Result<BTreeMap<_, _>, _>>()?;
    let id = ServiceId::address(Protocol::TCP, address.ip(), address.port());

    let mut ipvs = Client::open()?;
    let mut commands = Vec::new();
    let present = match ipvs.destinations(&id) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NoSuchService => {
            commands.push(Command::NewService(Service::new(id, "wrr")));
            Vec::new()
        }
        Err(error) => return Err(error.into()),
    };
    let present: BTreeMap<_, _> = present
        .into_iter()
        .map(|entry| (entry.destination.id(), entry.destination))
        .collect();
    for (real, weight) in &wanted {
        match present.get(real) {
            Some(there) if there.weight == *weight => {}
            // Keeps all other settings: thresholds, forwarding, attributes of newer kernels.
            Some(there) => {
                let mut changed = there.clone();
                changed.weight = *weight;
                commands.push(Command::SetDest(id, changed));
            }
            None => {
                let new = Destination::new(real.ip(), real.port(), *weight);
                commands.push(Command::NewDest(id, new));
            }
        }
    }
    let leaving = present.keys().filter(|real| !wanted.contains_key(real));
    commands.extend(leaving.map(|real| Command::DelDest(id, *real)));

    let results = ipvs.execute(&commands)?;
    for result in results {
        result?;
    }
    println!(
        "{id}: {} commands, {} real servers",
        commands.len(),
        wanted.len()
    );
    Ok(())
}

fn parse(word: &str) -> Result<(SocketAddr, u32), Box<dyn Error>> {
    let (address, weight) = word.split_once('=').ok_or(USAGE)?;
    Ok((address.parse()?, weight.parse()?))
}
