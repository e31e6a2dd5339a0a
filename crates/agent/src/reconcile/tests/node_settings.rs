//! Tests what decides about sysctls, and the timeouts of IPVS.

use dataplane::host::NodeNeeds;
use dataplane::ipvs::IpvsTimeouts;
use topology_core::scheduler::Scheduler;

use super::fake::Shared;
use super::script::{Loop, service, slice};
use super::{TCP, web};
use crate::agent_config::{Estimation, StrictArp};

const NEEDS: NodeNeeds = NodeNeeds {
    hashes: false,
    serves_v6: false,
    announces_own: false,
    estimation: None,
};

#[tokio::test(start_paused = true)]
async fn kp_to_01_timeouts_are_recorded_then_set_once_and_again_after_a_foreign_change() {
    let shared = Shared::default();
    let held = IpvsTimeouts {
        tcp: Some(900),
        tcp_fin: Some(120),
        udp: Some(300),
    };
    shared.0.borrow_mut().timeouts = held;
    let mut agent = Loop::with(&shared, |config| config.ipvs_timeouts.udp = Some(60));
    agent.start(web()).await;
    let about = |agent: &mut Loop| {
        let journal = agent.journal();
        let is_about = |line: &String| line.contains("timeout");
        journal.into_iter().filter(is_about).collect::<Vec<_>>()
    };
    let once = ["record ipvs.udp_timeout: 300 -> 60", "set timeouts"];
    assert_eq!(about(&mut agent), once);
    assert_eq!(agent.world().timeouts.tcp, Some(900));
    agent.reconciler.begin_check().await;
    assert!(about(&mut agent).is_empty());
    agent.world().timeouts = held;
    agent.reconciler.begin_check().await;
    assert_eq!(about(&mut agent), once);
}

#[tokio::test(start_paused = true)]
async fn schedulers_families_and_strict_arp_decide_about_sysctls() {
    let shared = Shared::default();
    let mut agent = Loop::over(&shared);
    agent.start(web()).await;
    assert_eq!(agent.world().needs, Some(NEEDS));
    agent.apply([service("six", "fd00::1", TCP)]).await;
    agent.reconciler.begin_check().await;
    let serves_v6 = NodeNeeds {
        serves_v6: true,
        ..NEEDS
    };
    assert_eq!(agent.world().needs, Some(serves_v6));
    // A Service's scheduler, as the kernel has it.
    let key = *agent.world().servers.keys().next().unwrap();
    let mh = Scheduler::Mh.name().into();
    agent.world().servers.get_mut(&key).unwrap().scheduler = mh;
    let mut again = Loop::with(&shared, |config| {
        config.strict_arp = StrictArp::NoRepliesAndOwnSender;
    });
    again.start(web()).await;
    let expected = NodeNeeds {
        hashes: true,
        announces_own: true,
        ..NEEDS
    };
    assert_eq!(again.world().needs, Some(expected));
    let shared = Shared::default();
    let mut hashing = Loop::with(&shared, |config| config.scheduler = Scheduler::Sh);
    hashing.start(web()).await;
    assert!(hashing.world().needs.unwrap().hashes);
}

#[tokio::test(start_paused = true)]
async fn pain_17_estimation_ends_before_there_are_many_servers_or_as_configured() {
    let shared = Shared::default();
    let mut agent = Loop::over(&shared);
    agent.start(web()).await;
    assert_eq!(agent.world().needs.unwrap().estimation, None);
    let before = agent.world().preparations;
    let endpoints: Vec<String> = (0..10_000)
        .map(|nth| format!("10.245.{}.{}@n2", nth / 250, nth % 250 + 1))
        .collect();
    let endpoints: Vec<&str> = endpoints.iter().map(String::as_str).collect();
    agent
        .apply([
            service("many", "10.96.0.99", TCP),
            slice("many", TCP, &endpoints),
        ])
        .await;
    assert_eq!(agent.world().needs.unwrap().estimation, Some(false));
    assert_eq!(agent.world().preparations, before + 1);
    for (estimation, expected) in [(Estimation::On, true), (Estimation::Off, false)] {
        let shared = Shared::default();
        let mut agent = Loop::with(&shared, |config| config.estimation = estimation);
        agent.start(web()).await;
        assert_eq!(agent.world().needs.unwrap().estimation, Some(expected));
    }
}

/// Each chunk of steps is much smaller than the table that the pass loads.
#[tokio::test(start_paused = true)]
async fn pain_17_estimation_ends_before_a_load_of_many_small_services_begins() {
    let endpoints: Vec<String> = (1..=10).map(|pod| format!("10.245.0.{pod}@n2")).collect();
    let endpoints: Vec<&str> = endpoints.iter().map(String::as_str).collect();
    let services = |count: usize| -> Vec<_> {
        let both = (0..count).flat_map(|nth| {
            let (name, ip) = (
                format!("s{nth}"),
                format!("10.96.{}.{}", nth / 250, nth % 250),
            );
            [service(&name, &ip, TCP), slice(&name, TCP, &endpoints)]
        });
        both.collect()
    };
    let steps_before = |agent: &Loop| {
        let journal = agent.journal();
        let at = journal.iter().position(|line| line == "estimation off")?;
        let before = journal.iter().take(at);
        Some(before.filter(|line| line.starts_with("ipvsadm")).count())
    };
    let mut agent = Loop::over(&Shared::default());
    agent.start(services(910)).await;
    assert_eq!(steps_before(&agent), Some(0));
    let mut few = Loop::over(&Shared::default());
    few.start(services(900)).await;
    few.apply(services(900)).await;
    assert_eq!(steps_before(&few), None, "9,900 servers are not many");
}
