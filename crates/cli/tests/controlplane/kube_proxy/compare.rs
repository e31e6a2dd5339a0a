//! Random clusters for both proxies, and the comparison of their tables.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use cli::args::{AllowListArgs, ServiceArgs};
use cli::offline::Offline;
use cli::origin::Origin;
use cli::output::save;
use serde_json::{Value, json};
use topology_core::resolve::ResolvedServer;

use super::explain::Comparison;
use super::facts::{Facts, NODE};
use super::table::{self, Table};
use crate::random::{self, Dice};

/// The options of both proxies.
const NODE_PORT_RANGES: [&str; 2] = ["192.168.7.0/24", "fd00:7::/64"];

/// A random cluster without policies and annotations, and with Services that claim the address of another.
pub(crate) fn cluster(seed: u64) -> Vec<(String, Value)> {
    let mut objects = random::cluster(seed);
    objects.retain(|(path, _)| !path.contains("ipvs-topo"));
    let mut dice = Dice::new(seed);
    let mut first = None;
    for (_, object) in &mut objects {
        if let Some(metadata) = object
            .pointer_mut("/metadata")
            .and_then(Value::as_object_mut)
        {
            metadata.remove("annotations");
        }
        if let Some(ip) = object.pointer_mut("/status/loadBalancer/ingress/0/ip") {
            match &first {
                Some(first) if dice.is(25) => *ip = json!(first),
                Some(_) => {}
                None => first = ip.as_str().map(str::to_owned),
            }
        }
    }
    objects
}

fn read(path: &Path) -> Offline {
    let args = ServiceArgs {
        service_cidr: Vec::new(),
        scheduler: topology_core::scheduler::Scheduler::Wrr,
        nodeport_addresses: NODE_PORT_RANGES
            .map(|range| range.parse().unwrap())
            .to_vec(),
        fwmark_mask: topology_core::snapshot::MarkMask::default(),
        allow_lists: AllowListArgs::default(),
    };
    let now = jiff::Timestamp::now().as_millisecond();
    let read = Offline::read(&Origin::Files(path.to_owned()), NODE, &args, now);
    read.unwrap_or_else(|failure| panic!("{}", failure.message()))
}

/// Compares kube-proxy's lines with ours, for the objects in `written`.
pub(crate) fn compare(comparison: &mut Comparison, path: &Path, written: &Value, theirs: &Table) {
    fs::write(path, written.to_string()).unwrap();
    let resolved = read(path).resolve();
    let decisions: BTreeMap<String, &ResolvedServer> = resolved
        .servers
        .iter()
        .map(|one| (one.server.key.to_string(), one))
        .collect();
    let servers: Vec<_> = resolved.servers.iter().map(|one| &one.server).collect();
    let ours = save::save(&servers);
    comparison.add(
        theirs,
        &table::parse(ours.lines()),
        &decisions,
        &Facts::of(written),
    );
}
