//! Tests the time before the first pass: nothing is written, and health detects a first pass that
//! does not come.

use std::future::pending;
use std::time::Duration;

use cluster::event::{Batch, Completeness, Event};
use cluster::source::Watch;
use dataplane::routes::address_monitor::AddressMonitor;
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::fake::Shared;
use super::script::Loop;
use super::web;
use crate::health::watched::Watched;
use crate::health::{HealthSource as _, answer};
use crate::metrics::Metrics;
use crate::metrics::record::Probe;
use crate::node_warning::Topic;
use crate::reconcile::Ended;

/// A world in which an earlier agent programmed the Service `web`.
async fn populated() -> Shared {
    let shared = Shared::default();
    Loop::over(&shared).start(web()).await;
    shared.0.borrow_mut().journal.clear();
    shared
}

fn says(agent: &Loop, topic: Topic) -> bool {
    let warnings = agent.reconciler.warnings.all();
    warnings.iter().any(|warning| warning.topic == topic)
}

#[tokio::test(start_paused = true)]
async fn t03_nothing_is_written_before_the_addresses_of_this_machine_are_known() {
    let mut agent = Loop::over(&Shared::default());
    agent.world().addresses_unreadable = true;
    agent.start(web()).await;
    assert_eq!(agent.journal(), [""; 0]);
    assert!(!agent.handle.pulse().ready);
    agent.world().addresses_unreadable = false;
    agent.settle(1_000).await;
    assert_eq!(agent.save().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn pain_16_the_end_of_the_source_ends_the_loop() {
    let shared = Shared::default();
    let mut agent = Loop::over(&shared);
    let (_asks, queries) = mpsc::channel(1);
    let address_monitor = AddressMonitor::open().unwrap();
    let (said, batches) = mpsc::channel(1);
    drop(said);
    let lost = Watch::of(batches);
    let ended = agent
        .reconciler
        .run(lost, address_monitor, queries, pending());
    assert_eq!(ended.await, Ended::SourceLost);
}

#[tokio::test(start_paused = true)]
async fn d8_unreadable_tables_cause_no_write_before_the_first_list_is_complete() {
    let mut agent = Loop::over(&populated().await);
    agent.world().tables_unreadable = true;
    agent.read_kernel().await;
    agent.settle(300_000).await;
    assert_eq!(agent.journal(), [""; 0]);
    assert!(says(&agent, Topic::Tables));
    agent.start(web()).await;
    assert_eq!(agent.journal(), [""; 0], "it is as it should be");
    assert!(!says(&agent, Topic::Tables));
    agent.check().await;
    assert!(says(&agent, Topic::Tables));
    agent.world().tables_unreadable = false;
    agent.settle(120_000).await;
    assert!(!says(&agent, Topic::Tables));
}

#[tokio::test(start_paused = true)]
async fn t03_unreadable_tables_cause_no_write_before_the_addresses_are_known() {
    let mut agent = Loop::over(&populated().await);
    agent.world().tables_unreadable = true;
    agent.world().addresses_unreadable = true;
    agent.start(web()).await;
    agent.settle(300_000).await;
    assert_eq!(agent.journal(), [""; 0]);
    assert!(!agent.handle.pulse().ready);
}

#[tokio::test(start_paused = true)]
async fn pain_16_a_first_pass_that_cannot_begin_for_a_minute_fails_livez_on_a_populated_kernel() {
    let shared = populated().await;
    shared.0.borrow_mut().addresses_unreadable = true;
    let Loop {
        mut reconciler,
        handle,
        queries,
        ..
    } = Loop::over(&shared);
    let (said, batches) = mpsc::channel(1);
    let mut events = vec![Event::Begin];
    events.extend(web().into_iter().map(Event::Apply));
    events.push(Event::Complete(Completeness::Whole));
    let reports = Vec::new();
    said.send(Batch { events, reports }).await.unwrap();
    let watched = Watched::new(handle, None);
    let probe = async |probe| {
        let state = watched.health_state().await;
        answer(probe, &state, &Metrics::new()).status().as_u16()
    };
    let both = async || [probe(Probe::Livez).await, probe(Probe::Healthz).await];
    let checks = async {
        sleep(Duration::from_secs(55)).await;
        assert_eq!(both().await, [200, 503]);
        sleep(Duration::from_secs(6)).await;
        assert_eq!(both().await, [503, 503]);
        assert_eq!(shared.0.borrow().journal, [""; 0]);
        shared.0.borrow_mut().addresses_unreadable = false;
        sleep(Duration::from_secs(61)).await;
        assert_eq!(both().await, [200, 200]);
    };
    let address_monitor = AddressMonitor::open().unwrap();
    let stop = pending();
    tokio::select! {
        _ = reconciler.run(Watch::of(batches), address_monitor, queries, stop) => panic!("the loop ended"),
        () = checks => {}
    }
}

#[tokio::test(start_paused = true)]
async fn only_a_pass_or_a_whole_comparison_counts_as_one() {
    let mut agent = Loop::over(&Shared::default());
    agent.start(web()).await;
    let passed = |agent: &Loop| agent.handle.pulse().last_pass;
    let first = passed(&agent);
    assert!(first.is_some());
    // Each poll finds the tables unread.
    agent.world().table_polls = 3;
    agent.settle(1_000).await;
    assert_eq!(passed(&agent), first);
    agent.check().await;
    assert_ne!(passed(&agent), first);
}
