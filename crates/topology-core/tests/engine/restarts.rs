//! Leaving real servers while the process is killed and restarted: guarantees for their connections.

use std::collections::BTreeMap;
use std::net::IpAddr;

use proptest::prelude::*;
use topology_core::mirror::{Mirror, StepOutcome};
use topology_core::model::Protocol;
use topology_core::plan::{Deadline, DiffOptions, Step, diff};
use topology_core::scheduler::Scheduler;
use topology_core::virtual_server::{RealServer, VirtualServer, VirtualServerKey};

use crate::kernel::{Held, HeldReal, Kernel, OPTIONS, POLL, TIMEOUT};

const PORT: u16 = 8080;
const REALS: u8 = 4;

/// The state of an endpoint in the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EndpointState {
    Chosen,
    Unchosen,
    GoingAway,
}

/// The next event.
#[derive(Debug, Clone)]
enum Event {
    Change(u8, EndpointState),
    Pass(u64),
    /// The process is killed after so many writes of its next pass; another one starts later.
    Killed(usize, u64),
}

fn key() -> VirtualServerKey {
    VirtualServerKey::Address {
        protocol: Protocol::Tcp,
        address: [10, 96, 0, 10].into(),
        port: 80,
    }
}

fn address(number: u8) -> IpAddr {
    [10, 244, 0, number].into()
}

/// The process, its record on disk, the kernel, and what the test knows about both.
struct World {
    now: u64,
    endpoints: BTreeMap<u8, EndpointState>,
    kernel: Kernel,
    mirror: Mirror,
    record: BTreeMap<(IpAddr, u16), u64>,
    /// Since when the weight of a real server has been 0 with its deadline recorded.
    leaves_since: BTreeMap<IpAddr, u64>,
}

impl World {
    fn new() -> Self {
        let real = HeldReal {
            weight: 1,
            plain: true,
            connections: 1,
        };
        let held = Held {
            scheduler: Scheduler::Wrr.name().into(),
            persistence: None,
            plain: true,
            reals: (0..REALS)
                .map(|number| ((address(number), PORT), real))
                .collect(),
        };
        let kernel = Kernel {
            servers: BTreeMap::from([(key(), held)]),
            forgotten: Vec::new(),
        };
        let mut world = Self {
            now: 0,
            endpoints: (0..REALS)
                .map(|number| (number, EndpointState::Chosen))
                .collect(),
            kernel,
            mirror: Mirror::default(),
            record: BTreeMap::new(),
            leaves_since: BTreeMap::new(),
        };
        world.restart();
        world
    }

    /// A new process: it knows the record and the kernel.
    fn restart(&mut self) {
        let saved = self
            .record
            .iter()
            .map(|(&(address, port), until)| Deadline {
                key: key(),
                address,
                port,
                until: Some(*until),
            });
        let mut mirror = Mirror::new([key()], TIMEOUT);
        mirror.restore_deadlines(&saved.collect::<Vec<_>>(), self.now);
        self.kernel.read_all(&mut mirror, self.now);
        self.mirror = mirror;
    }

    fn of(&self, state: EndpointState) -> Vec<(IpAddr, u16)> {
        let alike = self.endpoints.iter().filter(|(_, one)| **one == state);
        alike.map(|(number, _)| (address(*number), PORT)).collect()
    }

    /// Plans and executes at most so many writes, including lines of the record. Returns whether all were done.
    fn pass(&mut self, mut writes: usize) -> Result<bool, TestCaseError> {
        let chosen = self.of(EndpointState::Chosen).into_iter();
        let desired = VirtualServer {
            key: key(),
            scheduler: Scheduler::Wrr,
            persistence: None,
            real_servers: chosen
                .map(|(address, port)| RealServer {
                    address,
                    port,
                    weight: 1,
                })
                .collect(),
        };
        let unchosen = self.of(EndpointState::Unchosen);
        let options = DiffOptions {
            unchosen: &unchosen,
            ..OPTIONS
        };
        self.kernel.read_into(&mut self.mirror, &key(), self.now);
        let plan = diff(Some(&desired), &self.mirror, &key(), self.now, &options);
        let mut write = || {
            let left = writes > 0;
            writes = writes.saturating_sub(1);
            left
        };
        for deadline in &plan.deadlines {
            if !write() {
                return Ok(false);
            }
            self.mirror.set_deadline(deadline);
            self.note(deadline);
        }
        for step in &plan.steps {
            if !write() {
                return Ok(false);
            }
            self.check(step, &unchosen)?;
            let was: Vec<_> = self.mirror.deadlines().collect();
            prop_assert_eq!(self.kernel.execute(step), StepOutcome::Done);
            self.mirror.commit(step, StepOutcome::Done);
            self.remember();
            let remaining: Vec<_> = self.mirror.deadlines().collect();
            for ended in was.into_iter().filter(|one| !remaining.contains(one)) {
                if !write() {
                    return Ok(false);
                }
                self.note(&Deadline {
                    until: None,
                    ..ended
                });
            }
        }
        Ok(true)
    }

    fn note(&mut self, deadline: &Deadline) {
        let real = (deadline.address, deadline.port);
        match deadline.until {
            Some(until) => drop(self.record.insert(real, until)),
            None => drop(self.record.remove(&real)),
        }
        self.remember();
    }

    /// No real server with connections is deleted before its deadline, and one that is no longer chosen never.
    fn check(&self, step: &Step, unchosen: &[(IpAddr, u16)]) -> Result<(), TestCaseError> {
        let Step::DeleteReal { address, port, .. } = step else {
            return Ok(());
        };
        prop_assert!(
            !unchosen.contains(&(*address, *port)),
            "{step} of a healthy one"
        );
        let since = self.leaves_since.get(address).copied();
        prop_assert!(
            since.is_some_and(|since| since + TIMEOUT <= self.now),
            "{step} at {}, leaving since {since:?}",
            self.now
        );
        Ok(())
    }

    /// A real server is leaving from when its weight is 0 and its deadline is recorded.
    fn remember(&mut self) {
        let held = self.kernel.servers.get(&key());
        let reals = held.into_iter().flat_map(|held| &held.reals);
        let weightless = reals.filter(|(_, real)| real.weight == 0);
        let leaving = weightless.filter(|(at, _)| self.record.contains_key(*at));
        let since = |(at, _): (&(IpAddr, u16), &HeldReal)| {
            let since = self.leaves_since.get(&at.0).copied();
            (at.0, since.unwrap_or(self.now))
        };
        self.leaves_since = leaving.map(since).collect();
    }

    /// Every real server has a connection that does not end.
    fn connect(&mut self) {
        let held = self.kernel.servers.get_mut(&key());
        for real in held.into_iter().flat_map(|held| held.reals.values_mut()) {
            real.connections = 1;
        }
    }

    fn take(&mut self, event: &Event) -> Result<(), TestCaseError> {
        match event {
            Event::Change(number, state) => {
                self.endpoints.insert(*number, *state);
            }
            Event::Pass(pause) => {
                self.now += pause;
                prop_assert!(self.pass(usize::MAX)?);
            }
            Event::Killed(writes, pause) => {
                self.pass(*writes)?;
                self.now += pause;
                self.restart();
            }
        }
        self.connect();
        Ok(())
    }
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let states = prop_oneof![
        Just(EndpointState::Chosen),
        Just(EndpointState::Unchosen),
        Just(EndpointState::GoingAway),
    ];
    let event = prop_oneof![
        3 => (0..REALS, states).prop_map(|(number, state)| Event::Change(number, state)),
        3 => (0..TIMEOUT).prop_map(Event::Pass),
        2 => (0..6_usize, 0..TIMEOUT).prop_map(|(writes, pause)| Event::Killed(writes, pause)),
    ];
    prop::collection::vec(event, 0..40)
}

proptest! {
    #[test]
    fn d9_no_restart_shortens_a_deadline_and_an_endpoint_that_is_not_chosen_has_none(events in events()) {
        let mut world = World::new();
        for event in &events {
            world.take(event)?;
        }
    }

    /// However often the process is killed: a leaving real server is deleted one check after its deadline.
    #[test]
    fn d9_no_restart_postpones_a_deadline(kills in prop::collection::vec((2..6_usize, 0..POLL), 0..30)) {
        let mut world = World::new();
        world.take(&Event::Change(0, EndpointState::GoingAway))?;
        world.take(&Event::Pass(0))?;
        for (writes, pause) in kills {
            world.take(&Event::Killed(writes, pause))?;
            let gone = world.of(EndpointState::GoingAway);
            let held = world.kernel.servers.get(&key()).unwrap();
            if held.reals.contains_key(&gone[0]) {
                prop_assert!(world.now < TIMEOUT + POLL, "{}", world.now);
                prop_assert_eq!(world.record.get(&gone[0]), Some(&TIMEOUT));
            }
        }
    }
}
