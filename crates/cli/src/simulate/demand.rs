//! The traffic that starts on each Node.

use std::fs;
use std::path::Path;

use rustc_hash::FxHashMap;
use topology_core::model::{Node, ObjectName};
use topology_core::snapshot::Snapshot;

use super::node_zones::NodeZones;
use crate::exit::Failure;

/// Means every Service or every Node in a file of measured rates.
const ALL: &str = "*";

/// The most GiB of a line: sums of larger numbers could be infinite.
const MOST: f64 = 1e15;

/// The amount of traffic that starts on each Node.
#[derive(Debug)]
pub(crate) struct Demand {
    /// The method, as text.
    pub(crate) words: String,
    /// For Services without a measurement; by Node number.
    common: Traffic,
    measured: FxHashMap<ObjectName, Traffic>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Traffic {
    /// The part that starts on each Node, by Node number; the sum is 1.
    pub(crate) parts: Vec<f64>,
    /// The volume: GiB if measured, otherwise 1.
    pub(crate) volume: f64,
}

impl Demand {
    /// Parses `--demand`: `nodes`, `cpu`, or a file.
    ///
    /// # Errors
    /// The file cannot be read, or a line in it is not valid.
    pub(crate) fn read(
        text: &str,
        snapshot: &Snapshot,
        node_zones: &NodeZones,
    ) -> Result<Self, Failure> {
        match text {
            "nodes" => Ok(Self::even(node_zones)),
            "cpu" => Self::by_cpu(snapshot, node_zones),
            path => Self::measured(Path::new(path), snapshot, node_zones),
        }
    }

    /// Every Node sends the same amount.
    pub(crate) fn even(node_zones: &NodeZones) -> Self {
        Self {
            words: "every Node sends the same".to_owned(),
            common: Traffic::of(vec![1.0; node_zones.nodes.len()], 1.0),
            measured: FxHashMap::default(),
        }
    }

    pub(crate) fn of(&self, service: &ObjectName) -> &Traffic {
        self.measured.get(service).unwrap_or(&self.common)
    }

    /// Whether volumes are GiB.
    pub(crate) fn is_measured(&self) -> bool {
        !self.measured.is_empty()
    }

    fn by_cpu(snapshot: &Snapshot, node_zones: &NodeZones) -> Result<Self, Failure> {
        let cpu = |name: &str| snapshot.node(name).map_or(0.0, cpu);
        let parts: Vec<f64> = node_zones
            .nodes
            .iter()
            .map(|node| cpu(&node.name))
            .collect();
        if parts.iter().sum::<f64>() <= 0.0 {
            return Err(Failure::input(
                "--demand cpu: no Node in the input has status.allocatable.cpu; use --demand nodes",
            ));
        }
        Ok(Self {
            words: "every Node sends in proportion to its allocatable CPU".to_owned(),
            common: Traffic::of(parts, 1.0),
            measured: FxHashMap::default(),
        })
    }

    fn measured(path: &Path, snapshot: &Snapshot, node_zones: &NodeZones) -> Result<Self, Failure> {
        let shown = path.display();
        let text = fs::read_to_string(path).map_err(|error| {
            Failure::input(format_args!(
                "--demand {shown}: {error}; write nodes, cpu, or a file of lines such as shop/cart,n1,12.5"
            ))
        })?;
        let mut sums: FxHashMap<ObjectName, Vec<f64>> = FxHashMap::default();
        for (number, line) in (1..).zip(text.lines()) {
            let rates = rate(line, snapshot, node_zones)
                .map_err(|why| Failure::input(format_args!("{shown}:{number}: {why}")))?;
            for (service, node, gib) in rates {
                let sums = sums
                    .entry(service)
                    .or_insert_with(|| vec![0.0; node_zones.nodes.len()]);
                if let Some(sum) = sums.get_mut(node) {
                    *sum += gib;
                }
            }
        }
        if sums.is_empty() {
            return Err(Failure::input(format_args!(
                "{shown}: the file has no rates; write lines such as shop/cart,n1,12.5"
            )));
        }
        let sums = sums.into_iter();
        let measured = sums.map(|(service, parts)| {
            let volume = parts.iter().sum();
            (service, Traffic::of(parts, volume))
        });
        Ok(Self {
            words: format!("measured rates of {shown}"),
            common: Traffic {
                volume: 0.0,
                ..Traffic::of(vec![1.0; node_zones.nodes.len()], 0.0)
            },
            measured: measured.collect(),
        })
    }
}

impl Traffic {
    fn of(mut parts: Vec<f64>, volume: f64) -> Self {
        let sum: f64 = parts.iter().sum();
        if sum > 0.0 {
            for part in &mut parts {
                *part /= sum;
            }
        }
        Self { parts, volume }
    }
}

/// A rate: Service, Node number, GiB.
type Rate = (ObjectName, usize, f64);

/// Parses a line of a file of rates; `None` for a blank line, a comment or a heading.
fn rate(line: &str, snapshot: &Snapshot, node_zones: &NodeZones) -> Result<Vec<Rate>, String> {
    let line = line.split('#').next().unwrap_or_default().trim();
    let words: Vec<&str> = line
        .split([',', ' ', '\t'])
        .filter(|word| !word.is_empty())
        .collect();
    if words.first().is_none_or(|first| is_heading(first)) {
        return Ok(Vec::new());
    }
    let &[service, node, gib] = words.as_slice() else {
        return Err(format!(
            "{line:?} is not a rate; write service,node,GiB such as shop/cart,n1,12.5"
        ));
    };
    let rate: f64 = gib
        .parse()
        .ok()
        .filter(|gib: &f64| (0.0..=MOST).contains(gib))
        .ok_or_else(|| {
            format!(
                "{gib:?} is not an amount of traffic; write GiB as a number up to {MOST}, such as 12.5"
            )
        })?;
    let services = services(service, snapshot)?;
    let nodes = nodes(node, node_zones)?;
    let each = rate / count(nodes.len()) / count(services.len());
    let rates = services
        .iter()
        .flat_map(|service| nodes.iter().map(|node| (service.clone(), *node, each)));
    Ok(rates.collect())
}

/// Whether a line with this first word has the names of the columns.
fn is_heading(word: &str) -> bool {
    word.starts_with("service") && !word.contains('/')
}

fn services(text: &str, snapshot: &Snapshot) -> Result<Vec<ObjectName>, String> {
    if text == ALL {
        return Ok(snapshot
            .services()
            .map(|service| service.name.clone())
            .collect());
    }
    let known = ObjectName::parse(text).filter(|name| snapshot.service(name).is_some());
    known.map(|name| vec![name]).ok_or_else(|| {
        format!("the input has no Service {text}; write namespace/name, or * for all")
    })
}

fn nodes(text: &str, node_zones: &NodeZones) -> Result<Vec<usize>, String> {
    if text == ALL {
        return Ok((0..node_zones.nodes.len()).collect());
    }
    let number = node_zones.node(text);
    number
        .map(|number| vec![number])
        .ok_or_else(|| format!("the input has no Node {text}; write a Node's name, or * for all"))
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counts of Nodes and Services stay far below 2^52"
)]
fn count(number: usize) -> f64 {
    number.max(1) as f64
}

#[expect(
    clippy::cast_precision_loss,
    reason = "thousandths of a CPU stay far below 2^52"
)]
fn cpu(node: &Node) -> f64 {
    node.cpu_milli as f64
}
