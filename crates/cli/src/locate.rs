//! `ipvs-topo locate`: shows the Node on which an address is, its labels, and the object that says so.

// A new source must be handled everywhere, not by a `_` arm.
#![warn(clippy::wildcard_enum_match_arm)]

pub mod view;

use std::net::IpAddr;

use agent_api::describe;
use agent_api::view::WarningView;
use cluster::ServiceSelection;
use cluster::object::Kind;
use cluster::source::{Loaded, Options};
use cluster::warning::{Subject, Warning};
use topology_core::address_index::{AddressIndex, AddressSource, Location};

use self::view::LocationView;
use crate::args::{LocateArgs, TextFormat};
use crate::exit::{ExitStatus, Failure};
use crate::output::{location, print};

/// # Errors
/// The input cannot be read, or nothing in it has the address.
pub fn run(args: &LocateArgs) -> Result<ExitStatus, Failure> {
    let loaded = args.origin.get().read(&Options {
        services: ServiceSelection::All,
        ..Options::default()
    })?;
    let view = locate(&loaded, args.address)?;
    print::result(&match args.output {
        TextFormat::Json => print::json(&view)?,
        TextFormat::Text => location::text(&view, print::width()),
    })?;
    args.strict
        .end(view.warnings.len(), args.output.reader(), ExitStatus::Fine)
}

fn locate(loaded: &Loaded, address: IpAddr) -> Result<LocationView, Failure> {
    let index = AddressIndex::of(&loaded.snapshot);
    let location = index.locate(&loaded.snapshot, address);
    let location = location.ok_or_else(|| missing(loaded, &index, address))?;
    Ok(view(address, &location, warnings(loaded)))
}

fn missing(loaded: &Loaded, index: &AddressIndex, address: IpAddr) -> Failure {
    let at_cluster_ip = index.users(address).iter().find(|user| user.is_cluster_ip);
    let mut words = match at_cluster_ip {
        Some(user) => {
            let service = &user.service;
            format!(
                "{address} is a cluster IP of Service {service}, which is on every node; \
                 `ipvs-topo explain {service}` shows its endpoints"
            )
        }
        None => format!(
            "no Node has {address} or a pod range around it, no PodMap has it, and no EndpointSlice has it with a nodeName"
        ),
    };
    for warning in warnings(loaded) {
        words.push_str("; ");
        words.push_str(&warning.text);
    }
    Failure::input(words)
}

/// The warnings about objects that may say where an address is.
fn warnings(loaded: &Loaded) -> Vec<WarningView> {
    let warnings = loaded.warnings.iter();
    let concerning = warnings.filter(|warning| may_have_addresses(warning));
    concerning.map(describe::warning).collect()
}

fn may_have_addresses(warning: &Warning) -> bool {
    match &warning.subject {
        Subject::File => true,
        Subject::Object(key) => {
            matches!(key.kind, Kind::Node | Kind::EndpointSlice | Kind::PodMap)
        }
        Subject::Misnamed(..) | Subject::Other(..) => false,
    }
}

fn view(address: IpAddr, location: &Location<'_>, warnings: Vec<WarningView>) -> LocationView {
    let (range, service) = match location.source {
        AddressSource::PodRange(range) => (Some(range.to_string()), None),
        AddressSource::PodMap | AddressSource::NodeAddress => (None, None),
        AddressSource::Endpoint(service) => (None, Some(service.to_string())),
    };
    let labels = location.labels.map(|labels| {
        let labels = labels.iter();
        let labels = labels.map(|(key, value)| (key.to_string(), value.to_string()));
        labels.collect()
    });
    LocationView {
        address,
        node: location.node_name.to_string(),
        pod: location.pod.map(ToString::to_string),
        labels,
        source: code(location.source).to_owned(),
        range,
        service,
        words: words(location),
        warnings,
    }
}

const fn code(source: AddressSource<'_>) -> &'static str {
    match source {
        AddressSource::PodRange(_) => "podRange",
        AddressSource::PodMap => "podMap",
        AddressSource::NodeAddress => "nodeAddress",
        AddressSource::Endpoint(_) => "endpoint",
    }
}

fn words(location: &Location<'_>) -> String {
    let node = location.node_name;
    match location.source {
        AddressSource::PodRange(range) => {
            format!("{range} in spec.podCIDRs of Node {node} is the smallest pod range around it")
        }
        AddressSource::PodMap => format!("PodMap {node} has it"),
        AddressSource::NodeAddress => {
            format!("it is an address of Node {node}: the node, or a pod on the host network")
        }
        AddressSource::Endpoint(service) => {
            format!("an EndpointSlice of Service {service} has it with nodeName {node}")
        }
    }
}
