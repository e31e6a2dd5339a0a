//! Reads virtual servers from TOML, and names key and remedy of what is wrong.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use std::net::SocketAddr;

use ipvs_netlink::{Destination, Family, Forward, Protocol, Service, ServiceId, Tunnel};
use serde::Deserialize;

/// A virtual server with its real servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VirtualServer {
    /// The address of clients' connections.
    pub service: Service,
    /// The destinations of their connections.
    pub real_servers: BTreeMap<SocketAddr, Destination>,
}

/// Virtual servers by the key under which the kernel finds them.
pub type VirtualServers = BTreeMap<ServiceId, VirtualServer>;

/// An error in a file.
#[derive(Debug, PartialEq, Eq)]
pub enum ConfigError {
    /// The text is not TOML, a key is unknown or missing, or a value has another type.
    Syntax(String),
    /// A value that cannot be used.
    Value {
        /// The key, as `virtual-server[1].real-server[2].weight`; counted from 1.
        key: String,
        /// What is wrong with it.
        problem: String,
        /// How to correct it.
        remedy: &'static str,
    },
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syntax(error) => write!(
                f,
                "{}\nCorrect the marked place; the README lists every key with its type.",
                error.trim_end()
            ),
            Self::Value {
                key,
                problem,
                remedy,
            } => write!(f, "{key}: {problem}; {remedy}"),
        }
    }
}

impl std::error::Error for ConfigError {}

/// The whole file.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct File {
    #[serde(default)]
    virtual_server: Vec<VirtualTable>,
}

/// One `[[virtual-server]]`.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct VirtualTable {
    address: String,
    protocol: Option<String>,
    scheduler: Option<String>,
    persistence: Option<i64>,
    #[serde(default)]
    real_server: Vec<RealTable>,
}

/// One `[[virtual-server.real-server]]`.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct RealTable {
    address: String,
    weight: Option<i64>,
    forward: Option<String>,
}

/// The kernel keeps a scheduler's name in 16 bytes, the last of which is NUL.
const LONGEST_SCHEDULER: usize = 15;

/// Reads the text of a file.
pub fn parse(text: &str) -> Result<VirtualServers, ConfigError> {
    let file: File =
        toml::from_str(text).map_err(|error| ConfigError::Syntax(error.to_string()))?;
    let mut servers = VirtualServers::new();
    for (index, table) in file.virtual_server.into_iter().enumerate() {
        let at = format!("virtual-server[{}]", index + 1);
        let server = virtual_server(&table, &at)?;
        match servers.entry(server.service.id) {
            Entry::Vacant(place) => drop(place.insert(server)),
            Entry::Occupied(place) => {
                return Err(ConfigError::Value {
                    key: format!("{at}.address"),
                    problem: format!("{} is named twice", place.key()),
                    remedy: "put its real servers under one [[virtual-server]]",
                });
            }
        }
    }
    Ok(servers)
}

fn virtual_server(table: &VirtualTable, at: &str) -> Result<VirtualServer, ConfigError> {
    let address = socket_address(&table.address, at)?;
    let protocol = protocol(table.protocol.as_deref(), at)?;
    let id = ServiceId::address(protocol, address.ip(), address.port());
    let mut service = Service::new(id, scheduler(table.scheduler.as_deref(), at)?);
    if let Some(seconds) = table.persistence {
        let seconds = u32::try_from(seconds).ok().filter(|seconds| *seconds > 0);
        service = service.with_persistence(seconds.ok_or_else(|| ConfigError::Value {
            key: format!("{at}.persistence"),
            problem: "is no number of seconds".to_owned(),
            remedy: "give 1 or more, or leave the key out",
        })?);
    }
    let mut real_servers = BTreeMap::new();
    for (index, table) in table.real_server.iter().enumerate() {
        let at = format!("{at}.real-server[{}]", index + 1);
        let real = real_server(table, address, &at)?;
        if let Some(twice) = real_servers.insert(real.id(), real) {
            return Err(ConfigError::Value {
                key: format!("{at}.address"),
                problem: format!("{} is named twice", twice.id()),
                remedy: "give one of the two another address, or remove it",
            });
        }
    }
    Ok(VirtualServer {
        service,
        real_servers,
    })
}

fn protocol(name: Option<&str>, at: &str) -> Result<Protocol, ConfigError> {
    match name {
        None | Some("tcp") => Ok(Protocol::TCP),
        Some("udp") => Ok(Protocol::UDP),
        Some("sctp") => Ok(Protocol::SCTP),
        Some(name) => Err(ConfigError::Value {
            key: format!("{at}.protocol"),
            problem: format!("unknown protocol {name:?}"),
            remedy: "write \"tcp\", \"udp\" or \"sctp\"",
        }),
    }
}

fn scheduler<'a>(name: Option<&'a str>, at: &str) -> Result<&'a str, ConfigError> {
    let name = name.unwrap_or("wrr");
    if name.is_empty() || name.len() > LONGEST_SCHEDULER || name.contains('\0') {
        return Err(ConfigError::Value {
            key: format!("{at}.scheduler"),
            problem: format!("{name:?} is no name of a scheduler"),
            remedy: "write \"rr\", \"wrr\", \"lc\", \"wlc\", \"sh\", \"mh\" or another that the kernel has",
        });
    }
    Ok(name)
}

fn real_server(
    table: &RealTable,
    clients_see: SocketAddr,
    at: &str,
) -> Result<Destination, ConfigError> {
    let address = socket_address(&table.address, at)?;
    let forward = forward(table.forward.as_deref(), at)?;
    let wrong_address = |problem: String, remedy| ConfigError::Value {
        key: format!("{at}.address"),
        problem,
        remedy,
    };
    let is_tunnel = matches!(forward, Forward::Tunnel(_));
    if Family::of(address.ip()) != Family::of(clients_see.ip()) && !is_tunnel {
        return Err(wrong_address(
            format!("{address} is of another IP version than {clients_see}"),
            "use addresses of one IP version, or forward = \"tunnel\"",
        ));
    }
    if forward != Forward::Masquerade && address.port() != clients_see.port() {
        return Err(wrong_address(
            format!("only masquerading changes the port, and {clients_see} has another"),
            "use the virtual server's port, or forward = \"masquerade\"",
        ));
    }
    let weight = table.weight.unwrap_or(1);
    let weight = u32::try_from(weight)
        .ok()
        .filter(|weight| i32::try_from(*weight).is_ok());
    let weight = weight.ok_or_else(|| ConfigError::Value {
        key: format!("{at}.weight"),
        problem: format!("{} is out of range", table.weight.unwrap_or(1)),
        remedy: "give 0 to 2147483647; 0 takes no new connections",
    })?;
    Ok(Destination::new(address.ip(), address.port(), weight).with_forward(forward))
}

fn forward(name: Option<&str>, at: &str) -> Result<Forward, ConfigError> {
    match name {
        None | Some("masquerade") => Ok(Forward::Masquerade),
        Some("route") => Ok(Forward::Route),
        Some("tunnel") => Ok(Forward::Tunnel(Tunnel::default())),
        Some(name) => Err(ConfigError::Value {
            key: format!("{at}.forward"),
            problem: format!("unknown method {name:?}"),
            remedy: "write \"masquerade\", \"route\" or \"tunnel\"",
        }),
    }
}

fn socket_address(text: &str, at: &str) -> Result<SocketAddr, ConfigError> {
    let address: Option<SocketAddr> = text.parse().ok();
    address
        .filter(|address| address.port() != 0)
        .ok_or_else(|| ConfigError::Value {
            key: format!("{at}.address"),
            problem: format!("{text:?} is no IP address with a port"),
            remedy: "write \"192.0.2.10:80\" or \"[2001:db8::10]:80\"; the port is 1 to 65535",
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &str = include_str!("../balancer.toml");

    fn error(text: &str) -> String {
        parse(text).unwrap_err().to_string()
    }

    #[test]
    fn the_sample_has_two_virtual_servers_with_weights_and_defaults() {
        let servers = parse(SAMPLE).unwrap();
        let web = ServiceId::address(Protocol::TCP, "192.0.2.10".parse().unwrap(), 80);
        let weights = servers[&web].real_servers.values().map(|real| real.weight);
        assert_eq!(weights.collect::<Vec<_>>(), [80, 20]);
        let dns = ServiceId::address(Protocol::UDP, "2001:db8::10".parse().unwrap(), 53);
        assert_eq!(servers[&dns].service.persistence(), Some(300));
        let real = servers[&dns].real_servers.values().next().unwrap();
        assert_eq!((real.weight, real.forward), (1, Forward::Masquerade));
        assert_eq!(servers.len(), 2);
    }

    #[test]
    fn an_unknown_key_and_a_wrong_type_are_shown_in_their_line() {
        let text = "[[virtual-server]]\naddress = \"192.0.2.10:80\"\nweight = 3\n";
        let words = error(text);
        assert!(
            words.contains("line 3") && words.contains("unknown field `weight`"),
            "{words}"
        );
        assert!(
            words.ends_with("the README lists every key with its type."),
            "{words}"
        );
        let words = error("[[virtual-server]]\naddress = 80\n");
        assert!(
            words.contains("line 2") && words.contains("address = 80"),
            "{words}"
        );
        assert!(error("[[virtual-server]]\n").contains("missing field `address`"));
    }

    #[test]
    fn a_bad_value_names_its_key_and_the_remedy() {
        let virtual_server = "[[virtual-server]]\naddress = \"192.0.2.10:80\"\n";
        for (rest, expected) in [
            (
                "protocol = \"icmp\"",
                "virtual-server[1].protocol: unknown protocol \"icmp\"; write",
            ),
            (
                "scheduler = \"\"",
                "virtual-server[1].scheduler: \"\" is no name of a scheduler; write",
            ),
            (
                "persistence = 0",
                "virtual-server[1].persistence: is no number of seconds; give 1",
            ),
        ] {
            let words = error(&format!("{virtual_server}{rest}\n"));
            assert!(words.starts_with(expected), "{words}");
        }
        for (real, expected) in [
            (
                "address = \"10.0.0.1\"",
                "address: \"10.0.0.1\" is no IP address with a port; write",
            ),
            (
                "address = \"10.0.0.1:0\"",
                "address: \"10.0.0.1:0\" is no IP address with a port",
            ),
            (
                "address = \"10.0.0.1:1\"\nweight = -1",
                "weight: -1 is out of range; give 0 to",
            ),
            (
                "address = \"10.0.0.1:1\"\nweight = 2147483648",
                "weight: 2147483648 is out of",
            ),
            (
                "address = \"10.0.0.1:1\"\nforward = \"nat\"",
                "forward: unknown method \"nat\"; write",
            ),
            (
                "address = \"10.0.0.1:1\"\nforward = \"route\"",
                "address: only masquerading changes",
            ),
            (
                "address = \"[2001:db8::1]:80\"",
                "address: [2001:db8::1]:80 is of another IP version",
            ),
        ] {
            let words = error(&format!(
                "{virtual_server}[[virtual-server.real-server]]\n{real}\n"
            ));
            let expected = format!("virtual-server[1].real-server[1].{expected}");
            assert!(words.starts_with(&expected), "{words}");
        }
    }

    #[test]
    fn a_tunnel_may_cross_ip_versions() {
        let text = "[[virtual-server]]\naddress = \"192.0.2.10:80\"\n[[virtual-server.real-server]]\n\
            address = \"[2001:db8::1]:80\"\nforward = \"tunnel\"\n";
        assert_eq!(parse(text).unwrap().len(), 1);
    }

    #[test]
    fn what_is_named_twice_is_refused_with_the_second_key() {
        let words = error(&format!(
            "{SAMPLE}\n[[virtual-server]]\naddress = \"192.0.2.10:80\"\n"
        ));
        let expected = "virtual-server[3].address: TCP 192.0.2.10:80 is named twice; put";
        assert!(words.starts_with(expected), "{words}");
        let real = "[[virtual-server.real-server]]\naddress = \"10.0.0.1:1\"\n";
        let words = error(&format!(
            "[[virtual-server]]\naddress = \"192.0.2.10:80\"\n{real}{real}"
        ));
        let expected = "virtual-server[1].real-server[2].address: 10.0.0.1:1 is named twice; give";
        assert!(words.starts_with(expected), "{words}");
    }
}
