//! Lists every virtual service and its real servers, as `ipvsadm -Ln --stats` does.
//!
//! `cargo build --package ipvs-netlink --examples && sudo target/debug/examples/list`
#![expect(clippy::print_stdout, reason = "an example shows something")]

use ipvs_netlink::{Client, Error, Stats};

fn main() -> Result<(), Error> {
    list()
}

/// Prints the table.
pub(crate) fn list() -> Result<(), Error> {
    let mut ipvs = Client::open()?;
    let (major, minor, patch) = ipvs.info()?.version_parts();
    println!("IPVS {major}.{minor}.{patch}");
    for (entry, destinations) in ipvs.dump()? {
        let service = &entry.service;
        print!("{} {}", service.id, service.scheduler);
        if service.flags.bits() != 0 {
            print!(" ({})", service.flags);
        }
        if let Some(seconds) = service.persistence() {
            print!(" persistent {seconds} s, netmask {}", service.netmask);
        }
        println!("{}", show(&entry.stats));
        for entry in destinations {
            let real = &entry.destination;
            println!(
                "  -> {} {} weight {}, {} active, {} inactive{}",
                real.id(),
                real.forward,
                real.weight,
                entry.active,
                entry.inactive,
                show(&entry.stats),
            );
        }
    }
    Ok(())
}

fn show(stats: &Stats) -> String {
    let Stats {
        connections,
        in_bytes,
        out_bytes,
        ..
    } = stats;
    format!("; {connections} connections, {in_bytes} bytes in, {out_bytes} bytes out")
}
