//! Tests for every implementation of `Kernel`: the fake in unit tests, and the real one in a VM.
//!
//! Each test gets two handles of one empty table, like two processes on a node.

use std::net::{IpAddr, SocketAddr};

use dataplane::ipvs::{Kernel, ServerReading, StepError};
use topology_core::mirror::StepOutcome;
use topology_core::model::Protocol;
use topology_core::plan::Step;
use topology_core::scheduler::Scheduler;
use topology_core::virtual_server::{RealServer, VirtualServerKey};

/// Defines a test for each case; `$open` returns the two handles.
macro_rules! kernel_cases {
    ($open:path) => {
        kernel_cases!(
            $open =>
            virtual_servers_are_added_changed_and_deleted,
            real_servers_are_added_changed_and_deleted,
            a_weight_of_0_keeps_the_real_server,
            duplicates_and_missing_objects_have_outcomes_of_their_own,
            a_step_that_fails_stops_none_after_it_and_the_dump_shows_the_others,
            a_change_by_another_program_is_read,
            protocols_and_families_have_virtual_servers_of_their_own
        );
    };
    ($open:path => $($case:ident),+) => {
        $(
            #[tokio::test]
            async fn $case() {
                let (mut kernel, mut other) = $open().await;
                cases::$case(&mut kernel, &mut other).await;
            }
        )+
    };
}

fn key(protocol: Protocol, address: &str) -> VirtualServerKey {
    VirtualServerKey::Address {
        protocol,
        address: address.parse().unwrap(),
        port: 80,
    }
}

fn web() -> VirtualServerKey {
    key(Protocol::Tcp, "10.96.0.10")
}

fn add(key: VirtualServerKey) -> Step {
    Step::AddServer {
        key,
        scheduler: Scheduler::Wrr,
        persistence: None,
    }
}

fn address(last: u8) -> IpAddr {
    [10, 244, 1, last].into()
}

fn real(last: u8, weight: u32) -> RealServer {
    RealServer {
        address: address(last),
        port: 8080,
        weight,
    }
}

fn add_real(last: u8, weight: u32) -> Step {
    let (key, real) = (web(), real(last, weight));
    Step::AddReal { key, real }
}

fn edit_real(last: u8, weight: u32) -> Step {
    let (key, real) = (web(), real(last, weight));
    Step::EditReal { key, real }
}

fn delete_real(last: u8) -> Step {
    Step::DeleteReal {
        key: web(),
        address: address(last),
        port: 8080,
    }
}

/// Carries out the steps; returns the result of each.
async fn apply<K: Kernel>(kernel: &mut K, steps: &[Step]) -> Vec<StepOutcome> {
    let results = kernel.apply(steps).await;
    let outcome = |result: &Result<(), StepError>| {
        result
            .as_ref()
            .map_or_else(|error| error.outcome, |()| StepOutcome::Done)
    };
    results.iter().map(outcome).collect()
}

async fn done<K: Kernel>(kernel: &mut K, steps: &[Step]) {
    let outcomes = apply(kernel, steps).await;
    assert_eq!(outcomes, vec![StepOutcome::Done; steps.len()], "{steps:?}");
}

/// The whole table, in the format of `ipvsadm-save -n`, sorted.
async fn dump<K: Kernel>(kernel: &mut K) -> Vec<String> {
    let mut lines = Vec::new();
    for listed in kernel.list().await.unwrap() {
        let key = listed.key;
        let reading = kernel.fill(listed).await.unwrap().unwrap();
        lines.extend(text(&key, &reading));
        let alone = kernel.read(&key).await.unwrap().unwrap();
        assert_eq!(
            text(&key, &alone),
            text(&key, &reading),
            "read and list agree"
        );
    }
    lines.sort();
    lines
}

fn text(key: &VirtualServerKey, reading: &ServerReading) -> Vec<String> {
    let ServerReading {
        observed,
        connections,
    } = reading;
    assert!(observed.plain, "{key} is as it was written");
    assert_eq!(connections.len(), observed.real_servers.len());
    let persistence = observed.persistence;
    let persistence = persistence.map_or(String::new(), |seconds| format!(" -p {seconds}"));
    let mut lines = vec![format!("-A {key} -s {}{persistence}", observed.scheduler)];
    for real in &observed.real_servers {
        let at = SocketAddr::new(real.address, real.port);
        lines.push(format!("-a {key} -r {at} -m -w {}", real.weight));
    }
    lines[1..].sort();
    lines
}

pub(crate) async fn virtual_servers_are_added_changed_and_deleted<K: Kernel>(
    kernel: &mut K,
    _: &mut K,
) {
    assert_eq!(dump(kernel).await, [""; 0]);
    assert!(kernel.read(&web()).await.unwrap().is_none());
    done(kernel, &[add(web())]).await;
    assert_eq!(dump(kernel).await, ["-A -t 10.96.0.10:80 -s wrr"]);
    let edit = Step::EditServer {
        key: web(),
        scheduler: Scheduler::Rr,
        persistence: Some(300),
    };
    done(kernel, &[edit]).await;
    assert_eq!(dump(kernel).await, ["-A -t 10.96.0.10:80 -s rr -p 300"]);
    done(kernel, &[add_real(1, 1), Step::DeleteServer { key: web() }]).await;
    assert_eq!(dump(kernel).await, [""; 0], "its real servers go with it");
}

pub(crate) async fn real_servers_are_added_changed_and_deleted<K: Kernel>(
    kernel: &mut K,
    _: &mut K,
) {
    done(kernel, &[add(web()), add_real(1, 1), add_real(2, 65535)]).await;
    done(kernel, &[edit_real(1, 7), delete_real(2)]).await;
    let expected = [
        "-A -t 10.96.0.10:80 -s wrr",
        "-a -t 10.96.0.10:80 -r 10.244.1.1:8080 -m -w 7",
    ];
    assert_eq!(dump(kernel).await, expected);
}

pub(crate) async fn a_weight_of_0_keeps_the_real_server<K: Kernel>(kernel: &mut K, _: &mut K) {
    let drain = Step::DrainReal {
        key: web(),
        address: address(1),
        port: 8080,
    };
    done(kernel, &[add(web()), add_real(1, 3), add_real(2, 0), drain]).await;
    let expected = [
        "-A -t 10.96.0.10:80 -s wrr",
        "-a -t 10.96.0.10:80 -r 10.244.1.1:8080 -m -w 0",
        "-a -t 10.96.0.10:80 -r 10.244.1.2:8080 -m -w 0",
    ];
    assert_eq!(dump(kernel).await, expected);
}

pub(crate) async fn duplicates_and_missing_objects_have_outcomes_of_their_own<K: Kernel>(
    kernel: &mut K,
    _: &mut K,
) {
    let edit = Step::EditServer {
        key: web(),
        scheduler: Scheduler::Rr,
        persistence: None,
    };
    let delete = Step::DeleteServer { key: web() };
    let missing = [
        edit,
        delete,
        add_real(1, 1),
        edit_real(1, 1),
        delete_real(1),
    ];
    assert_eq!(
        apply(kernel, &missing).await,
        vec![StepOutcome::Missing; missing.len()]
    );
    done(kernel, &[add(web()), add_real(1, 1)]).await;
    assert_eq!(
        apply(kernel, &[add(web()), add_real(1, 9)]).await,
        vec![StepOutcome::AlreadyExists; 2]
    );
    assert_eq!(
        apply(kernel, &[edit_real(2, 1), delete_real(2)]).await,
        vec![StepOutcome::Missing; 2]
    );
    let expected = [
        "-A -t 10.96.0.10:80 -s wrr",
        "-a -t 10.96.0.10:80 -r 10.244.1.1:8080 -m -w 1",
    ];
    assert_eq!(dump(kernel).await, expected);
}

pub(crate) async fn a_step_that_fails_stops_none_after_it_and_the_dump_shows_the_others<
    K: Kernel,
>(
    kernel: &mut K,
    _: &mut K,
) {
    let forget = Step::DeleteFlows {
        key: key(Protocol::Udp, "10.96.0.10"),
        address: address(9),
        port: 8080,
    };
    let steps = [
        add(web()),
        edit_real(1, 1),
        add_real(1, 1),
        forget,
        add_real(1, 2),
        add_real(2, 2),
    ];
    let outcomes = [
        StepOutcome::Done,
        StepOutcome::Missing,
        StepOutcome::Done,
        StepOutcome::Done,
        StepOutcome::AlreadyExists,
        StepOutcome::Done,
    ];
    assert_eq!(apply(kernel, &steps).await, outcomes);
    let expected = [
        "-A -t 10.96.0.10:80 -s wrr",
        "-a -t 10.96.0.10:80 -r 10.244.1.1:8080 -m -w 1",
        "-a -t 10.96.0.10:80 -r 10.244.1.2:8080 -m -w 2",
    ];
    assert_eq!(dump(kernel).await, expected);
}

pub(crate) async fn a_change_by_another_program_is_read<K: Kernel>(kernel: &mut K, other: &mut K) {
    done(kernel, &[add(web()), add_real(1, 1)]).await;
    let listed = kernel.list().await.unwrap().remove(0);
    done(other, &[edit_real(1, 5), add_real(3, 1)]).await;
    let reading = kernel.fill(listed.clone()).await.unwrap().unwrap();
    assert_eq!(reading.observed.real_servers.len(), 2);
    let expected = [
        "-A -t 10.96.0.10:80 -s wrr",
        "-a -t 10.96.0.10:80 -r 10.244.1.1:8080 -m -w 5",
        "-a -t 10.96.0.10:80 -r 10.244.1.3:8080 -m -w 1",
    ];
    assert_eq!(dump(kernel).await, expected);
    done(other, &[Step::DeleteServer { key: web() }]).await;
    assert!(
        kernel.fill(listed).await.unwrap().is_none(),
        "gone since it was listed"
    );
    assert!(kernel.read(&web()).await.unwrap().is_none());
    assert_eq!(
        apply(kernel, &[edit_real(1, 1)]).await,
        [StepOutcome::Missing]
    );
}

pub(crate) async fn protocols_and_families_have_virtual_servers_of_their_own<K: Kernel>(
    kernel: &mut K,
    _: &mut K,
) {
    let keys = [
        web(),
        key(Protocol::Udp, "10.96.0.10"),
        key(Protocol::Tcp, "fd00:10:96::a"),
    ];
    done(kernel, &keys.map(add)).await;
    done(kernel, &[Step::DeleteServer { key: web() }]).await;
    let expected = [
        "-A -t [fd00:10:96::a]:80 -s wrr",
        "-A -u 10.96.0.10:80 -s wrr",
    ];
    assert_eq!(dump(kernel).await, expected);
}

/// For a kernel without the scheduler `fo`.
pub(crate) async fn a_scheduler_that_the_kernel_does_not_have_is_refused<K: Kernel>(
    kernel: &mut K,
) {
    let other = key(Protocol::Tcp, "10.96.0.11");
    done(kernel, &[add(other)]).await;
    let steps = [
        Step::AddServer {
            key: web(),
            scheduler: Scheduler::Fo,
            persistence: None,
        },
        Step::EditServer {
            key: other,
            scheduler: Scheduler::Fo,
            persistence: None,
        },
    ];
    for result in kernel.apply(&steps).await {
        let error = result.unwrap_err();
        assert_eq!(error.outcome, StepOutcome::Failed, "{error:?}");
        assert!(error.no_scheduler, "{error:?}");
    }
    assert_eq!(dump(kernel).await, ["-A -t 10.96.0.11:80 -s wrr"]);
}
