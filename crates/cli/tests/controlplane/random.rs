//! Random clusters that a real API server accepts.

#[path = "random/policies.rs"]
mod policies;
#[path = "random/service.rs"]
pub(crate) mod service;
#[path = "random/slices.rs"]
mod slices;

use serde_json::{Value, json};

/// The namespace of random clusters.
pub(crate) const NAMESPACE: &str = "random";

/// A random number generator with a fixed sequence for each seed.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub(crate) fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from((self.0 >> 11) % sides as u64).unwrap()
    }

    /// The numbers below `count` in random order.
    pub(crate) fn shuffled(&mut self, count: usize) -> Vec<usize> {
        let mut numbers: Vec<usize> = (0..count).collect();
        for at in 1..count {
            numbers.swap(at, self.roll(at + 1));
        }
        numbers
    }

    /// True with a probability of `percent`.
    pub(crate) fn is(&mut self, percent: usize) -> bool {
        self.roll(100) < percent
    }

    pub(crate) fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        *choices.get(self.roll(choices.len())).unwrap()
    }
}

const ZONES: [&str; 3] = ["a", "b", "c"];

/// The objects of a cluster, each with the path of its collection.
pub(crate) fn cluster(seed: u64) -> Vec<(String, Value)> {
    let mut dice = Dice::new(seed);
    let nodes = 2 + dice.roll(4);
    let mut objects: Vec<_> = (0..nodes)
        .map(|index| ("/api/v1/nodes".to_owned(), node(&mut dice, index)))
        .collect();
    for index in 0..=dice.roll(4) {
        let service = service::service(&mut dice, index, nodes);
        objects.extend(slices::slices(&mut dice, index, &service, nodes));
        let path = format!("/api/v1/namespaces/{NAMESPACE}/services");
        objects.push((path, service));
    }
    policies::policies(&mut dice, &mut objects);
    objects
}

fn node(dice: &mut Dice, index: usize) -> Value {
    let name = format!("n{index}");
    let ready = if dice.is(85) { "True" } else { "False" };
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": {
            "kubernetes.io/hostname": name,
            "topology.kubernetes.io/region": "r",
            "topology.kubernetes.io/zone": dice.of(&ZONES),
            "example.com/rack": dice.of(&["1", "2", "3", "4"]),
        }},
        "status": {
            "addresses": [
                {"type": "InternalIP", "address": node_address(index, "IPv4")},
                {"type": "InternalIP", "address": node_address(index, "IPv6")},
            ],
            "allocatable": {"cpu": dice.of(&["2", "4", "3920m"])},
            "conditions": [{"type": "Ready", "status": ready}],
        },
    })
}

/// The address of a Node in a family.
pub(crate) fn node_address(index: usize, family: &str) -> String {
    match family {
        "IPv6" => format!("fd00:7::{}", index + 1),
        _ => format!("192.168.7.{}", index + 1),
    }
}
