//! Tests schedulers that the kernel does not have, or gets later.

use cluster::object::Object;
use topology_core::policy::{AnnotationChoice, from_annotations};
use topology_core::scheduler::Scheduler;

use super::TCP;
use super::fake::Shared;
use super::script::{Loop, service, slice};
use crate::node_warning::Topic;

/// A Service that requests a scheduler.
fn asking(name: &str, ip: &str, scheduler: &str) -> Object {
    let Object::Service(mut asking) = service(name, ip, TCP) else {
        unreachable!("a Service was made");
    };
    let annotations = [
        ("topology.ipvs-topo.io/mode", "none"),
        ("topology.ipvs-topo.io/scheduler", scheduler),
    ];
    let Ok(Some(AnnotationChoice::Policy(policy))) = from_annotations(annotations) else {
        unreachable!("the annotations are valid");
    };
    asking.policy = Some((*policy).into());
    Object::Service(asking)
}

/// A Service that requests `mh`, and one that requests none.
fn hashed_and_plain() -> Vec<Object> {
    vec![
        asking("hashed", "10.96.0.10", "mh"),
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
async fn sloppy_tcp_comes_before_the_first_hashing_virtual_server_and_no_other_pass_compares_sysctls()
 {
    let shared = Shared::default();
    let mut agent = Loop::over(&shared);
    agent.start(vec![service("one", "10.96.0.10", TCP)]).await;
    let ordered = |agent: &Loop| {
        let journal = agent.journal();
        let is_about = |line: &String| line == "sloppy_tcp" || line.contains("-s mh");
        let lines: Vec<String> = journal.into_iter().filter(is_about).collect();
        lines.join("; ")
    };
    assert_eq!(ordered(&agent), "");
    agent.apply([asking("two", "10.96.0.11", "mh")]).await;
    let added = |ip: &str| format!("ipvsadm -A -t {ip}:80 -s mh -b mh-fallback");
    assert_eq!(
        ordered(&agent),
        format!("sloppy_tcp; {}", added("10.96.0.11"))
    );
    assert_eq!(agent.world().preparations, 2);
    agent.apply([asking("three", "10.96.0.12", "mh")]).await;
    agent.apply([service("four", "10.96.0.13", TCP)]).await;
    assert_eq!(ordered(&agent), added("10.96.0.12"));
    assert_eq!(agent.world().preparations, 2);
    for (name, ip) in [("two", "10.96.0.11"), ("three", "10.96.0.12")] {
        agent.apply([service(name, ip, TCP)]).await;
    }
    agent.check().await;
    assert_eq!(agent.world().needs.map(|needs| needs.hashes), Some(false));
    agent.apply([asking("one", "10.96.0.10", "mh")]).await;
    let edited = "ipvsadm -E -t 10.96.0.10:80 -s mh -b mh-fallback";
    assert_eq!(ordered(&agent), format!("sloppy_tcp; {edited}"));
}

#[tokio::test(start_paused = true)]
async fn d12_wrr_replaces_a_missing_scheduler_in_the_same_pass() {
    let shared = Shared::default();
    shared.0.borrow_mut().lacking.insert(Scheduler::Mh);
    let mut agent = Loop::over(&shared);
    agent.start(hashed_and_plain()).await;
    assert_eq!(schedulers(&shared), ["wrr", "wrr"]);
    assert_eq!(reals(&shared), [2, 1]);
    let warnings = warnings(&agent);
    assert_eq!(warnings.len(), 1);
    assert!(warnings[0].contains("modprobe ip_vs_mh"), "{warnings:?}");
    assert_eq!(
        agent.reconciler.agenda.failing(),
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

/// For each request the kernel runs `modprobe` and waits for it.
#[tokio::test(start_paused = true)]
async fn d13_a_pass_requests_a_missing_scheduler_once() {
    let shared = Shared::default();
    let names = [Scheduler::Mh, Scheduler::Sh];
    shared.0.borrow_mut().lacking.extend(names);
    let mut agent = Loop::over(&shared);
    let objects = |first: u8| -> Vec<Object> {
        let both = (first..first + 10).flat_map(|nth| {
            let (name, scheduler) = (format!("s{nth}"), names[usize::from(nth % 2)].name());
            let ip = format!("10.96.0.{nth}");
            let pod = format!("10.244.2.{nth}@n2");
            [asking(&name, &ip, scheduler), slice(&name, TCP, &[&pod])]
        });
        both.collect()
    };
    let refused = |agent: &Loop| {
        let journal = agent.journal();
        let is_refused = |line: &&String| line.contains(" -s ") && line.ends_with('!');
        journal.iter().filter(is_refused).count()
    };
    agent.start(objects(10)).await;
    assert_eq!(refused(&agent), 2, "one for each scheduler");
    assert_eq!(schedulers(&shared), ["wrr"; 10]);
    assert_eq!(reals(&shared), [1; 10]);
    assert_eq!(agent.reconciler.agenda.failing(), 0);
    assert_eq!(warnings(&agent).len(), 2);
    agent.apply(objects(20)).await;
    assert_eq!(refused(&agent), 0, "they are known to be missing");
    assert_eq!(schedulers(&shared), ["wrr"; 20]);

    shared.0.borrow_mut().lacking.clear();
    agent.check().await;
    agent.check().await;
    let mut again = Loop::over(&shared);
    again.read_kernel().await;
    for scheduler in names {
        assert!(agent.reconciler.schedulers.is_proven(scheduler));
        assert!(again.reconciler.schedulers.is_proven(scheduler), "as read");
    }
    assert!(!agent.reconciler.schedulers.is_proven(Scheduler::Dh));
}

#[tokio::test(start_paused = true)]
async fn d12_a_scheduler_that_is_loaded_later_is_used_after_the_next_check() {
    let shared = Shared::default();
    shared.0.borrow_mut().lacking.insert(Scheduler::Mh);
    let mut agent = Loop::over(&shared);
    agent.start(hashed_and_plain()).await;
    shared.0.borrow_mut().lacking.clear();
    agent.check().await;
    assert_eq!(schedulers(&shared), ["mh", "wrr"]);
    assert_eq!(warnings(&agent), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn d12_a_missing_scheduler_without_a_service_is_dropped() {
    let plain = service("hashed", "10.96.0.10", TCP);
    for deleted in [false, true] {
        let shared = Shared::default();
        shared.0.borrow_mut().lacking.insert(Scheduler::Mh);
        let mut agent = Loop::over(&shared);
        agent.start(hashed_and_plain()).await;
        agent.check().await;
        if deleted {
            agent.delete(&plain).await;
        } else {
            agent.apply([plain.clone()]).await;
        }
        agent.journal();
        agent.check().await;
        assert_eq!(warnings(&agent), [""; 0]);
        shared.0.borrow_mut().lacking.clear();
        agent.check().await;
        assert_eq!(agent.journal(), [""; 0], "it is never tried");
        // It is refused again, and the Service that requests it now gets the fallback.
        shared.0.borrow_mut().lacking.insert(Scheduler::Mh);
        agent.apply([asking("plain", "10.96.0.11", "mh")]).await;
        assert_eq!(warnings(&agent).len(), 1);
        assert!(!schedulers(&shared).contains(&"mh".to_owned()));
    }
}

#[tokio::test(start_paused = true)]
async fn d13_each_check_tries_one_missing_scheduler_in_turn() {
    let shared = Shared::default();
    let names = [Scheduler::Mh, Scheduler::Sh, Scheduler::Dh];
    shared.0.borrow_mut().lacking.extend(names);
    let mut agent = Loop::over(&shared);
    let of = |(at, scheduler): (usize, Scheduler)| {
        let name = scheduler.name();
        asking(name, &format!("10.96.0.{at}"), name)
    };
    agent.start((20..).zip(names).map(of).collect()).await;
    assert_eq!(warnings(&agent).len(), 3);
    agent.journal();
    let mut asked = Vec::new();
    for _ in 0..6 {
        agent.check().await;
        let [request] = &agent.journal()[..] else {
            panic!("one request a check: {asked:?}");
        };
        asked.push(request.clone());
    }
    let once: std::collections::BTreeSet<_> = asked[..3].iter().collect();
    assert_eq!(once.len(), 3, "each in turn: {asked:?}");
    assert_eq!(asked[..3], asked[3..]);
    shared.0.borrow_mut().lacking.clear();
    for _ in 0..3 {
        agent.check().await;
    }
    assert_eq!(schedulers(&shared), ["mh", "sh", "dh"]);
    assert_eq!(warnings(&agent), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn without_wrr_itself_the_step_fails_and_is_tried_again() {
    let shared = Shared::default();
    shared.0.borrow_mut().lacking.insert(Scheduler::Wrr);
    let mut agent = Loop::over(&shared);
    agent.start(hashed_and_plain()).await;
    assert_eq!(schedulers(&shared), ["mh"]);
    assert_eq!(agent.reconciler.agenda.failing(), 1);
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
