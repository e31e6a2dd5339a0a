//! The questions about a cluster: every name that it has, and names near them.

use std::collections::BTreeSet;
use std::net::IpAddr;

use hickory_proto::rr::{Name, RecordType};

use super::cluster::{DnsCluster, DnsPort, DnsService, ServiceKind};

const TYPES: [RecordType; 10] = [
    RecordType::A,
    RecordType::AAAA,
    RecordType::SRV,
    RecordType::PTR,
    RecordType::CNAME,
    RecordType::TXT,
    RecordType::HTTPS,
    RecordType::MX,
    RecordType::NS,
    RecordType::ANY,
];

#[derive(Debug, Clone)]
pub(crate) struct Question {
    pub(crate) name: String,
    pub(crate) record_type: RecordType,
    pub(crate) asked: Asked,
}

/// What a name stands for. Services are numbers in the cluster.
#[derive(Debug, Clone)]
pub(crate) enum Asked {
    Domain,
    /// `svc` or `pod`
    Branch,
    Namespace {
        exists: bool,
        has_services: bool,
    },
    NamespaceOfPods {
        exists: bool,
    },
    Pod {
        /// `None` if the label is no address.
        address: Option<IpAddr>,
        /// Whether the namespace exists.
        exists: bool,
    },
    Version,
    /// `dns`, below which is the name server.
    AboveNameServer,
    /// `ns.dns`. Both servers listen on a loopback address, so it has none.
    NameServer,
    /// A name in the domain that does not exist.
    Nothing,
    Service(usize),
    Port {
        service: usize,
        port: DnsPort,
        has_underscores: bool,
    },
    Protocol {
        service: usize,
        protocol: &'static str,
    },
    Endpoint {
        service: usize,
        host: String,
    },
    Pointer(IpAddr),
    /// A name that only the upstream server knows.
    Foreign,
}

/// The names of a cluster, and of the namespace `empty`, which has no Service.
pub(crate) fn questions(cluster: &DnsCluster) -> Vec<Question> {
    let mut names = general(&cluster.namespace);
    let mut pointers = BTreeSet::new();
    for (at, service) in cluster.services.iter().enumerate() {
        names.extend(of_service(at, service, &cluster.namespace));
        if let ServiceKind::ClusterIps(addresses) = &service.kind {
            pointers.extend(addresses);
        }
        let endpoints = service.slices.iter().flat_map(|slice| &slice.endpoints);
        pointers.extend(endpoints.map(|endpoint| endpoint.address));
    }
    names.extend(pointers.into_iter().map(|address| {
        let mut name = Name::from(address);
        name.set_fqdn(true);
        (name.to_ascii(), Asked::Pointer(address))
    }));
    let mut questions = Vec::new();
    for (name, asked) in names {
        let is_domain = matches!(asked, Asked::Domain);
        let soa = is_domain.then_some(RecordType::SOA);
        questions.extend(TYPES.into_iter().chain(soa).map(|record_type| Question {
            name: name.clone(),
            record_type,
            asked: asked.clone(),
        }));
    }
    questions
}

fn general(namespace: &str) -> Vec<(String, Asked)> {
    let namespaces = [
        (namespace, true, true),
        ("empty", true, false),
        ("absent", false, false),
    ];
    let mut below = vec![
        (String::new(), Asked::Domain),
        ("svc.".to_owned(), Asked::Branch),
        ("pod.".to_owned(), Asked::Branch),
        ("dns-version.".to_owned(), Asked::Version),
        ("dns.".to_owned(), Asked::AboveNameServer),
        ("ns.dns.".to_owned(), Asked::NameServer),
        ("other.dns.".to_owned(), Asked::Nothing),
        ("other.".to_owned(), Asked::Nothing),
    ];
    for (namespace, exists, has_services) in namespaces {
        let of_namespace = Asked::Namespace {
            exists,
            has_services,
        };
        below.push((format!("{namespace}.svc."), of_namespace));
        below.push((
            format!("{namespace}.pod."),
            Asked::NamespaceOfPods { exists },
        ));
        below.push((format!("gone.{namespace}.svc."), Asked::Nothing));
        below.push((format!("x.gone.{namespace}.svc."), Asked::Nothing));
        below.push((format!("_http._tcp.gone.{namespace}.svc."), Asked::Nothing));
        for (label, address) in [
            ("10-1-2-3", Some("10.1.2.3")),
            ("fd00-1--2", Some("fd00:1::2")),
            ("seven", None),
        ] {
            let address = address.map(|address| address.parse().unwrap());
            below.push((
                format!("{label}.{namespace}.pod."),
                Asked::Pod { address, exists },
            ));
        }
    }
    let below = below.into_iter();
    let mut names: Vec<_> = below
        .map(|(name, asked)| (format!("{name}cluster.local."), asked))
        .collect();
    for foreign in [
        "www.example.com.",
        "absent.example.com.",
        "9.9.9.9.in-addr.arpa.",
        "96.10.in-addr.arpa.",
    ] {
        names.push((foreign.to_owned(), Asked::Foreign));
    }
    names
}

fn of_service(service: usize, it: &DnsService, namespace: &str) -> Vec<(String, Asked)> {
    let own = format!("{}.{namespace}.svc.cluster.local.", it.name);
    let mut names = vec![
        (own.clone(), Asked::Service(service)),
        (own.to_uppercase(), Asked::Service(service)),
        (format!("_absent._tcp.{own}"), Asked::Nothing),
        (format!("_http._quic.{own}"), Asked::Nothing),
        (format!("a.b.c.{own}"), Asked::Nothing),
    ];
    for port in it.dns_ports().iter().filter(|port| !port.0.is_empty()) {
        let label = port.1.to_lowercase();
        for has_underscores in [true, false] {
            let dash = if has_underscores { "_" } else { "" };
            let asked = Asked::Port {
                service,
                port: *port,
                has_underscores,
            };
            names.push((format!("{dash}{}.{dash}{label}.{own}", port.0), asked));
        }
        let other = if port.1 == "TCP" { "udp" } else { "tcp" };
        names.push((format!("_{}._{other}.{own}", port.0), Asked::Nothing));
    }
    for protocol in ["TCP", "UDP", "SCTP"] {
        let label = protocol.to_lowercase();
        names.push((
            format!("_{label}.{own}"),
            Asked::Protocol { service, protocol },
        ));
    }
    let endpoints = it.slices.iter().flat_map(|slice| &slice.endpoints);
    let mut hosts: BTreeSet<String> = ["absent".to_owned()].into();
    for endpoint in endpoints.take(20) {
        hosts.insert(endpoint.host());
        // Not its name if it has a hostname.
        hosts.insert(endpoint.address.to_string().replace(['.', ':'], "-"));
    }
    names.extend(hosts.into_iter().map(|host| {
        let name = format!("{host}.{own}");
        (name, Asked::Endpoint { service, host })
    }));
    names
}
