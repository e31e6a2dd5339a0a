//! Tests what health checks return while something fails for a long time.

use std::future::pending;
use std::time::Duration;

use cluster::event::{Batch, Completeness, Event};
use cluster::source::Watch;
use dataplane::routes::address_monitor::AddressMonitor;
use dataplane::routes::addresses::Interface;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};
use topology_core::model::Family;

use super::fake::{Fault, Shared, World};
use super::script::{Loop, service};
use super::{TCP, web_and_other};
use crate::health::watched::Watched;
use crate::health::{HealthSource as _, answer};
use crate::metrics::Metrics;
use crate::metrics::record::Probe;

/// The status of `/livez` and `/healthz` after 55 s and 70 s with a fault, and 70 s after its end.
async fn probed(break_it: impl FnOnce(&mut World), mend: impl FnOnce(&mut World)) -> [[u16; 2]; 3] {
    let shared = Shared::default();
    break_it(&mut shared.0.borrow_mut());
    let Loop {
        mut reconciler,
        handle,
        queries,
        ..
    } = Loop::over(&shared);
    let (said, batches) = mpsc::channel(1);
    let mut events = vec![Event::Begin];
    events.extend(web_and_other().into_iter().map(Event::Apply));
    events.push(Event::Complete(Completeness::Whole));
    let reports = Vec::new();
    said.send(Batch { events, reports }).await.unwrap();
    let watched = Watched::new(handle, None);
    let probe = async |probe| {
        let state = watched.health_state().await;
        answer(probe, &state, &Metrics::new()).status().as_u16()
    };
    let both_after = async |seconds| {
        sleep(Duration::from_secs(seconds)).await;
        [probe(Probe::Livez).await, probe(Probe::Healthz).await]
    };
    let checks = async {
        let (early, late) = (both_after(55).await, both_after(15).await);
        mend(&mut shared.0.borrow_mut());
        [early, late, both_after(70).await]
    };
    let address_monitor = AddressMonitor::open().unwrap();
    tokio::select! {
        _ = reconciler.run(Watch::of(batches), address_monitor, queries, pending()) => panic!("the loop ended"),
        seen = checks => seen,
    }
}

const FINE: [u16; 2] = [200, 200];
const BAD: [u16; 2] = [503, 503];

#[tokio::test(start_paused = true)]
async fn kp_hc_03_routes_or_tables_that_fail_for_a_minute_make_the_proxy_unhealthy() {
    let refused = probed(
        |world| world.table_refusals = Some(0),
        |world| world.table_refusals = None,
    );
    assert_eq!(refused.await, [FINE, BAD, FINE], "tables");
    let in_background = probed(
        |world| world.table_loads_fail = true,
        |world| world.table_loads_fail = false,
    );
    assert_eq!(in_background.await, [FINE, BAD, FINE], "tables, later");
    let routes = probed(
        |world| world.refused_routes = vec![Family::V4],
        |world| world.refused_routes.clear(),
    );
    assert_eq!(routes.await, [FINE, BAD, FINE], "routes");
}

/// The Services `web` and `other`, and one of IPv6, on a node with an address of IPv4 only. With IPv6 disabled the kernel
/// refuses its routes.
async fn without_ipv6() -> Loop {
    let mut agent = Loop::over(&Shared::default());
    let own = Interface {
        link: "eth0".to_owned(),
        address: "192.0.2.1".parse().unwrap(),
        prefix: 24,
        global: true,
    };
    agent.world().addresses = vec![own];
    agent.world().refused_routes = vec![Family::V6];
    let mut objects = web_and_other();
    objects.push(service("six", "fd00:96::9", TCP));
    agent.start(objects).await;
    assert_eq!(agent.handle.pulse().waiting, 1, "it is retried");
    agent
}

#[tokio::test(start_paused = true)]
async fn routes_of_a_family_without_an_address_of_the_node_leave_the_proxy_healthy() {
    let mut agent = without_ipv6().await;
    let failing_since = |agent: &Loop| agent.handle.pulse().host_failing;
    assert_eq!(failing_since(&agent), None);
    agent.settle(300_000).await;
    assert_eq!(failing_since(&agent), None);

    agent.world().refused_routes.push(Family::V4);
    let published = service("far", "198.51.100.9", TCP);
    agent.apply([published]).await;
    assert_eq!(failing_since(&agent), Some(Instant::now()), "from now on");
    agent.world().refused_routes.pop();
    agent.settle(250).await;
    assert_eq!(failing_since(&agent), None, "it has a pause of its own");
    assert_eq!(agent.handle.pulse().waiting, 1);
}

/// D1: such a node has no other costs than any other.
#[tokio::test(start_paused = true)]
async fn routes_of_a_family_without_an_address_do_not_make_every_change_a_comparison_of_all() {
    let mut agent = without_ipv6().await;
    let compared = agent.world().route_comparisons;
    agent.apply([service("far", "198.51.100.9", TCP)]).await;
    agent.apply([service("more", "fd00:96::10", TCP)]).await;
    assert_eq!(agent.world().route_comparisons, compared);
    agent.world().refused_routes.clear();
    agent.settle(60_000).await;
    assert_eq!(agent.handle.pulse().waiting, 0);
    let world = agent.world();
    let mut routes = world.routes.iter();
    assert!(routes.any(|route| Family::of_range(&route.to) == Family::V6));
}

#[tokio::test(start_paused = true)]
async fn t15_a_virtual_server_that_fails_for_minutes_leaves_the_proxy_healthy() {
    let refused = "ipvsadm -A -t 10.96.0.11:80 -s wrr".to_owned();
    let faults = vec![(refused, Fault::Refused); 100];
    let seen = probed(|world| world.faults = faults, |world| world.faults.clear());
    assert_eq!(seen.await, [FINE; 3]);
}
