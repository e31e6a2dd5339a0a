//! Finds the slices of each port of a Service: those with a port of the same name and protocol.
//!
//! A Service and a slice may both have 20,000 ports. With many ports a table is used instead of comparing all pairs.

use rustc_hash::FxHashMap;

use crate::model::{EndpointSlice, Family, Protocol, ServicePort, SlicePort};

/// Up to this many Service ports, searching the slices for each port is faster than a table.
const FEW: usize = 4;

/// A slice, and the port number of its endpoints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PortTarget<'a> {
    pub(super) slice: &'a EndpointSlice,
    pub(super) port: u16,
}

/// The slices of one port.
pub(super) type PortTargets<'a> = Vec<PortTarget<'a>>;

/// The slices of all ports of one Service.
#[derive(Debug)]
pub(super) enum Targets<'a> {
    /// Searched for each port.
    Slices(&'a [EndpointSlice]),
    /// By protocol and name, in the order of slices and of the ports in each.
    Ports(FxHashMap<(Protocol, &'a str), PortTargets<'a>>),
}

impl<'a> Targets<'a> {
    /// Prepares the lookup of so many ports of a Service in its slices.
    pub(super) fn of(ports: usize, slices: &'a [EndpointSlice]) -> Self {
        if ports <= FEW {
            Self::Slices(slices)
        } else {
            Self::table(slices)
        }
    }

    fn table(slices: &'a [EndpointSlice]) -> Self {
        let mut ports: FxHashMap<_, PortTargets<'a>> = FxHashMap::default();
        for slice in slices {
            for port in &slice.ports {
                let targets = ports.entry((port.protocol, &*port.name)).or_default();
                targets.push(PortTarget::new(slice, port));
            }
        }
        Self::Ports(ports)
    }

    /// The slices of one port in one family.
    pub(super) fn of_port(&self, port: &ServicePort, family: Family) -> PortTargets<'a> {
        let is_of_family = |target: &PortTarget<'_>| target.slice.family == family;
        match self {
            Self::Slices(slices) => {
                let is_same =
                    |own: &&SlicePort| own.protocol == port.protocol && own.name == port.name;
                let of_slice = |slice: &'a EndpointSlice| {
                    let ports = slice.ports.iter().filter(is_same);
                    ports.map(move |port| PortTarget::new(slice, port))
                };
                let found = slices.iter().flat_map(of_slice);
                found.filter(is_of_family).collect()
            }
            Self::Ports(ports) => {
                let found = ports.get(&(port.protocol, &*port.name));
                let found = found.into_iter().flatten().copied();
                found.filter(is_of_family).collect()
            }
        }
    }
}

impl<'a> PortTarget<'a> {
    fn new(slice: &'a EndpointSlice, port: &SlicePort) -> Self {
        let port = port.port.get();
        Self { slice, port }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::ObjectName;

    fn name(number: u8) -> std::sync::Arc<str> {
        format!("p{number}").into()
    }

    fn protocol(udp: bool) -> Protocol {
        if udp { Protocol::Udp } else { Protocol::Tcp }
    }

    fn slice(number: usize, v6: bool, ports: &[(u8, bool, u16)]) -> EndpointSlice {
        let port = |&(name_of, udp, port): &(u8, bool, u16)| SlicePort {
            name: name(name_of),
            protocol: protocol(udp),
            port: port.try_into().unwrap(),
        };
        EndpointSlice {
            name: ObjectName::new("t", format!("s-{number}")),
            service: "s".into(),
            family: if v6 { Family::V6 } else { Family::V4 },
            ports: ports.iter().map(port).collect(),
            endpoints: Vec::new(),
            hostnames: std::collections::BTreeMap::default(),
        }
    }

    proptest! {
        /// Checks that the table finds the same slices as a search, in the same order.
        #[test]
        fn d13_ports_are_looked_up_as_they_are_looked_for(
            slices in prop::collection::vec(
                (any::<bool>(), prop::collection::vec((0_u8..6, any::<bool>(), 1_u16..9), 0..12)),
                0..6,
            ),
        ) {
            let slices: Vec<_> = slices
                .iter()
                .enumerate()
                .map(|(number, (v6, ports))| slice(number, *v6, ports))
                .collect();
            let table = Targets::table(&slices);
            let scan = Targets::Slices(&slices);
            for number in 0..6 {
                for udp in [false, true] {
                    let port = ServicePort {
                        name: name(number),
                        protocol: protocol(udp),
                        port: 80.try_into().unwrap(),
                        node_port: None,
                    };
                    for family in [Family::V4, Family::V6] {
                        let looked_up = table.of_port(&port, family);
                        let found = scan.of_port(&port, family);
                        prop_assert_eq!(looked_up, found);
                    }
                }
            }
        }
    }
}
