//! Tests the state of the loop for health checks and metrics.

use cluster::event::{EndpointTrigger, Event};
use cluster::object::Object;
use jiff::{SignedDuration, Timestamp};
use topology_core::model::Family;

use super::fake::{Fault, Shared};
use super::script::{Loop, node, service, slice};
use super::{TCP, web};
use crate::metrics::figures::Figures;

fn pending(agent: &Loop) -> (u64, u64) {
    let pulse = agent.handle.pulse();
    (pulse.pending_services, pulse.pending_slices)
}

#[tokio::test(start_paused = true)]
async fn kp_mx_05_and_06_changes_are_pending_until_a_pass_processes_them() {
    let mut agent = Loop::over(&Shared::default());
    agent.start(web()).await;
    assert_eq!(pending(&agent), (0, 0));
    agent.say(Event::Apply(slice("web", TCP, &["10.244.1.1@n1"])));
    agent.say(Event::Apply(slice("web", TCP, &["10.244.1.2@n1"])));
    agent.say(Event::Delete(service("gone", "10.96.0.12", TCP).key()));
    agent.say(Event::Apply(node("n1", "192.168.1.1")));
    agent.reconciler.publish();
    assert_eq!(pending(&agent), (1, 2), "Nodes are not counted");
    agent.apply([]).await;
    assert_eq!(pending(&agent), (0, 0));
}

/// How many durations `kubeproxy_network_programming_duration_seconds` has, and their sum.
fn programming(agent: &Loop) -> (u64, f64) {
    let text = agent
        .reconciler
        .metrics
        .expose(&Figures::default())
        .unwrap();
    let sample = |suffix: &str| {
        let name = format!(
            "kubeproxy_network_programming_duration_seconds_{suffix}{{ip_family=\"IPv4\"}} "
        );
        let value = text.lines().find_map(|line| line.strip_prefix(&name));
        value.unwrap_or("0").to_owned()
    };
    let (count, sum) = (sample("count"), sample("sum"));
    (count.parse().unwrap(), sum.parse().unwrap())
}

#[tokio::test(start_paused = true)]
async fn kp_mx_22_the_programming_time_begins_with_the_cause_of_a_changed_slice() {
    let mut agent = Loop::over(&Shared::default());
    agent.start(web()).await;
    let triggered = |ago: SignedDuration| {
        let at = Timestamp::now() - ago;
        Event::Triggered(EndpointTrigger {
            family: Family::V4,
            at,
        })
    };
    agent.apply([service("other", "10.96.0.12", TCP)]).await;
    assert_eq!(programming(&agent).0, 0, "a Service has no such cause");

    let hour = SignedDuration::from_hours(1);
    agent.say(triggered(hour));
    agent.apply([slice("web", TCP, &["10.244.1.1@n1"])]).await;
    assert_eq!(programming(&agent).0, 0, "before the start of the process");

    agent.say(Event::Apply(slice("web", TCP, &["10.244.1.2@n1"])));
    agent.say(triggered(SignedDuration::ZERO));
    agent.say(triggered(-hour));
    agent.apply([]).await;
    let (count, sum) = programming(&agent);
    assert_eq!(count, 2);
    assert!((0.0..60.0).contains(&sum), "{sum}");
    agent.apply([slice("web", TCP, &["10.244.1.3@n1"])]).await;
    assert_eq!(programming(&agent).0, 2, "a cause counts once");
}

#[tokio::test(start_paused = true)]
async fn kp_mx_22_only_what_reached_the_kernel_has_a_programming_time() {
    let mut agent = Loop::over(&Shared::default());
    agent.start(web()).await;
    let change = async |agent: &mut Loop, pods: &[&str]| {
        let (family, at) = (Family::V4, Timestamp::now() + SignedDuration::from_hours(1));
        agent.say(Event::Triggered(EndpointTrigger { family, at }));
        agent.apply([slice("web", TCP, pods)]).await;
        programming(agent).0
    };
    assert_eq!(change(&mut agent, &["10.244.2.2@n2"]).await, 1);

    let refused = "ipvsadm -a -t 10.96.0.10:80 -r 10.244.2.3:80 -m -w 1";
    agent.world().faults = vec![(refused.to_owned(), Fault::Refused)];
    assert_eq!(change(&mut agent, &["10.244.2.3@n2"]).await, 1, "a step");
    agent.settle(10_000).await;
    assert_eq!(change(&mut agent, &["10.244.2.4@n2"]).await, 2);

    agent.world().table_refusals = Some(0);
    assert_eq!(
        change(&mut agent, &["10.244.1.2@n1"]).await,
        2,
        "the tables"
    );
    assert_eq!(
        change(&mut agent, &["10.244.1.2@n1", "10.244.2.9@n2"]).await,
        3,
        "needs none"
    );
    agent.world().table_refusals = None;
    agent.settle(10_000).await;

    agent.world().table_load_polls = 3;
    assert_eq!(change(&mut agent, &["10.244.1.3@n1"]).await, 3, "they wait");
    agent.settle(10_000).await;
    assert_eq!(programming(&agent).0, 4, "the tables are written");
    assert_eq!(change(&mut agent, &["10.244.1.4@n1"]).await, 5);

    // Another program has the virtual server now.
    agent.world().record.clear();
    let mut again = Loop::over(&agent.shared);
    again.start(web()).await;
    assert_eq!(change(&mut again, &["10.244.2.5@n2"]).await, 0, "it waits");
}

/// The number of repairs that are not for missing virtual servers.
fn repairs(agent: &Loop) -> u64 {
    let text = agent
        .reconciler
        .metrics
        .expose(&Figures::default())
        .unwrap();
    let name = "ipvs_topo_repairs_total{cause=\"changed\"} ";
    let value = text.lines().find_map(|line| line.strip_prefix(name));
    value.map_or(0, |value| value.parse().unwrap())
}

#[tokio::test(start_paused = true)]
async fn changes_that_waited_for_a_slow_load_of_the_tables_are_no_repair() {
    let mut agent = Loop::over(&Shared::default());
    agent.world().table_load_polls = 3;
    agent.start(web()).await;
    // It needs other tables than those that are being loaded.
    agent.apply([slice("web", TCP, &["10.244.1.9@n1"])]).await;
    assert!(!agent.journal().contains(&"tables".to_owned()));
    agent.settle(10_000).await;
    let loads = agent.journal().into_iter();
    assert_eq!(loads.filter(|line| line == "tables").count(), 2);
    assert_eq!(repairs(&agent), 0);

    agent.world().tables = dataplane::nftables::DesiredTables::default();
    agent.check().await;
    assert!(repairs(&agent) > 0, "another program changed them");
}

#[tokio::test(start_paused = true)]
async fn kp_hc_02_a_node_that_leaves_or_is_unknown_gets_no_external_traffic() {
    let mut agent = Loop::over(&Shared::default());
    agent.start(web()).await;
    let eligible = |agent: &Loop| agent.handle.pulse().node_eligible;
    assert_eq!(eligible(&agent), None, "the input has no Nodes");
    agent.apply([node("n2", "192.168.1.2")]).await;
    assert_eq!(eligible(&agent), Some(false), "the own Node is missing");
    let mine = node("n1", "192.168.1.1");
    agent.apply([mine.clone()]).await;
    assert_eq!(eligible(&agent), Some(true));
    let Object::Node(mut leaving) = mine else {
        unreachable!("a Node was made");
    };
    leaving.leaving = true;
    agent.journal();
    agent.apply([Object::Node(leaving)]).await;
    assert_eq!(eligible(&agent), Some(false));
    assert_eq!(agent.journal(), [""; 0], "it still serves");
}
