//! Starts the lab: builds what is missing, then starts the network, the control plane and the nodes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::bail;

use super::folder::Folder;
use super::network::{self, Network};
use super::node::{self, NODES};
use super::{disk, nodes, payload, root};
use crate::controlplane::config::ControlPlaneConfig;
use crate::controlplane::parts;
use crate::controlplane::program::{self, Version};
use crate::vm::Machines;
use crate::vm::build::Profile;
use crate::vm::kernel::{Kernel, Line};

/// What to start.
pub(super) struct LabPlan<'a> {
    pub(super) version: Version,
    /// The kernel of every node; without one each node has a different one.
    pub(super) kernel: Option<Line>,
    /// The build profile of our images.
    pub(super) profile: Profile,
    /// Archives of more images for the nodes.
    pub(super) images: &'a [PathBuf],
}

impl LabPlan<'_> {
    /// The plan of tests: kernels that differ, and images that are fast to build.
    pub(super) fn of_test(version: Version) -> Self {
        Self {
            version,
            kernel: None,
            profile: Profile::Guest,
            images: &[],
        }
    }
}

/// Starts everything. On failure it stops everything; the error contains the ends of the consoles.
pub(super) fn up(folder: &Folder, plan: &LabPlan<'_>) -> anyhow::Result<()> {
    if folder.is_running() {
        bail!("it runs already: `cargo xtask lab down` ends it");
    }
    folder.end()?;
    let machines = Machines::open()?;
    let kernels = kernels(&machines, plan.kernel)?;
    let packages = root::packages(&machines)?;
    let tools = disk::tools(&machines)?;
    let root = root::make(&machines, plan.version, &packages, &tools, &kernels)?;
    let mut images = crate::image::write_all(&folder.images()?, plan.profile)?;
    images.extend_from_slice(plan.images);
    let program = program::build(plan.version)?;
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
        // The first error is returned.
        drop(folder.end_processes());
    })
}

/// Returns the kernel of each node: the supported kernel lines in turn, or the line `only` for all.
fn kernels(machines: &Machines, only: Option<Line>) -> anyhow::Result<Vec<Kernel>> {
    let lines = Line::ALL.into_iter().cycle().take(NODES.len());
    lines
        .map(|line| machines.kernel(only.unwrap_or(line)))
        .collect()
}

fn start_controlplane(folder: &Folder, network: &Network, program: &Path) -> anyhow::Result<()> {
    let names = NODES.map(str::to_owned).to_vec();
    let config = ControlPlaneConfig::with_nodes(network.launch(), network::OUTSIDE, names);
    let controlplane = folder.controlplane();
    controlplane.create(config, program, None)?;
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
    network.route(&machines.tools, &nodes::pod_ranges(up))
}
