//! Tests changes over time: drains that ramp and expire.

use cluster::object::Object;
use topology_core::model::Drain;
use topology_core::policy::LevelKey;

use super::fake::Shared;
use super::script::{Loop, node, service, slice};
use super::{TCP, web};

/// A drain of the Node `n2` for ten minutes, over one minute.
fn drain(agent: &Loop) -> Object {
    let starts = agent.reconciler.clock.now();
    Object::Drain(Drain {
        starts,
        expires: starts + 600_000,
        ramp_seconds: 60,
        ..Drain::of("n2", LevelKey::Node, vec!["n2".into()])
    })
}

/// The weights of the endpoints on `n1` and `n2`.
fn weights(agent: &Loop) -> [u32; 2] {
    ["10.244.1.1", "10.244.2.1"].map(|address| {
        let lines = agent.save();
        let line = lines.iter().find(|line| line.contains(address)).unwrap();
        line.rsplit(' ').next().unwrap().parse().unwrap()
    })
}

#[tokio::test(start_paused = true)]
async fn a_drain_ramps_down_and_ends_by_itself() {
    let mut agent = Loop::over(&Shared::default());
    let mut all = vec![node("n1", "192.168.1.1"), node("n2", "192.168.1.2")];
    all.extend(web());
    agent.start(all).await;
    assert_eq!(weights(&agent), [1, 1]);
    let drain = drain(&agent);
    agent.apply([drain]).await;
    agent.settle(30_000).await;
    let [full, half] = weights(&agent);
    assert!(0 < half && half < full, "{half} of {full}");
    agent.settle(31_000).await;
    assert_eq!(weights(&agent), [1, 0]);
    agent.settle(530_000).await;
    assert_eq!(weights(&agent), [1, 0]);
    // Nothing was due before, so no time has passed since the ramp ended.
    agent.settle(545_000).await;
    assert_eq!(weights(&agent), [1, 1]);
}

#[tokio::test(start_paused = true)]
async fn a_decision_that_no_longer_depends_on_time_is_not_resolved_again() {
    let mut agent = Loop::over(&Shared::default());
    let mut all = vec![node("n1", "192.168.1.1"), node("n2", "192.168.1.2")];
    all.extend(web());
    agent.start(all).await;
    // The tables were read during the first pass.
    agent.settle(100).await;
    let drain = drain(&agent);
    agent.apply([drain.clone()]).await;
    assert!(agent.reconciler.agenda.next().is_some());
    agent.delete(&drain).await;
    assert_eq!(agent.reconciler.agenda.next(), None);
    assert_eq!(weights(&agent), [1, 1]);
    agent.apply([drain]).await;
    agent.delete(&service("web", "10.96.0.10", TCP)).await;
    agent.apply([slice("web", TCP, &[])]).await;
    assert_eq!(agent.reconciler.agenda.next(), None);
}

#[tokio::test(start_paused = true)]
async fn a_corrected_clock_is_used_at_the_next_check() {
    // With a clock that is ahead, the drain is over.
    for (ahead, expected) in [(3_600_000, [1, 1]), (0, [1, 0])] {
        let mut agent = Loop::over(&Shared::default());
        let mut drain = drain(&agent);
        if let Object::Drain(drain) = &mut drain {
            drain.starts -= 120_000;
        }
        agent.reconciler.clock = agent.reconciler.clock.ahead(ahead);
        let mut all = vec![node("n1", "192.168.1.1"), node("n2", "192.168.1.2"), drain];
        all.extend(web());
        agent.start(all).await;
        assert_eq!(weights(&agent), expected);
        agent.check().await;
        assert_eq!(weights(&agent), [1, 0]);
    }
}
