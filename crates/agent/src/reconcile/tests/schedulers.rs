//! A scheduler that the kernel does not have, and one that comes later.

use cluster::object::Object;
use topology_core::policy::{Asked, from_annotations};
use topology_core::scheduler::Scheduler;

use super::TCP;
use super::fake::Shared;
use super::script::{Loop, service, slice};
use crate::trouble::Topic;

/// A Service that asks for `mh`, and one that asks for nothing.
fn hashed_and_plain() -> Vec<Object> {
    let Object::Service(mut hashed) = service("hashed", "10.96.0.10", TCP) else {
        unreachable!("a Service was made");
    };
    let annotations = [
        ("topology.ipvs-topo.io/mode", "none"),
        ("topology.ipvs-topo.io/scheduler", "mh"),
    ];
    let Ok(Some(Asked::Policy(policy))) = from_annotations(annotations) else {
        unreachable!("the annotations are valid");
    };
    hashed.policy = Some((*policy).into());
    vec![
        Object::Service(hashed),
        slice("hashed", TCP, &["10.244.1.1@n1", "10.244.2.1@n2"]),
        service("plain", "10.96.0.11", TCP),
        slice("plain", TCP, &["10.244.2.9@n2"]),
    ]
}

fn schedulers(shared: &Shared) -> Vec<String> {
    let world = shared.0.borrow();
    let servers = world.servers.values();
    servers.map(|server| server.scheduler.to_string()).collect()
}

fn reals(shared: &Shared) -> Vec<usize> {
    let world = shared.0.borrow();
    let servers = world.servers.values();
    servers.map(|server| server.real_servers.len()).collect()
}

fn warnings(agent: &Loop) -> Vec<String> {
    let all = agent.reconciler.warnings.all();
    let ours = all.iter().filter(|one| one.topic == Topic::Scheduler);
    ours.map(|one| one.text.clone()).collect()
}

#[tokio::test(start_paused = true)]
async fn d12_a_scheduler_that_is_missing_gives_way_to_wrr_in_the_same_pass() {
    let shared = Shared::default();
    shared.0.borrow_mut().lacking = Some(Scheduler::Mh);
    let mut agent = Loop::over(&shared);
    agent.start(hashed_and_plain()).await;
    assert_eq!(schedulers(&shared), ["wrr", "wrr"]);
    assert_eq!(reals(&shared), [2, 1]);
    let warnings = warnings(&agent);
    assert_eq!(warnings.len(), 1);
    assert!(warnings[0].contains("modprobe ip_vs_mh"), "{warnings:?}");
    assert_eq!(
        agent.reconciler.agenda.failing().0,
        0,
        "nothing is tried again"
    );
    agent.journal();
    agent.check().await;
    let journal = agent.journal();
    assert_eq!(
        journal,
        ["ipvsadm -E -t 10.96.0.10:80 -s mh -b mh-fallback !"]
    );
}

#[tokio::test(start_paused = true)]
async fn d12_a_scheduler_that_comes_later_is_used_from_the_next_check_on() {
    let shared = Shared::default();
    shared.0.borrow_mut().lacking = Some(Scheduler::Mh);
    let mut agent = Loop::over(&shared);
    agent.start(hashed_and_plain()).await;
    shared.0.borrow_mut().lacking = None;
    agent.check().await;
    assert_eq!(schedulers(&shared), ["mh", "wrr"]);
    assert_eq!(warnings(&agent), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn without_wrr_itself_the_step_fails_and_is_tried_again() {
    let shared = Shared::default();
    shared.0.borrow_mut().lacking = Some(Scheduler::Wrr);
    let mut agent = Loop::over(&shared);
    agent.start(hashed_and_plain()).await;
    assert_eq!(schedulers(&shared), ["mh"]);
    assert_eq!(agent.reconciler.agenda.failing().0, 1);
}

#[tokio::test(start_paused = true)]
async fn d12_a_hashing_virtual_server_without_its_flag_is_edited_once() {
    let shared = Shared::default();
    let mut agent = Loop::over(&shared);
    agent.start(hashed_and_plain()).await;
    agent.journal();
    for server in shared.0.borrow_mut().servers.values_mut() {
        // Flags that are not ours.
        server.plain &= &*server.scheduler != "mh";
    }
    agent.check().await;
    assert_eq!(
        agent.journal(),
        ["ipvsadm -E -t 10.96.0.10:80 -s mh -b mh-fallback"]
    );
    agent.check().await;
    assert_eq!(agent.journal(), [""; 0]);
}
