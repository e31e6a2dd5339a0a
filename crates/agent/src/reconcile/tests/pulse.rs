//! Tests the state of the loop for health checks and metrics.

use cluster::event::Event;
use cluster::object::Object;

use super::fake::Shared;
use super::script::{Loop, node, service, slice};
use super::{TCP, web};

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
