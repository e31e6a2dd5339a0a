//! Parses `/proc/net/ip_vs`, independently of the libraries that the agent uses.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};

/// One real server in the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RealServer {
    pub weight: u32,
    pub active: u32,
}

/// Returns the real servers of the TCP virtual server `target`.
pub fn parse(text: &str, target: SocketAddr) -> BTreeMap<SocketAddr, RealServer> {
    text.lines()
        .skip_while(|line| virtual_server(line) != Some(target))
        .skip(1)
        .map_while(real_server)
        .collect()
}

/// Returns the weights that are not 0.
pub fn weights(table: &BTreeMap<SocketAddr, RealServer>) -> BTreeMap<SocketAddr, u32> {
    let weights = table.iter().map(|(address, real)| (*address, real.weight));
    weights.filter(|(_, weight)| *weight > 0).collect()
}

/// Parses the address in a line like `TCP  0A60000A:0050 wrr`.
fn virtual_server(line: &str) -> Option<SocketAddr> {
    socket_address(line.strip_prefix("TCP")?.split_whitespace().next()?)
}

/// Parses a line like `  -> 0AF40102:1F90      Masq    96     0          7`.
pub fn real_server(line: &str) -> Option<(SocketAddr, RealServer)> {
    let mut words = line.trim_start().strip_prefix("->")?.split_whitespace();
    let address = socket_address(words.next()?)?;
    let mut numbers = words.skip(1).map_while(|word| word.parse().ok());
    let real = RealServer {
        weight: numbers.next()?,
        active: numbers.next()?,
    };
    Some((address, real))
}

/// Parses `0AF40102:1F90`, both in hexadecimal.
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
                    RealServer {
                        weight: 96,
                        active: 0
                    }
                ),
                (
                    zone,
                    RealServer {
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
