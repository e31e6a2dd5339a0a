//! Allocates firewall marks to Service ports whose outside clients get other endpoints than inside clients.
//!
//! One address and port has one list of real servers in IPVS. With `externalTrafficPolicy: Local` the packets of outside
//! clients get a mark, and a virtual server for the mark has the endpoints of this node.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::hash::Fnv;
use crate::model::{ObjectName, Protocol, Service};

/// The bits of firewall marks, unless configured otherwise.
///
/// A mark has the highest and the lowest of these bits, so it differs from marks of programs that use only upper bits
/// (Calico, Cilium) or only lower bits (kube-proxy: 0x4000 and 0x8000).
pub const DEFAULT_MARK_MASK: u32 = 0x20ff_ffff;

/// The bits that firewall marks may have: at least two. Prints and parses as hexadecimal number: `0x20ffffff`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MarkMask(u32);

impl MarkMask {
    /// `None` with less than two bits: then a mark could not have both a highest and a lowest bit.
    pub const fn new(bits: u32) -> Option<Self> {
        if bits.count_ones() < 2 {
            return None;
        }
        Some(Self(bits))
    }

    /// The bits.
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// The number of different marks: every mark has the highest and the lowest bit.
    pub const fn marks(self) -> u64 {
        1 << (self.0.count_ones() - 2)
    }
}

impl Default for MarkMask {
    fn default() -> Self {
        Self(DEFAULT_MARK_MASK)
    }
}

impl fmt::Display for MarkMask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

impl FromStr for MarkMask {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
        let digits = digits.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let bits = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
        let bits = bits.ok_or_else(|| {
            format!("{text:?} is not a mask of 32 bits; write for example {DEFAULT_MARK_MASK:#x}")
        })?;
        Self::new(bits).ok_or_else(|| {
            format!(
                "{text:?} has less than two bits; every mark has the highest and the lowest one, and the others number \
                 the Service ports; write for example {DEFAULT_MARK_MASK:#x}"
            )
        })
    }
}

/// A Service port that can have a firewall mark. Both families use the same mark.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MarkedPort {
    /// Namespace and name of the Service.
    pub service: ObjectName,
    /// The name of the port; empty if it has none.
    pub port_name: Arc<str>,
    /// The protocol of the port.
    pub protocol: Protocol,
}

/// The allocated marks.
#[derive(Debug)]
pub(super) struct FirewallMarks {
    mask: MarkMask,
    by_port: FxHashMap<MarkedPort, u32>,
    taken: FxHashSet<u32>,
    /// Marks of virtual servers of other programs.
    foreign: FxHashSet<u32>,
    /// Released marks, with their former ports. The kernel may still use them, so no other port gets one of them. A port
    /// has several if another program took one of them before the kernel was done with it.
    resting: BTreeSet<(MarkedPort, u32)>,
    /// Released marks that may be free now.
    unchecked: Vec<(MarkedPort, u32)>,
    /// Ports that need a mark while all are in use.
    waiting: BTreeSet<MarkedPort>,
    /// Ports whose marks were allocated or freed since the last call.
    changed: FxHashSet<MarkedPort>,
}

impl Default for FirewallMarks {
    fn default() -> Self {
        Self::new(MarkMask::default())
    }
}

impl FirewallMarks {
    pub(super) fn new(mask: MarkMask) -> Self {
        Self {
            mask,
            by_port: FxHashMap::default(),
            taken: FxHashSet::default(),
            foreign: FxHashSet::default(),
            resting: BTreeSet::new(),
            unchecked: Vec::new(),
            waiting: BTreeSet::new(),
            changed: FxHashSet::default(),
        }
    }

    /// The bits of the marks.
    pub(super) const fn mask(&self) -> MarkMask {
        self.mask
    }

    /// The mark of a port.
    pub(super) fn of(&self, port: &MarkedPort) -> Option<u32> {
        self.by_port.get(port).copied()
    }

    /// One mark of each port, in no order: the one that it has, or one that it had and that the kernel may still use. After
    /// another program took a mark that rests, its former port may have a second one, which is not among them.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&MarkedPort, u32)> {
        let resting = self.resting.iter().map(|(port, mark)| (port, *mark));
        let former = resting.filter(|(port, _)| !self.by_port.contains_key(port));
        let held = self.by_port.iter().map(|(port, mark)| (port, *mark));
        held.chain(former)
    }

    /// Gives `port` a mark of an earlier process, unless the mark does not fit the mask or is taken.
    pub(super) fn restore(&mut self, port: MarkedPort, mark: u32) {
        if self.fits(mark) && !self.by_port.contains_key(&port) && self.taken.insert(mark) {
            self.by_port.insert(port, mark);
        }
    }

    /// Releases the marks of `old` and allocates those of `new`. A port that both have keeps its mark.
    pub(super) fn replace(&mut self, old: Option<&Service>, new: Option<&Service>) {
        let kept: FxHashSet<MarkedPort> = new.into_iter().flat_map(marked_ports).collect();
        let gone = old.into_iter().flat_map(marked_ports);
        for port in gone.filter(|port| !kept.contains(port)) {
            self.release(&port);
        }
        for port in kept {
            self.allocate(port);
        }
    }

    /// The released marks of a Service. The next [`Self::free_released`] checks them.
    pub(super) fn review_released(&mut self, service: &ObjectName) -> Vec<u32> {
        let first = MarkedPort {
            service: service.clone(),
            port_name: "".into(),
            protocol: Protocol::Tcp,
        };
        let resting = self.resting.range((first, 0)..);
        let of_service = resting.take_while(|(port, _)| port.service == *service);
        let released: Vec<(MarkedPort, u32)> = of_service.cloned().collect();
        let marks = released.iter().map(|(_, mark)| *mark).collect();
        self.unchecked.extend(released);
        marks
    }

    /// Has the next [`Self::free_released`] check every released mark.
    pub(super) fn review_all_released(&mut self) {
        self.unchecked = self.resting.iter().cloned().collect();
    }

    /// Makes marks free that were released or reviewed since the last call and that the kernel does not use, and
    /// allocates them to ports that wait for one. Returns their Services.
    pub(super) fn free_released(&mut self, is_used: impl Fn(u32) -> bool) -> Vec<ObjectName> {
        for released in std::mem::take(&mut self.unchecked) {
            if !is_used(released.1) && self.resting.remove(&released) {
                let (port, mark) = released;
                self.taken.remove(&mark);
                self.changed.insert(port);
            }
        }
        self.serve_waiting()
    }

    /// Allocates no mark of `foreign`, which replaces the marks of the last call. Ports that have one of them get
    /// another. Returns the Services whose marks changed.
    pub(super) fn avoid(&mut self, foreign: impl Iterator<Item = u32>) -> Vec<ObjectName> {
        let foreign: FxHashSet<u32> = foreign.filter(|mark| self.fits(*mark)).collect();
        if foreign == self.foreign {
            return Vec::new();
        }
        self.foreign = foreign;
        let ports = self.by_port.iter();
        let mut moved: Vec<(MarkedPort, u32)> = ports
            .filter(|(_, mark)| self.foreign.contains(mark))
            .map(|(port, mark)| (port.clone(), *mark))
            .collect();
        moved.sort_unstable();
        for (port, mark) in &moved {
            self.by_port.remove(port);
            self.taken.remove(mark);
            self.changed.insert(port.clone());
        }
        let mut services: Vec<ObjectName> = Vec::new();
        for (port, _) in moved {
            services.push(port.service.clone());
            self.allocate(port);
        }
        services.extend(self.serve_waiting());
        services
    }

    /// Allocates free marks to ports that wait for one. Returns their Services.
    fn serve_waiting(&mut self) -> Vec<ObjectName> {
        let mut served = Vec::new();
        while !self.is_full()
            && let Some(port) = self.waiting.pop_first()
        {
            served.push(port.service.clone());
            self.allocate(port);
        }
        served
    }

    /// Whether all marks are in use.
    fn is_full(&self) -> bool {
        let foreign = self.foreign.iter();
        let foreign = foreign.filter(|mark| !self.taken.contains(mark)).count();
        u64::try_from(self.taken.len() + foreign).is_ok_and(|taken| taken >= self.mask.marks())
    }

    /// Whether the mark is one that could be allocated.
    fn fits(&self, mark: u32) -> bool {
        mark & !self.mask.bits() == 0 && mark & self.fixed() == self.fixed()
    }

    /// Releases every mark whose port is not in `current`.
    pub(super) fn retain(&mut self, current: &FxHashSet<MarkedPort>) {
        let unused: Vec<MarkedPort> = self
            .by_port
            .keys()
            .filter(|port| !current.contains(port))
            .cloned()
            .collect();
        for port in unused {
            self.release(&port);
        }
    }

    /// The ports whose marks were allocated or freed since the last call, with their marks, sorted.
    pub(super) fn take_changed(&mut self) -> Vec<(MarkedPort, Option<u32>)> {
        let changed = std::mem::take(&mut self.changed).into_iter();
        let mut changed: Vec<_> = changed
            .map(|port| {
                let mark = self.of(&port);
                let mark = mark.or_else(|| self.released(&port).next());
                (port, mark)
            })
            .collect();
        changed.sort_unstable();
        changed
    }

    fn release(&mut self, port: &MarkedPort) {
        self.waiting.remove(port);
        if let Some(mark) = self.by_port.remove(port) {
            self.resting.insert((port.clone(), mark));
            self.unchecked.push((port.clone(), mark));
        }
    }

    /// The released marks of a port.
    fn released(&self, port: &MarkedPort) -> impl Iterator<Item = u32> {
        let all = (port.clone(), 0)..=(port.clone(), u32::MAX);
        self.resting.range(all).map(|(_, mark)| *mark)
    }

    fn allocate(&mut self, port: MarkedPort) {
        if self.by_port.contains_key(&port) {
            return;
        }
        let is_free = |mark: &u32| !self.foreign.contains(mark);
        let released = self.released(&port).find(is_free);
        if let Some(mark) = released {
            self.resting.remove(&(port.clone(), mark));
            self.changed.insert(port.clone());
            self.by_port.insert(port, mark);
            return;
        }
        if self.is_full() {
            self.waiting.insert(port);
            return;
        }
        let free_bits = self.mask.bits() & !self.fixed();
        let first = hash(&port);
        let mut marks = (0..self.mask.marks())
            .map(|nth| self.fixed() | spread(first.wrapping_add(nth), free_bits));
        let is_free = |mark: &u32| !self.taken.contains(mark) && !self.foreign.contains(mark);
        if let Some(mark) = marks.find(is_free) {
            self.taken.insert(mark);
            self.changed.insert(port.clone());
            self.by_port.insert(port, mark);
        }
    }

    /// The bits that every mark has.
    const fn fixed(&self) -> u32 {
        let mask = self.mask.bits();
        let highest = match mask.checked_ilog2() {
            Some(bit) => 1 << bit,
            None => 0,
        };
        highest | (mask & mask.wrapping_neg())
    }
}

/// The ports of `service` that need a mark.
pub(super) fn marked_ports(service: &Service) -> impl Iterator<Item = MarkedPort> {
    let ports = service.splits_clients().then_some(&service.ports);
    ports.into_iter().flatten().map(|port| MarkedPort {
        service: service.name.clone(),
        port_name: Arc::clone(&port.name),
        protocol: port.protocol,
    })
}

/// A hash that is the same on every machine, so that a new process usually finds the same marks.
fn hash(port: &MarkedPort) -> u64 {
    let MarkedPort {
        service,
        port_name,
        protocol,
    } = port;
    let texts = [
        &*service.namespace,
        &*service.name,
        &**port_name,
        protocol.as_str(),
    ];
    let hash = texts.into_iter().fold(Fnv::default(), |hash, text| {
        hash.bytes(text.as_bytes()).bytes(&[0])
    });
    hash.finish()
}

/// Distributes the lowest bits of `value` over the bits of `mask`.
fn spread(mut value: u64, mask: u32) -> u32 {
    let mut spread = 0;
    for bit in (0..u32::BITS)
        .map(|bit| 1 << bit)
        .filter(|bit| mask & bit != 0)
    {
        if value & 1 == 1 {
            spread |= bit;
        }
        value >>= 1;
    }
    spread
}

#[cfg(test)]
mod tests;
