//! Tests what is retried after a failure, and when.

use std::time::Duration;

use cluster::object::Object;
use topology_core::model::Frontend;

use super::fake::Shared;
use super::script::{Loop, service, slice};
use super::{TCP, key};

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
    assert_eq!(agent.reconciler.agenda.failing().0, 0);
}
