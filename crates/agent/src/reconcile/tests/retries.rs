//! Tests what is retried after a failure, and when.

use std::time::Duration;

use cluster::object::Object;
use dataplane::conntrack::FlowDeletionError;
use topology_core::model::{Frontend, Protocol};
use topology_core::virtual_server::VirtualServerKey;

use super::fake::{Fault, Shared};
use super::script::{Loop, service, slice};
use super::{TCP, key, web_and_other};
use crate::reconcile::reconciler::Item;

/// A Service with a load balancer address, whose virtual server must not exist before its masquerading.
fn balanced(endpoints: &[&str]) -> Vec<Object> {
    let Object::Service(mut web) = service("web", "10.96.0.10", TCP) else {
        unreachable!("a Service was made");
    };
    web.frontends
        .push(Frontend::load_balancer("192.0.2.1".parse().unwrap()));
    vec![Object::Service(web), slice("web", TCP, endpoints)]
}

#[tokio::test(start_paused = true)]
async fn d8_a_drain_of_a_virtual_server_that_waits_for_tables_is_not_due_all_the_time() {
    let mut agent = Loop::over(&Shared::default());
    agent
        .start(balanced(&["10.244.1.1@n1", "10.244.2.1@n2"]))
        .await;
    let (external, busy) = (key("192.0.2.1"), "10.244.2.1".parse().unwrap());
    agent.world().connections.insert((external, busy), 1);
    agent.apply(balanced(&["10.244.1.1@n1"])).await;
    {
        let mut world = agent.world();
        world.servers.remove(&external);
        world.tables = dataplane::nftables::DesiredTables::default();
        world.table_refusals = Some(0);
    }
    tokio::time::advance(Duration::from_secs(6)).await;
    agent.reconciler.handle_due().await;
    let (next, now) = (agent.reconciler.agenda.next(), agent.reconciler.now());
    assert!(next.is_some_and(|next| next > now), "{next:?} {now}");
    agent.world().table_refusals = None;
    agent.settle(120_000).await;
    assert!(agent.world().servers.contains_key(&external));
    assert_eq!(agent.reconciler.agenda.failing(), 0);
}

/// Otherwise a restart would find the key in the record, and delete the other program's virtual server.
#[tokio::test(start_paused = true)]
async fn pain_12_a_release_that_cannot_be_written_is_written_later() {
    for checks in [false, true] {
        let shared = Shared::default();
        let mut agent = Loop::over(&shared);
        agent.start(web_and_other()).await;
        agent.world().record_fails = true;
        agent.delete(&service("web", "10.96.0.10", TCP)).await;
        assert!(agent.world().record.contains(&key("10.96.0.10")));
        agent.world().record_fails = false;
        if checks {
            agent.check().await;
        } else {
            agent.apply([service("next", "10.96.0.12", TCP)]).await;
        }
        let ours = agent.world().record.clone();
        assert!(!ours.contains(&key("10.96.0.10")) && ours.contains(&key("10.96.0.11")));

        // Another program creates a virtual server with this key.
        let mut other = Loop::over(&shared);
        other.start(web_and_other()).await;
        shared.0.borrow_mut().record = ours;
        let mut again = Loop::over(&shared);
        again.start(web_and_other().split_off(2)).await;
        assert!(shared.0.borrow().servers.contains_key(&key("10.96.0.10")));
    }
}

#[tokio::test(start_paused = true)]
async fn d10_a_virtual_server_whose_reply_was_lost_stays_in_a_rewritten_record() {
    let mut agent = Loop::over(&Shared::default());
    let lost = "ipvsadm -A -t 10.96.0.10:80 -s wrr".to_owned();
    agent.world().faults = vec![(lost, Fault::AnswerLost)];
    agent.start(web_and_other()).await;
    agent.world().record_incomplete = true;
    agent.reconciler.complete_record();
    assert!(agent.world().record.contains(&key("10.96.0.10")));
}

/// The step for these flows names the address of the virtual server, which is no real server that was deleted.
#[tokio::test(start_paused = true)]
async fn kp_ct_03_entries_from_before_the_first_endpoint_are_deleted_again_after_a_failure() {
    let dns: &[&str] = &["53/UDP"];
    let mut agent = Loop::over(&Shared::default());
    agent.start(vec![service("dns", "10.96.0.10", dns)]).await;
    agent.world().forget_fails = Some(FlowDeletionError::Kernel("no answer".to_owned()));
    agent.apply([slice("dns", dns, &["10.244.2.1@n2"])]).await;
    agent.settle(5_000).await;
    let attempts = |agent: &Loop| {
        let key = VirtualServerKey::Address {
            protocol: Protocol::Udp,
            address: "10.96.0.10".parse().unwrap(),
            port: 53,
        };
        let failure = agent.reconciler.agenda.failure(&Item::Server(key));
        failure.map(|failure| failure.attempts)
    };
    assert_eq!(attempts(&agent), Some(5), "with growing pauses");
    let forgotten = |agent: &Loop| {
        let journal = agent.journal().into_iter();
        let lines = journal.filter(|line| line.starts_with("forget"));
        lines.collect::<Vec<_>>()
    };
    assert_eq!(forgotten(&agent), [""; 0]);
    agent.world().forget_fails = None;
    agent.settle(120_000).await;
    assert_eq!(forgotten(&agent), ["forget 10.96.0.10:53"]);
    assert_eq!(attempts(&agent), None);
    assert_eq!(agent.reconciler.agenda.next(), None);
}
