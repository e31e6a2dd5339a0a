//! Plans between any two states: properties that every step preserves, with any failures.

use std::net::IpAddr;

use proptest::prelude::*;
use topology_core::mirror::{Mirror, StepOutcome};
use topology_core::model::Protocol;
use topology_core::plan::diff;
use topology_core::scheduler::Scheduler;
use topology_core::virtual_server::{RealServer, VirtualServer, VirtualServerKey};

use crate::kernel::{Held, HeldReal, Kernel, OPTIONS, TIMEOUT, settle};

fn key(protocol: Protocol) -> VirtualServerKey {
    VirtualServerKey::Address {
        protocol,
        address: "10.96.0.10".parse().unwrap(),
        port: 80,
    }
}

fn protocols() -> impl Strategy<Value = Protocol> {
    prop_oneof![
        Just(Protocol::Tcp),
        Just(Protocol::Udp),
        Just(Protocol::Sctp)
    ]
}

fn address(number: u8) -> IpAddr {
    [10, 244, 0, number].into()
}

fn schedulers() -> impl Strategy<Value = Scheduler> {
    prop_oneof![Just(Scheduler::Wrr), Just(Scheduler::Mh)]
}

/// Desired virtual servers: never with a weight of 0.
fn desired_states(protocol: Protocol) -> impl Strategy<Value = Option<VirtualServer>> {
    let reals = proptest::collection::btree_map(0..6_u8, 1..4_u32, 0..6);
    let server = (reals, schedulers(), proptest::option::of(1..3_u32));
    let server = server.prop_map(move |(reals, scheduler, persistence)| VirtualServer {
        key: key(protocol),
        scheduler,
        persistence,
        real_servers: reals
            .into_iter()
            .map(|(number, weight)| RealServer {
                address: address(number),
                port: 8080,
                weight,
            })
            .collect(),
    });
    proptest::option::of(server)
}

/// Initial states of a kernel.
fn kernels(protocol: Protocol) -> impl Strategy<Value = Kernel> {
    let real = (0..4_u32, any::<bool>(), 0..3_u64);
    let real = real.prop_map(|(weight, plain, connections)| HeldReal {
        weight,
        plain,
        connections,
    });
    let reals = proptest::collection::btree_map(
        (0..6_u8).prop_map(|number| (address(number), 8080)),
        real,
        0..6,
    );
    let held = (
        reals,
        schedulers(),
        proptest::option::of(1..3_u32),
        any::<bool>(),
    );
    let held = held.prop_map(|(reals, scheduler, persistence, plain)| Held {
        scheduler: scheduler.name().into(),
        persistence,
        plain,
        reals,
    });
    proptest::option::of(held).prop_map(move |held| Kernel {
        servers: held.into_iter().map(|held| (key(protocol), held)).collect(),
        forgotten: Vec::new(),
    })
}

fn cases() -> impl Strategy<Value = (Protocol, Kernel, Option<VirtualServer>)> {
    protocols()
        .prop_flat_map(|protocol| (Just(protocol), kernels(protocol), desired_states(protocol)))
}

fn faults() -> impl Strategy<Value = Vec<Option<StepOutcome>>> {
    let fault = prop_oneof![
        4 => Just(None),
        1 => Just(Some(StepOutcome::Failed)),
        1 => Just(Some(StepOutcome::Unknown)),
    ];
    proptest::collection::vec(fault, 0..12)
}

fn known(kernel: &Kernel, protocol: Protocol) -> Mirror {
    let mut mirror = Mirror::new([key(protocol)], TIMEOUT);
    kernel.read_all(&mut mirror, 0);
    mirror
}

fn reached(kernel: &Kernel, protocol: Protocol, desired: Option<&VirtualServer>) -> bool {
    match desired {
        Some(desired) => kernel.holds(desired),
        None => !kernel.servers.contains_key(&key(protocol)),
    }
}

proptest! {
    #[test]
    fn every_plan_reaches_the_desired_state_and_the_next_plan_is_empty(
        (protocol, mut kernel, desired) in cases()
    ) {
        let mut mirror = known(&kernel, protocol);
        let key = key(protocol);
        settle(&mut kernel, &mut mirror, desired.as_ref(), &key, 0);
        prop_assert!(reached(&kernel, protocol, desired.as_ref()), "{kernel:?}");
        let again = diff(desired.as_ref(), &mirror, &key, TIMEOUT, &OPTIONS);
        prop_assert_eq!(again.steps, vec![]);
        prop_assert_eq!(again.wake_at, None);
        let read = known(&kernel, protocol);
        prop_assert_eq!(read.get(&key), mirror.get(&key));
    }

    #[test]
    fn d8_every_prefix_of_a_plan_serves_if_before_and_after_do(
        (protocol, mut kernel, desired) in cases()
    ) {
        let mut mirror = known(&kernel, protocol);
        let key = key(protocol);
        let plan = diff(desired.as_ref(), &mirror, &key, 0, &OPTIONS);
        let before = kernel.serves(&key);
        let after = desired.is_some_and(|desired| !desired.real_servers.is_empty());
        for step in &plan.steps {
            let outcome = kernel.execute(step);
            prop_assert_eq!(outcome, StepOutcome::Done, "{}", step);
            mirror.commit(step, outcome);
            if before && after {
                prop_assert!(kernel.serves(&key), "nothing serves after {}", step);
            }
        }
        prop_assert_eq!(kernel.serves(&key), after);
    }

    #[test]
    fn untouched_real_servers_are_never_deleted_and_added(
        (protocol, kernel, desired) in cases()
    ) {
        let mirror = known(&kernel, protocol);
        let plan = diff(desired.as_ref(), &mirror, &key(protocol), 0, &OPTIONS);
        let text: Vec<String> = plan.steps.iter().map(ToString::to_string).collect();
        for real in desired.iter().flat_map(|desired| &desired.real_servers) {
            let deletion = format!(" -r {}:8080", real.address);
            prop_assert!(!text.iter().any(|step| step.starts_with("ipvsadm -d") && step.ends_with(&deletion)));
        }
    }

    #[test]
    fn after_any_failure_reading_and_retrying_converges(
        (protocol, mut kernel, desired) in cases(),
        faults in faults(),
    ) {
        let mut mirror = known(&kernel, protocol);
        let key = key(protocol);
        let plan = diff(desired.as_ref(), &mirror, &key, 0, &OPTIONS);
        kernel.apply(&plan, &mut mirror, 0, |index| faults.get(index).copied().flatten());
        settle(&mut kernel, &mut mirror, desired.as_ref(), &key, 0);
        prop_assert!(reached(&kernel, protocol, desired.as_ref()), "{kernel:?}");
    }

    #[test]
    fn after_a_kill_at_any_step_the_next_process_completes_the_plan(
        (protocol, mut kernel, desired) in cases(),
        survives in 0..12_usize,
    ) {
        let mirror = known(&kernel, protocol);
        let key = key(protocol);
        let plan = diff(desired.as_ref(), &mirror, &key, 0, &OPTIONS);
        for step in plan.steps.iter().take(survives) {
            kernel.execute(step);
        }
        let mut restarted = known(&kernel, protocol);
        settle(&mut kernel, &mut restarted, desired.as_ref(), &key, 0);
        prop_assert!(reached(&kernel, protocol, desired.as_ref()), "{kernel:?}");
    }

    #[test]
    fn foreign_virtual_servers_get_no_step((protocol, kernel, _) in cases(), now in any::<u64>()) {
        let mut mirror = Mirror::new([], TIMEOUT);
        kernel.read_all(&mut mirror, 0);
        prop_assert_eq!(diff(None, &mirror, &key(protocol), now, &OPTIONS).steps, vec![]);
    }
}
