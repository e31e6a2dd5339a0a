//! Bringing the lab up: whatever has to be built, the network, the control plane, the nodes.

use std::collections::BTreeMap;

use anyhow::bail;

use super::folder::Folder;
use super::network::{self, Network};
use super::node::{self, NODES};
use super::{disk, nodes, payload, root};
use crate::controlplane::parts;
use crate::controlplane::program::{self, Version};
use crate::controlplane::site::Site;
use crate::vm::Machines;
use crate::vm::build::Profile;
use crate::vm::kernel::{Kernel, Line};

/// Starts everything; on failure nothing is left but the consoles' last words in the error.
pub(super) fn up(
    folder: &Folder,
    version: Version,
    only: Option<Line>,
    profile: Profile,
) -> anyhow::Result<()> {
    if folder.is_running() {
        bail!("it runs already: `cargo xtask lab down` ends it");
    }
    folder.end()?;
    let machines = Machines::open()?;
    let kernels = kernels(&machines, only)?;
    let packages = root::packages(&machines)?;
    let tools = disk::tools(&machines)?;
    let root = root::make(&machines, version, &packages, &tools, &kernels)?;
    let images = crate::image::write_all(&folder.images()?, profile)?;
    let program = program::build(version)?;
    let network = Network::start(folder, &machines.tools, NODES.len())?;
    let start = || {
        start_controlplane(folder, &network, &program)?;
        let payload = payload::write(folder, &packages, &tools, &images)?;
        let disks = node::Disks {
            root: &root,
            payload: &payload,
        };
        start_nodes(folder, &network, &machines, &kernels, &disks)
    };
    start().inspect_err(|_| {
        // The error that is told is the first one.
        drop(folder.end_processes());
    })
}

/// The kernel of each node: every line that the project supports in turn, or `only` one for all.
fn kernels(machines: &Machines, only: Option<Line>) -> anyhow::Result<Vec<Kernel>> {
    let lines = Line::ALL.into_iter().cycle().take(NODES.len());
    lines
        .map(|line| machines.kernel(only.unwrap_or(line)))
        .collect()
}

fn start_controlplane(
    folder: &Folder,
    network: &Network,
    program: &std::path::Path,
) -> anyhow::Result<()> {
    let names = NODES.map(str::to_owned).to_vec();
    let site = Site::with_nodes(network.launch(), network::OUTSIDE, names);
    let controlplane = folder.controlplane();
    controlplane.create(site, program, None)?;
    parts::start_all(&controlplane)
}

fn start_nodes(
    folder: &Folder,
    network: &Network,
    machines: &Machines,
    kernels: &[Kernel],
    disks: &node::Disks<'_>,
) -> anyhow::Result<()> {
    for (number, (name, kernel)) in (1..).zip(NODES.iter().zip(kernels)) {
        node::make(folder, machines, kernel, disks, number)?;
        node::turn_on(folder, name)?;
    }
    let up = nodes::wait_until_ready(folder, &NODES, &BTreeMap::default())?;
    network.route_pods(&machines.tools, &nodes::pod_ranges(up))
}
