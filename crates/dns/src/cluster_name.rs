//! The names of a cluster domain, and what they stand for.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use hickory_proto::rr::Name;
use topology_core::model::{ObjectName, Protocol};

use crate::port_name::PortName;

/// What a name in the cluster domain stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ClusterName {
    /// The domain itself.
    Apex,
    /// `svc`, `pod`, `dns`, and the namespaces of pods: names without records that have names below them.
    Branch,
    /// `ns.dns`, the server in the start of authority.
    NameServer,
    /// `dns-version`.
    Version,
    /// A namespace below `svc`.
    Namespace(String),
    Service(ObjectName),
    /// `_tcp.SERVICE`: a branch if the Service has a port of this protocol.
    Protocol {
        service: ObjectName,
        protocol: Protocol,
    },
    Port {
        service: ObjectName,
        port: PortName,
    },
    /// An endpoint, by its hostname or by its address with dashes.
    Endpoint {
        service: ObjectName,
        hostname: String,
    },
    /// A pod, by its address with dashes.
    Pod(IpAddr),
    /// A name that cannot exist.
    Nothing,
}

impl ClusterName {
    /// What `name` stands for; `None` if it is not in `domain`.
    pub(crate) fn parse(name: &Name, domain: &Name) -> Option<Self> {
        if !domain.zone_of(name) {
            return None;
        }
        // `Name::num_labels` leaves out `*`.
        let depth = name.iter().count().saturating_sub(domain.iter().count());
        let labels: Option<Vec<String>> = name.iter().take(depth).map(lower_case).collect();
        let labels = labels.unwrap_or_default();
        let texts: Vec<&str> = labels.iter().map(String::as_str).collect();
        Some(if texts.len() == depth {
            Self::of_labels(&texts)
        } else {
            Self::Nothing
        })
    }

    fn of_labels(labels: &[&str]) -> Self {
        match labels {
            [] => Self::Apex,
            ["dns-version"] => Self::Version,
            ["ns", "dns"] => Self::NameServer,
            ["svc" | "pod" | "dns"] | [_, "pod"] => Self::Branch,
            [address, _, "pod"] => pod_address(address).map_or(Self::Nothing, Self::Pod),
            [namespace, "svc"] => Self::Namespace((*namespace).to_owned()),
            [service, namespace, "svc"] => Self::Service(ObjectName::new(*namespace, *service)),
            [first, service, namespace, "svc"] => {
                let service = ObjectName::new(*namespace, *service);
                match first.strip_prefix('_') {
                    Some(name) => protocol(name).map_or(Self::Nothing, |protocol| Self::Protocol {
                        service,
                        protocol,
                    }),
                    None => Self::Endpoint {
                        service,
                        hostname: (*first).to_owned(),
                    },
                }
            }
            [port, transport, service, namespace, "svc"] => {
                let name = port.strip_prefix('_').filter(|name| !name.is_empty());
                let protocol = transport.strip_prefix('_').and_then(protocol);
                match (name, protocol) {
                    (Some(name), Some(protocol)) => Self::Port {
                        service: ObjectName::new(*namespace, *service),
                        port: PortName {
                            name: name.into(),
                            protocol,
                        },
                    },
                    _ => Self::Nothing,
                }
            }
            _ => Self::Nothing,
        }
    }
}

/// Labels are compared without regard to case; `None` for a label that is not text.
fn lower_case(label: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(label).ok()?;
    Some(text.to_ascii_lowercase())
}

fn protocol(name: &str) -> Option<Protocol> {
    match name {
        "tcp" => Some(Protocol::Tcp),
        "udp" => Some(Protocol::Udp),
        "sctp" => Some(Protocol::Sctp),
        _ => None,
    }
}

/// The address with dashes in the name of a pod or an endpoint: `10-244-1-7`, or `fd00--7`.
pub(crate) fn pod_address(label: &str) -> Option<IpAddr> {
    let v4 = label.replace('-', ".").parse::<Ipv4Addr>();
    let v6 = || label.replace('-', ":").parse::<Ipv6Addr>();
    v4.map(IpAddr::V4).or_else(|_| v6().map(IpAddr::V6)).ok()
}

/// The hostname of an endpoint that has none. A label must not end with a dash, as that of `fd00::` would.
pub(crate) fn dashed(address: IpAddr) -> String {
    let mut label = address.to_string().replace(['.', ':'], "-");
    if label.ends_with('-') {
        label.push('0');
    }
    label
}

/// The name of a Service in `domain`; `None` if it is too long for DNS.
pub(crate) fn service_name(service: &ObjectName, domain: &Name) -> Option<Name> {
    below(&[&service.name, &service.namespace, "svc"], domain)
}

/// The name of an endpoint; `None` if it is too long for DNS.
pub(crate) fn endpoint_name(hostname: &str, service: &ObjectName, domain: &Name) -> Option<Name> {
    below(
        &[hostname, &service.name, &service.namespace, "svc"],
        domain,
    )
}

/// A name below the domain; `None` if it is too long for DNS.
pub(crate) fn below(labels: &[&str], domain: &Name) -> Option<Name> {
    let labels = labels.iter().map(|label| label.as_bytes());
    let name = Name::from_labels(labels).ok()?;
    name.append_domain(domain).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(name: &str) -> Option<ClusterName> {
        let domain = Name::from_ascii("cluster.local.").unwrap();
        ClusterName::parse(&Name::from_ascii(name).unwrap(), &domain)
    }

    fn cart() -> ObjectName {
        ObjectName::new("shop", "cart")
    }

    /// The meanings of names below the domain.
    #[track_caller]
    fn check<const N: usize>(cases: [(&str, ClusterName); N]) {
        for (name, expected) in cases {
            let name = format!("{name}.cluster.local.");
            assert_eq!(parse(&name), Some(expected), "{name}");
        }
    }

    #[test]
    fn names_of_services_and_pods_are_parsed_in_any_case() {
        let endpoint = |hostname: &str| ClusterName::Endpoint {
            service: cart(),
            hostname: hostname.to_owned(),
        };
        assert_eq!(parse("cluster.local."), Some(ClusterName::Apex));
        check([
            ("svc", ClusterName::Branch),
            ("pod", ClusterName::Branch),
            ("shop.pod", ClusterName::Branch),
            ("dns", ClusterName::Branch),
            ("ns.dns", ClusterName::NameServer),
            ("dns-version", ClusterName::Version),
            ("shop.svc", ClusterName::Namespace("shop".to_owned())),
            ("*.svc", ClusterName::Namespace("*".to_owned())),
            ("cart.shop.svc", ClusterName::Service(cart())),
            ("CART.Shop.SVC", ClusterName::Service(cart())),
            ("cart-0.cart.shop.svc", endpoint("cart-0")),
            ("10-244-1-7.cart.shop.svc", endpoint("10-244-1-7")),
            (
                "10-244-1-7.shop.pod",
                ClusterName::Pod([10, 244, 1, 7].into()),
            ),
            (
                "fd00--7.shop.pod",
                ClusterName::Pod("fd00::7".parse().unwrap()),
            ),
        ]);
    }

    #[test]
    fn names_of_ports_have_a_protocol() {
        let port = |name: &str, protocol| ClusterName::Port {
            service: cart(),
            port: PortName {
                name: name.into(),
                protocol,
            },
        };
        check([
            (
                "_tcp.cart.shop.svc",
                ClusterName::Protocol {
                    service: cart(),
                    protocol: Protocol::Tcp,
                },
            ),
            ("_http._tcp.cart.shop.svc", port("http", Protocol::Tcp)),
            ("_dns._udp.cart.shop.svc", port("dns", Protocol::Udp)),
            ("_x._sctp.cart.shop.svc", port("x", Protocol::Sctp)),
        ]);
    }

    #[test]
    fn other_names_below_the_domain_name_nothing() {
        check(
            [
                "_._tcp.cart.shop.svc",
                "seven.shop.pod",
                "_http._quic.cart.shop.svc",
                "_quic.cart.shop.svc",
                "http._tcp.cart.shop.svc",
                "a._http._tcp.cart.shop.svc",
                "shop",
                "x.dns",
                "a.ns.dns",
                "*",
            ]
            .map(|name| (name, ClusterName::Nothing)),
        );
    }

    #[test]
    fn a_label_that_is_no_text_names_nothing() {
        let domain = Name::from_ascii("cluster.local.").unwrap();
        let labels: [&[u8]; 5] = [b"\xff", b"shop", b"svc", b"cluster", b"local"];
        let mut name = Name::from_labels(labels).unwrap();
        name.set_fqdn(true);
        assert_eq!(
            ClusterName::parse(&name, &domain),
            Some(ClusterName::Nothing)
        );
    }

    #[test]
    fn other_domains_are_not_ours() {
        for name in [
            "example.com.",
            "local.",
            ".",
            "cluster.local.example.com.",
            "xcluster.local.",
        ] {
            assert_eq!(parse(name), None, "{name}");
        }
    }

    #[test]
    fn names_are_built_below_the_domain_unless_they_are_too_long() {
        let domain = Name::from_ascii("cluster.local.").unwrap();
        let service = ObjectName::new("shop", "cart");
        let name = endpoint_name(&dashed("fd00::7".parse().unwrap()), &service, &domain);
        assert_eq!(
            name.unwrap().to_ascii(),
            "fd00--7.cart.shop.svc.cluster.local."
        );
        let name = service_name(&service, &domain).unwrap();
        assert_eq!(name.to_ascii(), "cart.shop.svc.cluster.local.");
        assert_eq!(endpoint_name(&"x".repeat(64), &service, &domain), None);
    }

    #[test]
    fn an_address_with_dashes_is_a_label_from_which_the_address_is_read() {
        for (address, label) in [
            ("10.244.1.7", "10-244-1-7"),
            ("fd00::7", "fd00--7"),
            ("fd00:1::", "fd00-1--0"),
        ] {
            let address = address.parse().unwrap();
            assert_eq!(dashed(address), label);
            assert_eq!(pod_address(label), Some(address));
        }
    }
}
