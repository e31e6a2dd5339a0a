//! Tests whose turn it is in the loop.

use std::future::pending;
use std::time::Duration;

use cluster::event::{Batch, Event};
use cluster::source::Watch;
use dataplane::routes::address_monitor::AddressMonitor;
use tokio::sync::mpsc;

use super::fake::{Fault, Shared};
use super::script::{Loop, service, slice};
use super::{TCP, key, web_and_other};
use crate::reconcile::Ended;

#[tokio::test(start_paused = true)]
async fn d13_changes_that_arrive_all_the_time_delay_no_check_and_no_retry_for_ever() {
    let shared = Shared::default();
    let mut agent = Loop::over(&shared);
    let refused = "ipvsadm -A -t 10.96.0.12:80 -s wrr";
    agent.world().faults = vec![(refused.to_owned(), Fault::Refused)];
    let mut objects = web_and_other();
    objects.push(service("refused", "10.96.0.12", TCP));
    agent.start(objects).await;
    // The next check and the retry are due, and this is for the check to find.
    agent.world().servers.remove(&key("10.96.0.11"));
    tokio::time::advance(Duration::from_secs(61)).await;
    agent.journal();

    let (said, batches) = mpsc::channel(1_000);
    for round in 0..1_000 {
        let pod = format!("10.244.{}.{}@n2", 100 + round / 250, round % 250);
        said.try_send(Batch {
            events: vec![Event::Apply(slice("web", TCP, &[&pod]))],
            reports: Vec::new(),
        })
        .unwrap();
    }
    drop(said);
    let Loop {
        mut reconciler,
        queries,
        ..
    } = agent;
    let address_monitor = AddressMonitor::open().unwrap();
    let ended = reconciler.run(Watch::of(batches), address_monitor, queries, pending());
    assert_eq!(ended.await, Ended::SourceLost);
    let servers = &shared.0.borrow().servers;
    assert!(servers.contains_key(&key("10.96.0.12")), "the retry");
    assert!(servers.contains_key(&key("10.96.0.11")), "the check");
}
