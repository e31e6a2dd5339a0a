//! Parsers of option values. Their errors show a correct value.

use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use std::time::Duration;

use clap::ValueEnum;
use topology_core::model::{self, IpNetwork, NodePortEntry, ObjectName, ParseNodePortEntryError};
use topology_core::policy::LevelKey;

use super::go_duration;

/// kubectl's namespace for a name without one.
const NAMESPACE: &str = "default";

/// The default port of `--healthz-bind-address`.
pub const HEALTHZ_PORT: u16 = 10256;

/// The default port of `--metrics-bind-address`.
pub const METRICS_PORT: u16 = 10249;

/// The address of a server; `None` turns it off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BindAddress(pub Option<SocketAddr>);

/// A duration as in Go and Kubernetes: `30s`, `1m30s`, `500ms`; more than zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Period(pub Duration);

/// A duration as in Go and Kubernetes, or zero, which keeps the kernel's setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeout(Duration);

impl Timeout {
    pub const fn seconds(self) -> u64 {
        self.0.as_secs()
    }
}

/// What to do if a relist lacks more than half of the known objects.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum ListTrust {
    /// Wait for a second list a minute later.
    #[default]
    Confirm,
    /// Remove the missing objects at once.
    Believe,
}

/// The source of other Nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum NodeSourceArg {
    /// The Node objects.
    Nodes,
    /// `TopologyMap` objects, if the API server has them and they have enough labels.
    Map,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceName {
    /// `None` for `svc/NAME`.
    pub namespace: Option<String>,
    pub name: String,
}

/// The target of `explain`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServicePortArg {
    pub service: ServiceName,
    /// Name or number of a Service port; `None` for all ports.
    pub port: Option<String>,
}

/// One occurrence of `-v`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verbosity {
    /// `-v` alone.
    More,
    /// `-v=LEVEL`, as the number of times that `-v` is written for it.
    Level(u8),
}

impl Verbosity {
    pub const fn after(self, level: u8) -> u8 {
        match self {
            Self::More => level.saturating_add(1),
            Self::Level(level) => level,
        }
    }
}

impl FromStr for Period {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match Duration::try_from(signed_duration(text)?) {
            Ok(length) if !length.is_zero() => Ok(Self(length)),
            _ => Err(format!("{text:?} must be more than zero")),
        }
    }
}

impl FromStr for Timeout {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let length = Duration::try_from(signed_duration(text)?)
            .map_err(|_why| format!("{text:?} is negative"))?;
        // kube-proxy cuts a part of a second off; nothing would be left of this one.
        if !length.is_zero() && length.as_secs() == 0 {
            return Err(format!("{text:?} is less than a second, and not 0"));
        }
        Ok(Self(length))
    }
}

fn signed_duration(text: &str) -> Result<jiff::SignedDuration, String> {
    go_duration::parse(text)
        .ok_or_else(|| format!("{text:?} is not a duration; write for example 30s, 1m30s or 500ms"))
}

/// `--healthz-bind-address`, or nothing to turn the server off, as for kube-proxy.
pub fn healthz_address(text: &str) -> Result<BindAddress, String> {
    flag_address(text, HEALTHZ_PORT)
}

/// `--metrics-bind-address`, or nothing to turn the server off, as for kube-proxy.
pub fn metrics_address(text: &str) -> Result<BindAddress, String> {
    flag_address(text, METRICS_PORT)
}

fn flag_address(text: &str, default_port: u16) -> Result<BindAddress, String> {
    if text.is_empty() {
        return Ok(BindAddress(None));
    }
    let address = bind_address(text, default_port);
    address.map_err(|why| format!("{why}, or \"\" to turn this server off"))
}

/// `IP:PORT`, or `IP` with the default port.
pub fn bind_address(text: &str, default_port: u16) -> Result<BindAddress, String> {
    match with_port(&without_leading_zeros(text), default_port) {
        Some(address) if address.port() != 0 => Ok(BindAddress(Some(address))),
        Some(_) => Err("port 0 is not a fixed port; write 1 to 65535".to_owned()),
        None => Err(format!(
            "{text:?} is not IP:PORT; write for example 0.0.0.0:{default_port} or [::]:{default_port}"
        )),
    }
}

/// A number of connections, within the limits of kube-proxy.
pub fn connections(text: &str) -> Result<u64, String> {
    let count = text.parse().ok();
    let count = count.filter(|count| *count <= i64::MAX.cast_unsigned());
    count.ok_or_else(|| format!("{text:?} is not a whole number, at least 0"))
}

/// The key of a Node label.
pub fn label_key(text: &str) -> Result<String, String> {
    let key = LevelKey::parse_label(text)?;
    Ok(key.as_ref().to_owned())
}

/// A Service address range, for example `10.96.0.0/12`.
pub fn cidr(text: &str) -> Result<IpNetwork, String> {
    let range = model::parse_range(&without_leading_zeros(text));
    range.map_err(|error| error.to_string())
}

/// An entry of `--nodeport-addresses`.
pub fn node_port_entry(text: &str) -> Result<NodePortEntry, String> {
    let entry = without_leading_zeros(text).parse();
    entry.map_err(|error: ParseNodePortEntryError| error.to_string())
}

/// A Node's name (RFC 1123: a-z, 0-9, `-` and `.`), trimmed and lower-cased as in kube-proxy.
pub fn node_name(text: &str) -> Result<String, String> {
    let name = text.trim().to_ascii_lowercase();
    let fits = !name.is_empty()
        && name.len() <= 253
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'.');
    if fits {
        Ok(name)
    } else {
        Err(format!(
            "{text:?} is not a node name; `kubectl get nodes` lists them"
        ))
    }
}

/// A switch in a flag, as Go's `strconv.ParseBool` reads it.
pub fn boolean(text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "true" | "True" | "TRUE" => Ok(true),
        "0" | "f" | "F" | "false" | "False" | "FALSE" => Ok(false),
        _ => Err(format!("{text:?} is not true or false")),
    }
}

/// A switch in a YAML file, as Kubernetes' YAML 1.1 reads it.
pub fn yaml_boolean(text: &str) -> Result<bool, String> {
    cluster::source::yaml_boolean(text).ok_or_else(|| format!("{text:?} is not true or false"))
}

/// `-v`, or `-v=LEVEL` with a level of kube-proxy.
pub fn verbosity(text: &str) -> Result<Verbosity, String> {
    if text.is_empty() {
        return Ok(Verbosity::More);
    }
    match text.parse::<u32>() {
        Ok(0..=3) => Ok(Verbosity::Level(0)),
        Ok(4 | 5) => Ok(Verbosity::Level(1)),
        Ok(_) => Ok(Verbosity::Level(2)),
        Err(_) => Err(format!("{text:?} is not a level; write -v, -vv, or -v=4")),
    }
}

pub fn node_ip(text: &str) -> Result<IpAddr, String> {
    without_leading_zeros(text).parse().map_err(|_why| {
        format!("{text:?} is not an IP address; write for example 192.0.2.10 or 2001:db8::10")
    })
}

pub fn client_ip(text: &str) -> Result<IpAddr, String> {
    text.parse().map_err(|_why| {
        format!("{text:?} is not an IP address; write the one from which the client asks, such as 10.244.1.7 or fd00::7")
    })
}

/// IPv4 addresses in IPv6 notation are IPv4 addresses.
pub fn located_ip(text: &str) -> Result<IpAddr, String> {
    let address: Result<IpAddr, _> = text.parse();
    let address = address.map(|address| address.to_canonical());
    address.map_err(|_why| {
        format!("{text:?} is not an IP address; write one such as 10.244.1.7 or fd00::7")
    })
}

/// `namespace/name`, or as in kubectl `svc/name`, `svc/namespace/name`, or `service` for `svc`.
pub fn service_name(text: &str) -> Result<ServiceName, String> {
    let fits = |part: &str| {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'.';
        !part.is_empty() && part.bytes().all(allowed)
    };
    let kinds = ["svc/", "service/", "services/"];
    let bare = kinds.iter().find_map(|kind| text.strip_prefix(kind));
    let (namespace, name) = match (bare, bare.unwrap_or(text).split_once('/')) {
        (_, Some((namespace, name))) => (Some(namespace), name),
        (Some(name), None) => (None, name),
        (None, None) => (None, ""),
    };
    if fits(name) && namespace.is_none_or(fits) {
        return Ok(ServiceName {
            namespace: namespace.map(str::to_owned),
            name: name.to_owned(),
        });
    }
    Err(format!(
        "{text:?} is not NAMESPACE/SERVICE; write for example shop/cart"
    ))
}

/// A Service, optionally with one of its ports after a colon.
pub fn service_port(text: &str) -> Result<ServicePortArg, String> {
    let (service, port) = text
        .split_once(':')
        .map_or((text, None), |(service, port)| (service, Some(port)));
    if port.is_some_and(str::is_empty) {
        return Err(format!(
            "{text:?} ends in ':'; write the port's name or number behind it"
        ));
    }
    Ok(ServicePortArg {
        service: service_name(service)?,
        port: port.map(str::to_owned),
    })
}

impl ServiceName {
    /// The Service; `beside` is the namespace of `-n`.
    ///
    /// # Errors
    /// Both have a namespace, and the two are different.
    pub fn within(&self, beside: Option<&str>) -> Result<ObjectName, String> {
        let name = self.name.as_str();
        match (self.namespace.as_deref(), beside) {
            (Some(own), Some(other)) if own != other => Err(format!(
                "-n {other} and {own}/{name} name two namespaces; leave one out"
            )),
            (own, beside) => Ok(ObjectName::new(own.or(beside).unwrap_or(NAMESPACE), name)),
        }
    }
}

pub fn namespace(text: &str) -> Result<String, String> {
    service_name(&format!("svc/{text}"))
        .ok()
        .filter(|read| read.namespace.is_none())
        .map(|_name| text.to_owned())
        .ok_or_else(|| format!("{text:?} is not a namespace; `kubectl get namespaces` lists them"))
}

/// A time as in YAML; returns milliseconds since 1970.
pub fn moment(text: &str) -> Result<i64, String> {
    let moment: Result<jiff::Timestamp, _> = text.parse();
    let moment = moment
        .map_err(|_why| format!("{text:?} is not a time; write it as 2026-11-22T10:00:00Z"))?;
    Ok(moment.as_millisecond())
}

/// The machine's clock, milliseconds since 1970.
pub fn now() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}

/// An address, with this port unless the text has one.
pub(super) fn with_port(text: &str, port: u16) -> Option<SocketAddr> {
    let alone = || text.parse::<IpAddr>();
    let address = text.parse::<SocketAddr>();
    let address = address.or_else(|_| alone().map(|ip| SocketAddr::new(ip, port)));
    address.ok()
}

/// KP-CF-52: kube-proxy reads `010.0.0.1` as `10.0.0.1`, and `/08` as `/8`.
fn without_leading_zeros(text: &str) -> String {
    let parts = text.split_inclusive(['.', ':', '/', ']']);
    parts.map(short).collect()
}

/// A number and its separator without zeros before it; other text as it is.
fn short(part: &str) -> &str {
    let digits = part.trim_end_matches(['.', ':', '/', ']']);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return part;
    }
    let zeros = digits.len() - digits.trim_start_matches('0').len();
    part.get(zeros.min(digits.len() - 1)..).unwrap_or(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kp_cf_17_an_address_without_port_gets_the_usual_one_and_an_empty_one_turns_off() {
        let bind = |text: &str| {
            metrics_address(text).map(|bind| bind.0.map(|address| address.to_string()))
        };
        assert_eq!(bind("127.0.0.1:9"), Ok(Some("127.0.0.1:9".to_owned())));
        assert_eq!(bind("::1"), Ok(Some("[::1]:10249".to_owned())));
        assert_eq!(bind(""), Ok(None));
        assert!(bind("localhost:80").unwrap_err().contains("0.0.0.0:10249"));
        assert!(bind("0.0.0.0:0").unwrap_err().contains("1 to 65535"));
    }

    #[test]
    fn kp_cf_52_addresses_may_have_leading_zeros() {
        for (text, expected) in [
            ("010.000.0.01", "10.0.0.1"),
            ("010.0.0.0/08", "10.0.0.0/8"),
            ("127.000.000.001:10249", "127.0.0.1:10249"),
            ("[::ffff:010.1.1.1]:0080", "[::ffff:10.1.1.1]:80"),
            ("fd00::0001", "fd00::1"),
            ("0.0.0.0", "0.0.0.0"),
            ("::0/0", "::0/0"),
            ("localhost", "localhost"),
        ] {
            assert_eq!(without_leading_zeros(text), expected);
        }
    }

    #[test]
    fn a_period_is_more_than_zero_and_written_as_in_go() {
        let period = |text: &str| text.parse::<Period>().map(|period| period.0);
        assert_eq!(period("1m30s"), Ok(Duration::from_secs(90)));
        assert_eq!(period("500ms"), Ok(Duration::from_millis(500)));
        assert!(period("0s").unwrap_err().contains("more than zero"));
        assert!(period("-1s").unwrap_err().contains("more than zero"));
        assert_eq!(period("30s1m"), Ok(Duration::from_secs(90)));
        assert!(period("0").unwrap_err().contains("more than zero"));
        assert!(period("30").unwrap_err().contains("write for example 30s"));
        assert!(
            period("PT30S")
                .unwrap_err()
                .contains("write for example 30s")
        );
    }

    #[test]
    fn kp_ni_03_a_node_name_is_trimmed_and_lower_cased() {
        assert_eq!(node_name(" N1.Example "), Ok("n1.example".to_owned()));
        assert!(node_name("n 1").is_err());
        assert!(node_name("").is_err());
    }

    #[test]
    fn an_invalid_time_gives_an_example_and_no_text_of_a_library() {
        for text in ["", "now", "20x6-11-22T10:00:00Z", "2026-11-22"] {
            let error = moment(text).unwrap_err();
            let expected = format!("{text:?} is not a time; write it as 2026-11-22T10:00:00Z");
            assert_eq!(error, expected);
        }
        assert_eq!(moment("1970-01-01T00:00:01Z"), Ok(1000));
    }

    #[test]
    fn a_target_is_a_service_with_or_without_a_port() {
        let read = |text: &str, beside: Option<&str>| {
            let target = service_port(text)?;
            let service = target.service.within(beside)?.to_string();
            Ok::<_, String>((service, target.port))
        };
        let target =
            |service: &str, port: Option<&str>| Ok((service.to_owned(), port.map(str::to_owned)));
        assert_eq!(read("shop/cart", None), target("shop/cart", None));
        assert_eq!(
            read("shop/cart:http", None),
            target("shop/cart", Some("http"))
        );
        for text in ["svc/cart", "service/cart", "services/cart", "svc/shop/cart"] {
            assert_eq!(read(text, Some("shop")), target("shop/cart", None));
        }
        assert_eq!(
            read("svc/cart:80", None),
            target("default/cart", Some("80"))
        );
        assert!(
            read("shop/cart", Some("bank"))
                .unwrap_err()
                .contains("two namespaces")
        );
        assert!(service_port("shop/cart:").is_err());
        assert!(service_port("cart").is_err());
        assert!(service_port("a/b/c").is_err());
        assert!(service_port("a/b&c").is_err());
    }
}
