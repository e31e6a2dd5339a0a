//! Converts `discovery.k8s.io` `EndpointSlice` (KP-IN-14 to 16).

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::num::NonZeroU16;
use std::sync::Arc;

use jiff::Timestamp;
use rustc_hash::FxHashSet;
use topology_core::model::{Endpoint, EndpointSlice, Family, Hints, SlicePort};

use super::address;
use super::meta;
use super::ports;
use super::report::Report;
use crate::ServiceSelection;
use crate::intern::Interner;
use crate::object::{Ignored, ObjectKey};
use object_tree::{Field, Node};

/// The label with the name of the slice's Service.
const LABEL_SERVICE_NAME: &str = "kubernetes.io/service-name";
/// The annotation with the time when a Pod or the Service changed, which changed the slice.
const ANNOTATION_TRIGGER_TIME: &str = "endpoints.kubernetes.io/last-change-trigger-time";

/// When the cause of the last change of a slice was (KP-IN-18). Text that is no time counts as
/// absent, as in kube-proxy.
pub(crate) fn trigger_time(slice: &Node) -> Option<Timestamp> {
    let annotations = slice.get("metadata")?.get("annotations")?;
    let text = annotations.get(ANNOTATION_TRIGGER_TIME)?.text()?;
    text.parse().ok()
}

/// Returns `Ok(None)` if the slice is not valid.
pub(crate) fn convert(
    root: &Field<'_>,
    key: &ObjectKey,
    services: ServiceSelection,
    interner: &mut Interner,
    report: &mut Report,
) -> Result<Option<EndpointSlice>, Ignored> {
    ours(root, services)?;
    let Some(family) = family(root, report)? else {
        return Ok(None);
    };
    let metadata = root.get("metadata");
    let labels = metadata.get("labels");
    let owner = labels.entry(LABEL_SERVICE_NAME);
    let Some(service) = owner.name(report).filter(|name| !name.is_empty()) else {
        let message =
            format!("no label {LABEL_SERVICE_NAME}, so the endpoints belong to no Service");
        report.warn(
            &labels,
            message,
            format!("add `{LABEL_SERVICE_NAME}: <name of the Service>`"),
        );
        return Err(Ignored::NoService);
    };
    let ports = slice_ports(root, interner, report);
    let (endpoints, hostnames) = endpoints(root, family, services, interner, report);
    Ok(Some(EndpointSlice {
        name: key.name.clone(),
        service: interner.text(service),
        family,
        ports,
        endpoints,
        hostnames,
    }))
}

/// Fails if no node proxy serves the slice (KP-IN-02), unless it is selected anyway.
fn ours(root: &Field<'_>, services: ServiceSelection) -> Result<(), Ignored> {
    let is_headless = meta::has_label(root, meta::LABEL_HEADLESS);
    match services {
        ServiceSelection::All => return Ok(()),
        ServiceSelection::ProxiedAndHeadless if is_headless => return Ok(()),
        ServiceSelection::Proxied | ServiceSelection::ProxiedAndHeadless => {}
    }
    if meta::has_label(root, meta::LABEL_PROXY_NAME) {
        return Err(Ignored::OtherProxy);
    }
    if is_headless {
        return Err(Ignored::Headless);
    }
    Ok(())
}

fn family(root: &Field<'_>, report: &mut Report) -> Result<Option<Family>, Ignored> {
    let field = root.get("addressType");
    match field.text(report) {
        Some("IPv4") => Ok(Some(Family::V4)),
        Some("IPv6") => Ok(Some(Family::V6)),
        Some("FQDN") => Err(Ignored::Fqdn),
        Some(other) => {
            let message = format!("`{other}` is not an address type, so the slice cannot be used");
            report.warn(&field, message, "use IPv4 or IPv6");
            Ok(None)
        }
        None => {
            report.warn(
                &field,
                "missing, so the slice cannot be used",
                "add `addressType: IPv4` or IPv6",
            );
            Ok(None)
        }
    }
}

fn slice_ports(root: &Field<'_>, interner: &mut Interner, report: &mut Report) -> Vec<SlicePort> {
    let listed = root.get("ports");
    let mut found: Vec<SlicePort> = Vec::new();
    // A slice may have 20,000 ports: a hash set avoids comparing each port with all others.
    let mut seen = FxHashSet::default();
    for entry in listed.items(report) {
        let Some(port) = slice_port(&entry, interner, report) else {
            continue;
        };
        if !seen.insert((Arc::clone(&port.name), port.protocol)) {
            let message = format!(
                "a second {} port called `{}`; it is skipped",
                port.protocol, port.name
            );
            report.warn(&entry, message, "give each port its own name");
            continue;
        }
        found.push(port);
    }
    found.shrink_to_fit();
    found
}

fn slice_port(
    entry: &Field<'_>,
    interner: &mut Interner,
    report: &mut Report,
) -> Option<SlicePort> {
    let protocol = ports::protocol(entry, report)?;
    let number = entry.get("port");
    if !number.is_present() {
        report.warn(&number, "missing; a port without a number means all ports, which no proxy supports; the port is skipped", "write the pod's port");
        return None;
    }
    let port: NonZeroU16 = ports::number(&number, report)?;
    let name = interner.text(entry.get("name").name(report).unwrap_or_default());
    Some(SlicePort {
        name,
        protocol,
        port,
    })
}

/// The endpoints, and the hostnames by their positions.
fn endpoints(
    root: &Field<'_>,
    family: Family,
    services: ServiceSelection,
    interner: &mut Interner,
    report: &mut Report,
) -> (Vec<Endpoint>, BTreeMap<usize, Arc<str>>) {
    let listed = root.get("endpoints");
    let (mut found, mut hostnames) = (Vec::new(), BTreeMap::new());
    for entry in listed.items(report) {
        let Some(endpoint) = endpoint(&entry, family, interner, report) else {
            continue;
        };
        if let Some(hostname) = hostname(&entry, services, interner, report) {
            hostnames.insert(found.len(), hostname);
        }
        found.push(endpoint);
    }
    found.shrink_to_fit();
    (found, hostnames)
}

fn endpoint(
    entry: &Field<'_>,
    family: Family,
    interner: &mut Interner,
    report: &mut Report,
) -> Option<Endpoint> {
    if !entry.is_map(report) {
        return None;
    }
    let address = first_address(entry, family, report)?;
    let conditions = entry.get("conditions");
    let condition = |name: &str, absent: bool, report: &mut Report| {
        conditions.get(name).boolean(report).unwrap_or(absent)
    };
    Some(Endpoint {
        address,
        node: place(
            entry,
            "nodeName",
            "kubernetes.io/hostname",
            interner,
            report,
        ),
        zone: place(
            entry,
            "zone",
            "topology.kubernetes.io/zone",
            interner,
            report,
        ),
        ready: condition("ready", true, report),
        serving: condition("serving", true, report),
        terminating: condition("terminating", false, report),
        hints: hints(entry, interner, report),
    })
}

/// The endpoint's first address. Further addresses are alternatives of the same pod, and every
/// proxy uses the first (KP-IN-14).
fn first_address(entry: &Field<'_>, family: Family, report: &mut Report) -> Option<IpAddr> {
    let listed = entry.get("addresses");
    let mut items = listed.items(report);
    let Some(first) = items.next() else {
        report.warn(
            &listed,
            "no address; the endpoint is skipped",
            "write the pod's address",
        );
        return None;
    };
    if let Some(second) = items.next() {
        report.warn(
            &second,
            "only an endpoint's first address is used",
            "give each pod its own entry",
        );
    }
    let address = address::parse_usable(&first, "the endpoint", report)?;
    if Family::of(address) != family {
        let message =
            format!("{address} is not of the slice's addressType; the endpoint is skipped");
        report.warn(
            &first,
            message,
            "put IPv4 and IPv6 addresses into separate slices",
        );
        return None;
    }
    Some(address)
}

/// A field of the endpoint, or the label with the same meaning in the map that `v1beta1` has
/// (`topology`) and `v1` still shows (`deprecatedTopology`).
fn place(
    entry: &Field<'_>,
    field: &str,
    label: &str,
    interner: &mut Interner,
    report: &mut Report,
) -> Option<Arc<str>> {
    let old = [entry.get("topology"), entry.get("deprecatedTopology")];
    let text = entry.get(field).name(report).or_else(|| {
        let [first, second] = &old;
        first
            .entry(label)
            .name(report)
            .or_else(|| second.entry(label).name(report))
    });
    text.filter(|text| !text.is_empty())
        .map(|text| interner.text(text))
}

fn hints(entry: &Field<'_>, interner: &mut Interner, report: &mut Report) -> Option<Box<Hints>> {
    let field = entry.get("hints");
    if !field.is_present() || !field.is_map(report) {
        return None;
    }
    let mut names = |list: &str| {
        let listed = field.get(list);
        let mut found: Vec<Arc<str>> = Vec::new();
        for item in listed.items(report) {
            let name = item.get("name");
            found.extend(
                name.name(report)
                    .filter(|name| !name.is_empty())
                    .map(|name| interner.text(name)),
            );
        }
        found.shrink_to_fit();
        found
    };
    let hints = Hints {
        zones: names("forZones"),
        nodes: names("forNodes"),
    };
    (!hints.zones.is_empty() || !hints.nodes.is_empty()).then(|| Box::new(hints))
}

/// The `hostname` of an endpoint, for DNS.
fn hostname(
    entry: &Field<'_>,
    services: ServiceSelection,
    interner: &mut Interner,
    report: &mut Report,
) -> Option<Arc<str>> {
    match services {
        ServiceSelection::Proxied | ServiceSelection::ProxiedAndHeadless => None,
        ServiceSelection::All => {
            let field = entry.get("hostname");
            let hostname = field.name(report).filter(|name| !name.is_empty());
            hostname.map(|hostname| interner.text(hostname))
        }
    }
}
