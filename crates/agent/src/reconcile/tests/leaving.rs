//! Tests Services and real servers that leave: drains, deadlines, connection tracking.

use std::collections::BTreeSet;
use std::future::pending;
use std::time::Duration;

use cluster::source::Watch;
use dataplane::conntrack::FlowDeletionError;
use dataplane::routes::address_monitor::AddressMonitor;
use tokio::sync::mpsc;
use tokio::time::Instant;
use topology_core::model::IpNetwork;

use super::fake::{Fault, Shared};
use super::script::{Loop, service, slice};
use super::{TCP, key, web};
use crate::reconcile::Ended;

const DNS: &[&str] = &["53/UDP"];

/// A loop that serves DNS from two real servers; its journal is empty.
async fn serving_dns() -> Loop {
    let mut agent = Loop::over(&Shared::default());
    agent
        .start(vec![
            service("dns", "10.96.0.10", DNS),
            slice("dns", DNS, &["10.244.2.1@n2", "10.244.2.2@n2"]),
        ])
        .await;
    // The entries without an endpoint.
    agent.settle(100).await;
    agent.journal();
    agent.world().batches = 0;
    agent
}

/// A loop whose real server 10.244.1.1 has three connections.
async fn serving_web(shared: &Shared) -> Loop {
    let mut agent = Loop::over(shared);
    agent.start(web()).await;
    let busy = (key("10.96.0.10"), "10.244.1.1".parse().unwrap());
    agent.world().connections.insert(busy, 3);
    agent
}

#[tokio::test(start_paused = true)]
async fn a_removed_service_is_released_after_it_is_deleted() {
    let mut agent = Loop::over(&Shared::default());
    agent.start(web()).await;
    agent.journal();
    agent.delete(&service("web", "10.96.0.10", TCP)).await;
    assert_eq!(
        agent.journal(),
        [
            "ipvsadm -D -t 10.96.0.10:80",
            "release -t 10.96.0.10:80",
            "tables"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn d8_a_draining_real_server_that_cannot_be_read_is_retried_more_rarely() {
    let shared = Shared::default();
    let mut agent = serving_web(&shared).await;
    agent.apply([slice("web", TCP, &[])]).await;
    agent.world().unreadable = true;
    agent.world().reads = 0;
    agent.settle(60_000).await;
    let reads = agent.world().reads;
    assert!((3..20).contains(&reads), "{reads}");
    agent.world().unreadable = false;
    agent.world().connections.clear();
    agent.settle(60_000).await;
    assert_eq!(agent.save().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn t01_udp_real_servers_are_deleted_at_once_with_their_flows() {
    let mut agent = serving_dns().await;
    agent.apply([slice("dns", DNS, &["10.244.2.2@n2"])]).await;
    assert_eq!(
        agent.journal()[0],
        "ipvsadm -d -u 10.96.0.10:53 -r 10.244.2.1:53"
    );
    agent.delete(&service("dns", "10.96.0.10", DNS)).await;
    agent.settle(100).await;
    assert!(agent.journal().contains(&"forget 10.244.2.2:53".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn kp_ct_03_the_first_udp_endpoint_deletes_entries_without_one_and_no_other_does() {
    let mut agent = Loop::over(&Shared::default());
    let objects = web().into_iter().chain([service("dns", "10.96.0.10", DNS)]);
    agent.start(objects.collect()).await;
    agent.settle(100).await;
    let forgotten = |agent: &mut Loop| {
        let journal = agent.journal();
        let lines = journal.into_iter();
        lines
            .filter(|line| line.starts_with("forget"))
            .collect::<Vec<_>>()
    };
    assert!(forgotten(&mut agent).is_empty());
    for (pods, expected) in [
        (&["10.244.2.1@n2"][..], vec!["forget 10.96.0.10:53"]),
        (&["10.244.2.1@n2", "10.244.2.2@n2"], vec![]),
        (&[], vec!["forget 10.244.2.1:53", "forget 10.244.2.2:53"]),
        (&["10.244.2.3@n2"], vec!["forget 10.96.0.10:53"]),
    ] {
        agent.apply([slice("dns", DNS, pods)]).await;
        agent.settle(100).await;
        assert_eq!(forgotten(&mut agent), expected, "{pods:?}");
    }
}

/// Before, a client that keeps sending would make its entry without an endpoint again.
#[tokio::test(start_paused = true)]
async fn kp_ct_03_entries_without_an_endpoint_are_deleted_once_the_address_has_its_route() {
    let mut agent = serving_dns().await;
    let (logs, pods) = (service("log", "192.0.2.1", DNS), &["10.244.2.3@n2"]);
    agent.apply([logs, slice("log", DNS, pods)]).await;
    let range: IpNetwork = "192.0.2.1/32".parse().unwrap();
    let routes = agent.world().routes_of_flow_deletion.clone();
    assert!(routes.iter().any(|route| route.to == range), "{routes:?}");
}

#[tokio::test(start_paused = true)]
async fn d9_an_idle_real_server_is_deleted_at_once_and_a_busy_one_when_it_is_idle() {
    let shared = Shared::default();
    let mut agent = serving_web(&shared).await;
    agent.apply([slice("web", TCP, &[])]).await;
    assert_eq!(
        agent.save(),
        [
            "-A -t 10.96.0.10:80 -s wrr",
            "-a -t 10.96.0.10:80 -r 10.244.1.1:80 -m -w 0"
        ]
    );
    agent.settle(20_000).await;
    assert_eq!(
        agent.save().len(),
        2,
        "it drains as long as it has connections"
    );
    agent.world().connections.clear();
    agent.settle(6_000).await;
    assert_eq!(agent.save().len(), 1);
}

/// The objects of [`web`] without 10.244.1.1.
fn rest() -> Vec<cluster::object::Object> {
    vec![
        service("web", "10.96.0.10", TCP),
        slice("web", TCP, &["10.244.2.1@n2"]),
    ]
}

/// A loop that starts after a kill, with its own `--drain-timeout` in seconds.
async fn restart(shared: &Shared, drain_timeout: u64) -> Loop {
    let mut again = Loop::with(shared, |config| {
        config.drain_timeout = Duration::from_secs(drain_timeout);
    });
    again.start(rest()).await;
    again
}

#[tokio::test(start_paused = true)]
async fn d9_restarts_do_not_change_a_deadline() {
    let shared = Shared::default();
    let mut agent = serving_web(&shared).await;
    agent.apply(rest()).await;
    for _ in 0..3 {
        agent.settle(250_000).await;
        agent = restart(&shared, 900).await;
    }
    agent.settle(140_000).await;
    assert_eq!(agent.save().len(), 3, "its 15 minutes are not over");
    agent.settle(15_000).await;
    assert_eq!(agent.save().len(), 2, "they began before the restarts");
    assert_eq!(agent.world().deadlines.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn d9_a_deadline_that_passed_without_an_agent_ends_at_the_start() {
    let shared = Shared::default();
    let mut agent = serving_web(&shared).await;
    agent.apply(rest()).await;
    tokio::time::advance(Duration::from_secs(901)).await;
    assert_eq!(restart(&shared, 900).await.save().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn d9_no_deadline_is_later_than_that_of_a_new_drain() {
    let shared = Shared::default();
    let mut agent = serving_web(&shared).await;
    agent.apply(rest()).await;
    let mut again = restart(&shared, 60).await;
    again.settle(55_000).await;
    assert_eq!(again.save().len(), 3);
    again.settle(6_000).await;
    assert_eq!(again.save().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn d9_a_deadline_that_is_not_on_disk_counts_from_the_restart() {
    let shared = Shared::default();
    let mut agent = serving_web(&shared).await;
    agent.world().record_fails = true;
    agent.apply(rest()).await;
    assert_eq!(agent.save().len(), 3, "it drains all the same");
    let warnings = agent.handle.pulse().node_warnings;
    let said = |warning: &crate::node_warning::NodeWarning| {
        warning.topic.code() == "Deadlines" && warning.text.contains("cannot be written")
    };
    assert!(warnings.iter().any(said), "{warnings:?}");
    agent.settle(800_000).await;
    agent.world().record_fails = false;
    let mut again = restart(&shared, 900).await;
    again.settle(890_000).await;
    assert_eq!(again.save().len(), 3);
    again.settle(15_000).await;
    assert_eq!(again.save().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn d9_a_real_server_that_returned_has_the_whole_time_when_it_leaves_again() {
    let shared = Shared::default();
    let mut agent = serving_web(&shared).await;
    agent.apply(rest()).await;
    assert_eq!(agent.world().deadlines.len(), 1);
    agent.settle(800_000).await;
    agent.apply(web()).await;
    assert_eq!(agent.world().deadlines.len(), 0, "its drain is over");
    let mut again = restart(&shared, 900).await;
    again.settle(890_000).await;
    assert_eq!(again.save().len(), 3);
    again.settle(15_000).await;
    assert_eq!(again.save().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn d13_changes_continue_during_flow_deletion_and_new_flows_are_one_batch() {
    let mut agent = serving_dns().await;
    agent.world().forgetting_hangs = true;
    for round in 2..20 {
        let next = format!("10.244.2.{round}@n2");
        agent.apply([slice("dns", DNS, &[next.as_str()])]).await;
        agent.settle(10).await;
    }
    assert_eq!(
        agent.save()[1],
        "-a -u 10.96.0.10:53 -r 10.244.2.19:53 -m -w 1"
    );
    assert_eq!(
        agent.world().forgetting.as_ref().map(BTreeSet::len),
        Some(1)
    );
    agent.journal();
    agent.world().forgetting_hangs = false;
    agent.settle(1_000).await;
    let journal = agent.journal();
    let forgotten = |round| journal.contains(&format!("forget 10.244.2.{round}:53"));
    assert!((1..19).all(forgotten) && !forgotten(19), "{journal:?}");
    assert_eq!(agent.world().batches, 2);
    assert_eq!(agent.reconciler.agenda.next(), None, "no poll is left");
}

#[tokio::test(start_paused = true)]
async fn d13_a_flow_whose_real_server_returned_and_left_is_deleted_again() {
    let mut agent = serving_dns().await;
    agent.world().forgetting_hangs = true;
    for pod in ["10.244.2.2@n2", "10.244.2.1@n2", "10.244.2.2@n2"] {
        agent.apply([slice("dns", DNS, &[pod])]).await;
    }
    agent.journal();
    agent.world().forgetting_hangs = false;
    agent.settle(1_000).await;
    let journal = agent.journal();
    let times = |pod| {
        journal
            .iter()
            .filter(|line| **line == format!("forget {pod}:53"))
            .count()
    };
    assert_eq!(times("10.244.2.1"), 2, "{journal:?}");
}

#[tokio::test(start_paused = true)]
async fn d13_a_stop_waits_for_flows_for_a_limited_time() {
    let mut agent = serving_dns().await;
    agent.apply([slice("dns", DNS, &["10.244.2.2@n2"])]).await;
    agent.reconciler.finish_forgetting().await;
    assert!(agent.journal().contains(&"forget 10.244.2.1:53".to_owned()));
    agent.world().forgetting_hangs = true;
    agent.apply([slice("dns", DNS, &["10.244.2.3@n2"])]).await;
    agent.reconciler.finish_forgetting().await;
}

#[tokio::test(start_paused = true)]
async fn t01_failed_flow_deletions_are_retried() {
    let mut agent = serving_dns().await;
    agent.world().forget_fails = Some(FlowDeletionError::Kernel("no answer".to_owned()));
    agent.apply([slice("dns", DNS, &["10.244.2.2@n2"])]).await;
    agent.settle(5_000).await;
    let forgotten = |agent: &mut Loop| {
        let journal = agent.journal();
        journal.contains(&"forget 10.244.2.1:53".to_owned())
    };
    assert!(!forgotten(&mut agent));
    assert_eq!(agent.reconciler.agenda.failing(), 1);
    agent.world().forget_fails = None;
    agent.settle(120_000).await;
    assert!(forgotten(&mut agent));
    assert_eq!(agent.reconciler.agenda.failing(), 0);
}

#[tokio::test(start_paused = true)]
async fn d13_a_refused_flow_deletion_leaves_those_of_other_services_done() {
    let mut agent = serving_dns().await;
    let other = service("other", "10.96.0.12", DNS);
    agent
        .apply([other, slice("other", DNS, &["10.244.2.7@n2"])])
        .await;
    agent.settle(1_000).await;
    agent.world().forget_refuses = BTreeSet::from(["10.244.2.1".parse().unwrap()]);
    let moved = [("dns", "10.244.2.2@n2"), ("other", "10.244.2.8@n2")];
    agent
        .apply(moved.map(|(service, endpoint)| slice(service, DNS, &[endpoint])))
        .await;
    agent.settle(5_000).await;
    let deletions = |agent: &Loop, server: &str| {
        let line = format!("forget {server}:53");
        agent.journal().iter().filter(|one| **one == line).count()
    };
    assert_eq!(deletions(&agent, "10.244.2.7"), 1);
    assert_eq!(agent.reconciler.agenda.failing(), 1);
    agent.world().forget_refuses.clear();
    agent.settle(120_000).await;
    assert_eq!(deletions(&agent, "10.244.2.1"), 1);
    assert_eq!(agent.reconciler.agenda.failing(), 0);
}

#[tokio::test(start_paused = true)]
async fn pain_16_without_the_flow_thread_the_agent_exits_and_a_stop_does_not_wait() {
    let mut agent = serving_dns().await;
    agent.world().forget_fails = Some(FlowDeletionError::ThreadLost);
    agent.apply([slice("dns", DNS, &["10.244.2.2@n2"])]).await;
    let (_said, batches) = mpsc::channel(1);
    let address_monitor = AddressMonitor::open().unwrap();
    let Loop {
        mut reconciler,
        queries,
        ..
    } = agent;
    let source = Watch::of(batches);
    let ended = reconciler.run(source, address_monitor, queries, pending());
    assert_eq!(ended.await, Ended::ConntrackLost);
    let before = Instant::now();
    reconciler.finish_forgetting().await;
    assert_eq!(before.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn d8_deleted_flows_do_not_end_the_backoff_of_another_failure() {
    let mut agent = serving_dns().await;
    let refused = "ipvsadm -a -u 10.96.0.10:53 -r 10.244.2.9:53 -m -w 1";
    agent.world().faults = vec![(refused.to_owned(), Fault::Refused); 100];
    // Each change removes a real server and its flows. The kernel always refuses the new one.
    agent
        .apply([slice("dns", DNS, &["10.244.2.9@n2", "10.244.2.3@n2"])])
        .await;
    agent.settle(30_000).await;
    agent.journal();
    for pod in ["10.244.2.4@n2", "10.244.2.5@n2", "10.244.2.6@n2"] {
        agent
            .apply([slice("dns", DNS, &["10.244.2.9@n2", pod])])
            .await;
        agent.settle(100).await;
    }
    let journal = agent.journal();
    let tries = journal.iter().filter(|line| line.contains("10.244.2.9"));
    assert_eq!(tries.count(), 3, "one for each change: {journal:?}");
    let forgotten = journal.iter().filter(|line| line.starts_with("forget"));
    assert_eq!(forgotten.count(), 3, "{journal:?}");
}

/// A Service with a thousand real servers, different in each `round`.
async fn roll(agent: &mut Loop, round: usize) {
    let pods: Vec<String> = (0..1_000)
        .map(|pod| format!("10.{}.{}.{}@n2", 128 + round, pod / 250, pod % 250))
        .collect();
    let pods: Vec<&str> = pods.iter().map(String::as_str).collect();
    agent.apply([slice("web", TCP, &pods)]).await;
}

fn weightless(agent: &Loop) -> usize {
    let lines = agent.save();
    lines.iter().filter(|line| line.ends_with("-w 0")).count()
}

#[tokio::test(start_paused = true)]
async fn d8_a_long_rolling_update_leaves_idle_real_servers_until_additions_pause() {
    let mut agent = Loop::over(&Shared::default());
    agent.start(vec![service("web", "10.96.0.10", TCP)]).await;
    roll(&mut agent, 0).await;
    roll(&mut agent, 1).await;
    assert_eq!(weightless(&agent), 0, "the first thousand goes at once");
    roll(&mut agent, 2).await;
    roll(&mut agent, 3).await;
    assert_eq!(
        weightless(&agent),
        2_000,
        "more deletions would make additions expensive"
    );
    agent.journal();
    roll(&mut agent, 2).await;
    let added = |line: &String| line.starts_with("ipvsadm -a");
    assert!(!agent.journal().iter().any(added), "what waits returns");
    assert_eq!(weightless(&agent), 2_000);
    agent.settle(59_000).await;
    assert_eq!(weightless(&agent), 2_000);
    agent.settle(61_000).await;
    assert_eq!(weightless(&agent), 0);
    assert_eq!(agent.save().len(), 1_001);
}

#[tokio::test(start_paused = true)]
async fn d9_a_restart_deletes_what_an_update_left() {
    let shared = Shared::default();
    let mut agent = Loop::over(&shared);
    agent.start(vec![service("web", "10.96.0.10", TCP)]).await;
    for round in 0..4 {
        roll(&mut agent, round).await;
    }
    assert_eq!(weightless(&agent), 2_000);
    let mut again = Loop::over(&shared);
    again
        .start(vec![
            service("web", "10.96.0.10", TCP),
            slice("web", TCP, &["10.131.0.0@n2"]),
        ])
        .await;
    assert_eq!(again.save().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn d9_a_healthy_endpoint_that_is_not_chosen_has_no_deadline_until_it_is_gone() {
    let mut agent = Loop::over(&Shared::default());
    let both = ["10.244.1.1@n1", "10.244.2.1@n2"];
    let web = service("web", "10.96.0.10", TCP);
    agent
        .start(vec![web.clone(), slice("web", TCP, &both)])
        .await;
    let key = *agent.world().servers.keys().next().unwrap();
    let far = "10.244.2.1".parse().unwrap();
    agent.world().connections.insert((key, far), 1);
    let cluster::object::Object::Service(mut local) = web else {
        panic!("a Service")
    };
    local.internal_traffic_policy = topology_core::model::TrafficPolicy::Local;
    agent.apply([cluster::object::Object::Service(local)]).await;
    let waits = "-a -t 10.96.0.10:80 -r 10.244.2.1:80 -m -w 0".to_owned();
    agent.settle(10 * 900_000).await;
    assert!(agent.save().contains(&waits), "{:?}", agent.save());
    agent.apply([slice("web", TCP, &both[..1])]).await;
    agent.settle(800_000).await;
    assert!(agent.save().contains(&waits), "its deadline begins now");
    agent.settle(101_000).await;
    assert!(!agent.save().contains(&waits));
}
