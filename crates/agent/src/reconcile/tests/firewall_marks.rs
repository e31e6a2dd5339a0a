//! Firewall marks: restarts, kills, a record that cannot be written, and the life of their virtual servers.

use std::collections::BTreeMap;

use cluster::event::Completeness;
use cluster::object::Object;
use dataplane::nftables::{Element, SetId};
use topology_core::model::{Family, Frontend, Protocol, TrafficPolicy};
use topology_core::snapshot::MarkedPort;
use topology_core::virtual_server::VirtualServerKey;

use super::TCP;
use super::fake::Shared;
use super::script::{Loop, service, slice};
use crate::node_warning::Topic;

/// The load balancer address of [`local`].
const OUTSIDE: &str = "192.0.2.1";

/// A Service whose outside clients get endpoints of this node only. `number` makes its addresses.
pub(super) fn local(name: &str, number: u8) -> Object {
    let Object::Service(mut local) = service(name, &format!("10.96.0.{number}"), TCP) else {
        panic!("a Service")
    };
    let outside = format!("192.0.2.{number}").parse().unwrap();
    local.frontends.push(Frontend::load_balancer(outside));
    local.external_traffic_policy = TrafficPolicy::Local;
    Object::Service(local)
}

/// The same Service, whose outside clients get all endpoints.
pub(super) fn everywhere(name: &str, number: u8) -> Object {
    let Object::Service(mut everywhere) = local(name, number) else {
        panic!("a Service")
    };
    everywhere.external_traffic_policy = TrafficPolicy::Cluster;
    Object::Service(everywhere)
}

/// An endpoint on this node and one on another.
pub(super) fn both(name: &str, number: u8) -> Object {
    let here = format!("10.244.1.{number}@n1");
    let there = format!("10.244.2.{number}@n2");
    slice(name, TCP, &[&here, &there])
}

/// Two Services that prefer the same mark, each with its endpoints.
fn collide() -> [Vec<Object>; 2] {
    [1, 3].map(|number| {
        let name = format!("web-{number}");
        vec![local(&name, number), both(&name, number)]
    })
}

/// A loop with two possible marks.
fn narrow(shared: &Shared) -> Loop {
    Loop::with(shared, |config| config.mark_mask = "0x7".parse().unwrap())
}

fn marks(agent: &Loop) -> BTreeMap<MarkedPort, u32> {
    agent.world().marks.clone()
}

/// The marks that virtual servers in the kernel have.
pub(super) fn in_kernel(agent: &Loop) -> Vec<u32> {
    let world = agent.world();
    let mark = |key: &VirtualServerKey| match key {
        VirtualServerKey::FirewallMark { mark, .. } => Some(*mark),
        VirtualServerKey::Address { .. } => None,
    };
    world.servers.keys().filter_map(mark).collect()
}

/// The only mark on disk.
pub(super) fn only_mark(agent: &Loop) -> u32 {
    let marks = marks(agent);
    assert_eq!(marks.len(), 1, "{marks:?}");
    *marks.values().next().unwrap()
}

pub(super) fn key_of(mark: u32) -> VirtualServerKey {
    VirtualServerKey::FirewallMark {
        family: Family::V4,
        mark,
    }
}

pub(super) async fn started(shared: &Shared, objects: Vec<Object>) -> Loop {
    let mut agent = Loop::over(shared);
    agent.start(objects).await;
    agent
}

pub(super) async fn serving(shared: &Shared) -> Loop {
    started(shared, vec![local("web", 1), both("web", 1)]).await
}

fn position(journal: &[String], start: &str) -> usize {
    let at = journal.iter().position(|line| line.starts_with(start));
    at.unwrap_or_else(|| panic!("no {start} in {journal:?}"))
}

fn warns(agent: &Loop) -> bool {
    let warnings = agent.reconciler.warnings.all();
    let mut topics = warnings.iter().map(|warning| warning.topic);
    topics.any(|topic| topic == Topic::FirewallMarks)
}

#[tokio::test(start_paused = true)]
async fn d7_a_mark_is_on_disk_before_tables_and_virtual_servers_use_it() {
    let shared = Shared::default();
    let agent = serving(&shared).await;
    let journal = agent.journal();
    let mark = only_mark(&agent);
    let key = key_of(mark);
    assert_eq!(journal[0], format!("mark t/web:80-tcp {mark:#x}"));
    assert!(position(&journal, "tables") < position(&journal, &format!("claim {key}")));
    let servers = agent.save();
    assert!(servers.contains(&format!("-a {key} -r 10.244.1.1:80 -m -w 1")));
    assert!(
        !servers
            .concat()
            .contains(&format!("-a {key} -r 10.244.2.1"))
    );
}

#[tokio::test(start_paused = true)]
async fn d7_a_restart_keeps_every_mark_although_two_ports_prefer_the_same_and_come_in_another_order()
 {
    let [one, two] = collide();
    let there = [one.clone(), two.clone()].concat();
    let back = [two, one].concat();
    let shared = Shared::default();
    let mut agent = narrow(&shared);
    agent.start(there).await;
    let before = marks(&agent);
    assert_eq!(before.len(), 2);
    let other = Shared::default();
    let mut other = narrow(&other);
    other.start(back.clone()).await;
    assert_ne!(marks(&other), before, "they collide");

    let mut again = narrow(&shared);
    again.journal();
    again.start(back).await;
    assert_eq!(again.journal(), [""; 0]);
    assert_eq!(marks(&again), before);
}

#[tokio::test(start_paused = true)]
async fn d8_a_service_that_is_not_listed_yet_keeps_its_mark_and_one_that_is_gone_loses_it() {
    let [one, two] = collide();
    let shared = Shared::default();
    let mut agent = narrow(&shared);
    agent.start([one.clone(), two.clone()].concat()).await;
    let before = marks(&agent);

    let mut again = narrow(&shared);
    again.start_with(two.clone(), Completeness::Partial).await;
    assert_eq!(marks(&again), before);
    assert_eq!(in_kernel(&again).len(), 2);
    again.apply(one).await;
    assert_eq!(marks(&again), before);

    let mut last = narrow(&shared);
    last.journal();
    last.start(two).await;
    let journal = last.journal();
    let deleted = position(&journal, "ipvsadm -D -f");
    assert!(deleted < position(&journal, "no mark t/web-1:80-tcp"));
    assert_eq!(in_kernel(&last), [only_mark(&last)]);
}

#[tokio::test(start_paused = true)]
async fn a_service_that_waits_for_a_mark_gets_the_first_one_that_is_released() {
    let shared = Shared::default();
    let mut agent = Loop::with(&shared, |config| config.mark_mask = "0x3".parse().unwrap());
    agent.start(vec![local("a", 1), local("b", 2)]).await;
    assert_eq!(in_kernel(&agent), [3]);
    let is_masqueraded = |agent: &Loop, address: &str| {
        let listener = Element::Listener(address.parse().unwrap(), Protocol::Tcp, 80);
        agent.world().tables.contains(SetId::Masquerade, &listener)
    };
    // Replies of endpoints of other nodes come back through this one.
    let both = [
        is_masqueraded(&agent, "192.0.2.1"),
        is_masqueraded(&agent, "192.0.2.2"),
    ];
    assert_eq!(both, [false, true]);
    agent.journal();
    agent.apply([everywhere("a", 1)]).await;
    let both = [
        is_masqueraded(&agent, "192.0.2.1"),
        is_masqueraded(&agent, "192.0.2.2"),
    ];
    assert_eq!(both, [true, false]);
    let journal = agent.journal();
    // In between no client of the one Service gets endpoints of the other.
    let unmarked = position(&journal, "tables - marks");
    let released = position(&journal, "no mark t/a:80-tcp");
    assert!(unmarked < released && released < position(&journal, "mark t/b:80-tcp 0x3"));
    assert_eq!((in_kernel(&agent), only_mark(&agent)), (vec![3], 3));

    let mut again = Loop::with(&shared, |config| config.mark_mask = "0x3".parse().unwrap());
    again.start(vec![local("c", 3)]).await;
    position(&again.journal(), "mark t/c:80-tcp 0x3");
    assert_eq!((in_kernel(&again), only_mark(&again)), (vec![3], 3));
}

#[tokio::test(start_paused = true)]
async fn t06_a_kill_after_any_step_loses_no_mark() {
    let [one, two] = collide();
    let there = [one.clone(), two.clone()].concat();
    let back = [two, one].concat();
    for steps in 0.. {
        let shared = Shared::default();
        let mut dying = narrow(&shared);
        dying.world().steps_left = Some(steps);
        dying.start(there.clone()).await;
        let died = dying.world().steps_left == Some(0);
        let (written, used) = (marks(&dying), in_kernel(&dying));
        let known: Vec<u32> = written.values().copied().collect();
        assert!(used.iter().all(|mark| known.contains(mark)), "{steps}");

        let mut next = narrow(&shared);
        next.world().steps_left = None;
        next.start(back.clone()).await;
        next.settle(1_000).await;
        let now = marks(&next);
        assert_eq!(now.len(), 2);
        let kept = |(port, mark): (&MarkedPort, &u32)| now.get(port) == Some(mark);
        assert!(written.iter().all(kept), "killed after {steps} steps");
        assert_eq!(in_kernel(&next).len(), 2, "killed after {steps} steps");

        let mut last = narrow(&shared);
        last.journal();
        last.start(there.clone()).await;
        assert_eq!(last.journal(), [""; 0]);
        if !died {
            break;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn marks_that_cannot_be_written_stop_no_traffic_and_are_written_by_a_later_pass() {
    let shared = Shared::default();
    shared.0.borrow_mut().marks_fail = true;
    let mut agent = serving(&shared).await;
    assert_eq!(in_kernel(&agent).len(), 1);
    assert!(warns(&agent));
    agent.apply([local("new", 2)]).await;
    assert_eq!(in_kernel(&agent).len(), 2);
    assert_eq!(marks(&agent), BTreeMap::new());

    agent.world().marks_fail = false;
    agent.apply([service("other", "10.96.0.9", TCP)]).await;
    assert!(!warns(&agent));
    let mut written: Vec<u32> = marks(&agent).into_values().collect();
    written.sort_unstable();
    assert_eq!(written, in_kernel(&agent));
}

#[tokio::test(start_paused = true)]
async fn a_mask_that_changed_gives_new_marks_and_removes_the_old_virtual_servers() {
    let shared = Shared::default();
    serving(&shared).await;
    let mut agent = narrow(&shared);
    agent.start(vec![local("web", 1), both("web", 1)]).await;
    assert_eq!(in_kernel(&agent), [only_mark(&agent)]);
    assert!(only_mark(&agent) <= 7);
    let mut again = narrow(&shared);
    again.journal();
    again.start(vec![local("web", 1), both("web", 1)]).await;
    assert_eq!(again.journal(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn d9_connections_of_a_released_mark_survive_a_restart_and_no_service_gets_the_mark_before_they_end()
 {
    let narrowest =
        |shared: &Shared| Loop::with(shared, |config| config.mark_mask = "0x3".parse().unwrap());
    let shared = Shared::default();
    let mut agent = narrowest(&shared);
    agent.start(vec![local("web", 1), both("web", 1)]).await;
    let key = key_of(3);
    let busy = (key, "10.244.1.1".parse().unwrap());
    agent.world().connections.insert(busy, 3);
    agent.apply([everywhere("web", 1)]).await;
    let draining = format!("-a {key} -r 10.244.1.1:80 -m -w 0");
    assert!(agent.save().contains(&draining), "{:?}", agent.save());
    assert_eq!(only_mark(&agent), 3, "it is still on disk");

    let mut again = narrowest(&shared);
    let other = [local("other", 2), both("other", 2)];
    let objects = [vec![everywhere("web", 1), both("web", 1)], other.to_vec()];
    again.start(objects.concat()).await;
    // Longer than any deadline.
    again.settle(2_000_000).await;
    assert!(again.save().contains(&draining), "{:?}", again.save());
    let marked = |agent: &Loop, pod: &str| {
        let line = format!("-a {key} -r {pod}:80 -m -w 1");
        agent.save().contains(&line)
    };
    assert!(!marked(&again, "10.244.1.2"));

    again.world().connections.remove(&busy);
    again.settle(130_000).await;
    assert!(!again.save().contains(&draining), "{:?}", again.save());
    assert!(marked(&again, "10.244.1.2"), "{:?}", again.save());
    assert_eq!(
        marks(&again).keys().next().unwrap().service.to_string(),
        "t/other"
    );
}

#[tokio::test(start_paused = true)]
async fn d9_a_real_server_of_a_mark_drains_and_its_deadline_survives_a_restart() {
    let shared = Shared::default();
    let mut agent = serving(&shared).await;
    let key = key_of(only_mark(&agent));
    let busy = (key, "10.244.1.1".parse().unwrap());
    agent.world().connections.insert(busy, 3);
    let rest = || [slice("web", TCP, &["10.244.2.1@n2"])];
    agent.apply(rest()).await;
    let draining = format!("-a {key} -r 10.244.1.1:80 -m -w 0");
    assert!(agent.save().contains(&draining), "{:?}", agent.save());
    assert_eq!(agent.world().saved_deadlines()[0].key, key);
    agent.settle(800_000).await;

    let mut again = Loop::over(&shared);
    again
        .start([vec![local("web", 1)], rest().to_vec()].concat())
        .await;
    again.settle(95_000).await;
    assert!(again.save().contains(&draining), "{:?}", again.save());
    again.settle(10_000).await;
    assert!(!again.save().contains(&draining), "{:?}", again.save());
    assert_eq!(in_kernel(&again).len(), 1, "outside clients are dropped");
}

#[tokio::test(start_paused = true)]
async fn kp_tp_07_outside_clients_are_dropped_only_while_another_node_has_endpoints() {
    let shared = Shared::default();
    let mut agent = serving(&shared).await;
    for (endpoints, change) in [
        (&["10.244.2.1@n2"][..], "tables + drop-outside"),
        (&[], "tables - drop-outside"),
        (&["10.244.2.1@n2"], "tables + drop-outside"),
    ] {
        agent.journal();
        agent.apply([slice("web", TCP, endpoints)]).await;
        agent.settle(6_000).await;
        position(&agent.journal(), change);
    }
}

#[tokio::test(start_paused = true)]
async fn kp_gt_01_a_udp_real_server_of_a_mark_is_deleted_at_once_with_its_flows() {
    const DNS: &[&str] = &["53/UDP"];
    let Object::Service(mut dns) = service("dns", "10.96.0.1", DNS) else {
        panic!("a Service")
    };
    let outside = OUTSIDE.parse().unwrap();
    dns.frontends.push(Frontend::load_balancer(outside));
    dns.external_traffic_policy = TrafficPolicy::Local;
    let dns = Object::Service(dns);
    let pods = slice("dns", DNS, &["10.244.1.1@n1", "10.244.1.2@n1"]);
    let shared = Shared::default();
    started(&shared, vec![dns.clone(), pods]).await;
    // After a restart only the record knows the protocol of the mark.
    let mut agent = Loop::over(&shared);
    let left = slice("dns", DNS, &["10.244.1.2@n1"]);
    agent.journal();
    agent.start(vec![dns.clone(), left]).await;
    let key = key_of(only_mark(&agent));
    let journal = agent.journal();
    position(&journal, &format!("ipvsadm -d {key} -r 10.244.1.1:53"));
    assert!(!journal.concat().contains("-w 0"), "{journal:?}");
    agent.settle(1_000).await;
    let any = "forget 10.244.1.1:53 of any".to_owned();
    assert!(agent.journal().contains(&any));
    agent.delete(&dns).await;
    agent.settle(1_000).await;
    let any = "forget 10.244.1.2:53 of any".to_owned();
    assert!(agent.journal().contains(&any));
    assert_eq!(agent.save(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn kp_tp_01_external_traffic_policy_cluster_removes_the_mark_and_local_allocates_it_again() {
    let shared = Shared::default();
    let mut agent = serving(&shared).await;
    let mark = only_mark(&agent);
    let key = key_of(mark);
    agent.journal();
    agent.apply([everywhere("web", 1)]).await;
    agent.settle(6_000).await;
    let journal = agent.journal();
    let masqueraded = position(&journal, "tables + masqueraded");
    let unmarked = position(&journal, "tables - marks");
    let deleted = position(&journal, &format!("ipvsadm -D {key}"));
    let released = position(&journal, &format!("release {key}"));
    assert!(masqueraded < unmarked && unmarked < deleted && deleted < released);
    assert!(released < position(&journal, "no mark t/web:80-tcp"));
    assert_eq!(marks(&agent), BTreeMap::new());
    assert!(!agent.world().record.contains(&key));
    let address = format!("-a -t {OUTSIDE}:80 -r 10.244.2.1:80 -m -w 1");
    assert!(agent.save().contains(&address));

    agent.journal();
    agent.apply([local("web", 1)]).await;
    assert_eq!(only_mark(&agent), mark);
    let journal = agent.journal();
    let marked = position(&journal, "tables + marks");
    let claimed = position(&journal, &format!("claim {key}"));
    assert_eq!(position(&journal, "mark t/web:80-tcp"), 0);
    assert!(claimed < marked, "{journal:?}");
    agent.delete(&local("web", 1)).await;
    assert_eq!((marks(&agent).len(), agent.save().len()), (0, 0));
    assert_eq!(agent.world().record.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn pain_44_a_virtual_server_of_a_mark_that_drifts_is_repaired() {
    let shared = Shared::default();
    let mut agent = serving(&shared).await;
    let before = agent.save();
    let key = key_of(only_mark(&agent));
    agent.world().servers.remove(&key);
    agent.check().await;
    assert_eq!(agent.save(), before);
    agent.world().servers.get_mut(&key).unwrap().scheduler = "rr".into();
    agent.check().await;
    agent.settle(10_000).await;
    assert_eq!(agent.save(), before);
}

/// KP-SY-13: before the tables exist, every client could connect to an address with source ranges, and masqueraded
/// clients would get replies from the endpoint's address. The cluster IP needs neither.
#[tokio::test(start_paused = true)]
async fn an_external_virtual_server_waits_for_the_tables_that_it_needs() {
    let ranges = [None, Some(vec!["198.51.100.0/24".parse().unwrap()])];
    for (policy, ranges) in [
        (TrafficPolicy::Cluster, ranges[0].clone()),
        (TrafficPolicy::Cluster, ranges[1].clone()),
        (TrafficPolicy::Local, ranges[1].clone()),
    ] {
        let shared = Shared::default();
        shared.0.borrow_mut().table_refusals = Some(0);
        let Object::Service(mut web) = everywhere("web", 1) else {
            panic!("a Service")
        };
        web.external_traffic_policy = policy;
        web.source_ranges = ranges;
        let mut agent = Loop::with(&shared, |config| config.masquerade_all = true);
        agent
            .start(vec![Object::Service(web), both("web", 1)])
            .await;
        let [external, cluster_ip] =
            [OUTSIDE, "10.96.0.1"].map(|address| format!("-A -t {address}:80 -s wrr"));
        let saved = agent.save();
        assert!(!saved.contains(&external), "{saved:?}");
        assert!(saved.contains(&cluster_ip), "{saved:?}");

        agent.world().table_refusals = None;
        agent.settle(60_000).await;
        assert!(agent.save().contains(&external), "{:?}", agent.save());
    }
}
