//! What the kernel holds, read from `/proc/net/ip_vs` and by nothing of our own libraries: the
//! demo must not see with the eyes of what it shows.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use super::view::View;

/// How often the kernel is looked at.
const GLANCE: Duration = Duration::from_millis(1);

/// One real server in the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Real {
    /// Its weight.
    pub(super) weight: u32,
    /// Established connections.
    pub(super) active: u32,
}

/// The real servers of the TCP virtual server `target`.
pub(super) fn read(target: SocketAddr) -> anyhow::Result<BTreeMap<SocketAddr, Real>> {
    let text = std::fs::read_to_string("/proc/net/ip_vs").context("the kernel has no IPVS")?;
    Ok(parse(&text, target))
}

/// Waits until the kernel holds exactly what `view` wants; real servers of weight 0 do not count.
pub(super) fn wait_for(view: &View, patience: Duration) -> anyhow::Result<()> {
    let wanted = view.weights();
    let deadline = Instant::now() + patience;
    loop {
        let held: BTreeMap<_, _> = read(view.target())?
            .into_iter()
            .filter(|(_, real)| real.weight > 0)
            .map(|(address, real)| (address, real.weight))
            .collect();
        if held == wanted {
            return Ok(());
        }
        if Instant::now() > deadline {
            bail!("after {patience:?} the kernel holds {held:?} instead of {wanted:?}");
        }
        std::thread::sleep(GLANCE);
    }
}

/// Waits until none of `addresses` has an established connection in any virtual server.
pub(super) fn wait_for_drained(addresses: &[SocketAddr], patience: Duration) -> anyhow::Result<()> {
    let deadline = Instant::now() + patience;
    loop {
        let text = std::fs::read_to_string("/proc/net/ip_vs")?;
        let busy: u32 = text
            .lines()
            .filter_map(real)
            .filter(|(address, _)| addresses.contains(address))
            .map(|(_, real)| real.active)
            .sum();
        if busy == 0 {
            return Ok(());
        }
        if Instant::now() > deadline {
            bail!("{busy} connections to the leaving pods did not end in {patience:?}");
        }
        std::thread::sleep(GLANCE);
    }
}

fn parse(text: &str, target: SocketAddr) -> BTreeMap<SocketAddr, Real> {
    text.lines()
        .skip_while(|line| virtual_server(line) != Some(target))
        .skip(1)
        .map_while(real)
        .collect()
}

/// The address in a line like `TCP  0A60000A:0050 wrr`.
fn virtual_server(line: &str) -> Option<SocketAddr> {
    socket_address(line.strip_prefix("TCP")?.split_whitespace().next()?)
}

/// A line like `  -> 0AF40102:1F90      Masq    96     0          7`.
fn real(line: &str) -> Option<(SocketAddr, Real)> {
    let mut words = line.trim_start().strip_prefix("->")?.split_whitespace();
    let address = socket_address(words.next()?)?;
    let mut numbers = words.skip(1).map_while(|word| word.parse().ok());
    let real = Real {
        weight: numbers.next()?,
        active: numbers.next()?,
    };
    Some((address, real))
}

/// `0AF40102:1F90`, both in hexadecimal.
fn socket_address(word: &str) -> Option<SocketAddr> {
    let (address, port) = word.split_once(':')?;
    let address = Ipv4Addr::from(u32::from_str_radix(address, 16).ok()?);
    Some(SocketAddr::new(
        address.into(),
        u16::from_str_radix(port, 16).ok()?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    // `cat /proc/net/ip_vs` on 6.12, tabs and all.
    const TABLE: &str = "IP Virtual Server version 1.2.1 (size=4096)
Prot LocalAddress:Port Scheduler Flags
  -> RemoteAddress:Port Forward Weight ActiveConn InActConn
TCP  0A600009:0050 wrr  
  -> 0AF40909:1F90      Masq    1      0          0         
TCP  0A60000A:0050 wrr  
  -> 0AF40202:1F90      Masq    9      1          200       
  -> 0AF40102:1F90      Masq    96     0          800       
UDP  0A60000A:0050 wrr  
  -> 0AF40303:1F90      Masq    7      0          0         
";

    #[test]
    fn only_the_real_servers_of_the_one_virtual_server_are_read() {
        let table = parse(TABLE, "10.96.0.10:80".parse().unwrap());
        let nearest = "10.244.1.2:8080".parse().unwrap();
        let zone = "10.244.2.2:8080".parse().unwrap();
        assert_eq!(
            table,
            BTreeMap::from([
                (
                    nearest,
                    Real {
                        weight: 96,
                        active: 0
                    }
                ),
                (
                    zone,
                    Real {
                        weight: 9,
                        active: 1
                    }
                ),
            ])
        );
    }

    #[test]
    fn a_virtual_server_that_is_not_there_has_nothing() {
        assert!(parse(TABLE, "10.96.0.11:80".parse().unwrap()).is_empty());
    }
}
