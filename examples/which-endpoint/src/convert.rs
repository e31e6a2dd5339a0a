//! Turns a description into what topology-core decides on.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use anyhow::{Context as _, bail, ensure};
use topology_core::model::{
    Endpoint, EndpointSlice, Family, Frontend, Node, ObjectName, Protocol, Service, ServicePort,
    SlicePort,
};
use topology_core::policy::{AnnotationChoice, PREFIX, Policy, from_annotations};
use topology_core::snapshot::Snapshot;

use crate::description::{Description, EndpointEntry, NodeEntry, ServiceDescription, Transport};

/// What is asked about.
#[derive(Debug)]
pub(crate) struct Cluster {
    pub(crate) snapshot: Snapshot,
    pub(crate) service: ObjectName,
}

/// Converts `description` for a client on `node`; errors name the key and what to write there.
pub(crate) fn convert(description: &Description, node: &str) -> anyhow::Result<Cluster> {
    let mut snapshot = Snapshot::default();
    let mut names = BTreeSet::new();
    for (at, entry) in description.nodes.iter().enumerate() {
        ensure!(
            names.insert(entry.name.as_str()),
            "nodes[{at}].name: `{}` is there twice; give each node its own name",
            entry.name
        );
        snapshot.set_node(convert_node(entry));
    }
    let known = known(&names);
    ensure!(
        names.contains(node),
        "--node {node}: no such node; {known}, or add it under [[nodes]]"
    );
    let service = convert_service(&description.service)?;
    let name = service.name.clone();
    let family = family(&service);
    for (at, entry) in description.endpoints.iter().enumerate() {
        ensure!(
            names.contains(entry.node.as_str()),
            "endpoints[{at}].node: no node is called `{}`; {known}, or add it under [[nodes]]",
            entry.node
        );
        let key = format!("endpoints[{at}].address");
        let address = address(&key, &entry.address)?;
        ensure!(
            Family::of(address) == family,
            "{key}: `{address}` is not of the Service's family; write an {family} address"
        );
        snapshot.set_slice(slice(at, &service, address, entry));
    }
    snapshot.set_service(service);
    Ok(Cluster {
        snapshot,
        service: name,
    })
}

fn known(names: &BTreeSet<&str>) -> String {
    let names: Vec<&str> = names.iter().copied().collect();
    format!("use one of {}", names.join(", "))
}

fn convert_node(entry: &NodeEntry) -> Node {
    let labels = entry.labels.iter();
    let labels = labels.map(|(key, value)| (Arc::from(key.as_str()), Arc::from(value.as_str())));
    Node {
        labels: labels.collect(),
        ..Node::new(&entry.name)
    }
}

fn convert_service(entry: &ServiceDescription) -> anyhow::Result<Service> {
    let name = ObjectName::parse(&entry.name).with_context(|| {
        let text = &entry.name;
        format!("service.name: `{text}` is no namespace and name; write it as shop/cart")
    })?;
    let frontend = Frontend::cluster_ip(address("service.address", &entry.address)?);
    let port = ServicePort::new(Arc::default(), protocol(entry.protocol), entry.port);
    Ok(Service {
        policy: policy(entry)?.map(Arc::new),
        ..Service::new(name, vec![frontend], vec![port])
    })
}

fn policy(entry: &ServiceDescription) -> anyhow::Result<Option<Policy>> {
    let keyed = entry.policy.iter();
    let keyed: Vec<(String, &str)> = keyed
        .map(|(key, value)| (format!("{PREFIX}{key}"), value.as_str()))
        .collect();
    let annotations = keyed.iter().map(|(key, value)| (key.as_str(), *value));
    match from_annotations(annotations) {
        Ok(None) => Ok(None),
        Ok(Some(AnnotationChoice::Policy(policy))) => Ok(Some(*policy)),
        Ok(Some(AnnotationChoice::Named(_))) => {
            bail!(
                "service.policy.policy: a file has no policy objects; write weights or keys instead"
            )
        }
        Err(faults) => {
            let fault = |fault: &topology_core::policy::PolicyError| {
                let key = fault.field.strip_prefix(PREFIX).unwrap_or(&fault.field);
                format!("service.policy.{key}: `{}`: {}", fault.value, fault.problem)
            };
            let faults: Vec<String> = faults.iter().map(fault).collect();
            bail!("{}", faults.join("\n"))
        }
    }
}

/// A slice for each endpoint, since each may have a port of its own.
fn slice(at: usize, service: &Service, address: IpAddr, entry: &EndpointEntry) -> EndpointSlice {
    let name = &service.name;
    let port = |port: &ServicePort| SlicePort {
        name: port.name.clone(),
        protocol: port.protocol,
        port: entry.port,
    };
    EndpointSlice {
        name: ObjectName::new(name.namespace.clone(), format!("{}-{at}", name.name)),
        service: name.name.clone(),
        family: Family::of(address),
        ports: service.ports.iter().map(port).collect(),
        endpoints: vec![Endpoint {
            address,
            node: Some(entry.node.as_str().into()),
            zone: None,
            ready: entry.ready,
            serving: entry.ready,
            terminating: false,
            hints: None,
        }],
        hostnames: BTreeMap::default(),
    }
}

fn family(service: &Service) -> Family {
    let first = service.frontends.first();
    first.map_or(Family::V4, |frontend| Family::of(frontend.address))
}

fn address(key: &str, text: &str) -> anyhow::Result<IpAddr> {
    let address = text.parse();
    address.with_context(|| format!("{key}: `{text}` is no IP address; write it as 10.96.0.10"))
}

const fn protocol(transport: Transport) -> Protocol {
    match transport {
        Transport::Tcp => Protocol::Tcp,
        Transport::Udp => Protocol::Udp,
        Transport::Sctp => Protocol::Sctp,
    }
}
