//! Tests the loop on a small kernel in memory: order, faults, ownership, drift.

#[macro_use]
#[path = "../../../dataplane/tests/kernel/cases.rs"]
mod cases;

mod addresses;
mod converge;
mod disconnected;
mod disconnected_model;
mod fake;
mod firewall_marks;
mod foreign_marks;
mod health;
mod health_ports;
mod infrastructure;
mod killed;
mod kube_proxy;
mod leaving;
mod loopback_ports;
mod node_settings;
mod pulse;
mod queries;
mod real_cases;
mod retries;
mod schedulers;
mod script;
mod starting;
mod time;
mod turns;

use cluster::event::{Completeness, Event};
use topology_core::mirror::ObservedRealServer;
use topology_core::model::Protocol;
use topology_core::virtual_server::VirtualServerKey;

use self::fake::{Fault, Shared};
use self::script::{Loop, service, slice};
use crate::state::ProgramStatus;

const TCP: &[&str] = &["80/TCP"];
const BOTH: &[&str] = &["80/TCP", "53/UDP"];

fn key(address: &str) -> VirtualServerKey {
    VirtualServerKey::Address {
        protocol: Protocol::Tcp,
        address: address.parse().unwrap(),
        port: 80,
    }
}

fn web() -> Vec<cluster::object::Object> {
    vec![
        service("web", "10.96.0.10", TCP),
        slice("web", TCP, &["10.244.1.1@n1", "10.244.2.1@n2"]),
    ]
}

fn web_and_other() -> Vec<cluster::object::Object> {
    let mut all = web();
    all.extend([
        service("other", "10.96.0.11", TCP),
        slice("other", TCP, &["10.244.2.9@n2"]),
    ]);
    all
}

#[tokio::test(start_paused = true)]
async fn kp_sy_13_tables_and_claims_come_before_virtual_servers_and_routes_after() {
    let mut agent = Loop::over(&Shared::default());
    agent.start(web()).await;
    let mut journal = agent.journal();
    // The order of real servers differs from node to node on purpose.
    journal[3..5].sort();
    assert_eq!(
        journal,
        [
            "tables",
            "claim -t 10.96.0.10:80",
            "ipvsadm -A -t 10.96.0.10:80 -s wrr",
            "ipvsadm -a -t 10.96.0.10:80 -r 10.244.1.1:80 -m -w 1",
            "ipvsadm -a -t 10.96.0.10:80 -r 10.244.2.1:80 -m -w 1",
            "+ local 10.96.0.0/12 dev lo table local proto 173",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn pods_of_this_node_are_added_to_sets_before_virtual_servers_and_removed_after() {
    let mut agent = Loop::over(&Shared::default());
    agent.start(web()).await;
    agent.journal();
    agent.apply([slice("web", TCP, &["10.244.1.9@n1"])]).await;
    let journal = agent.journal();
    let place = |line: &str| journal.iter().position(|entry| entry.starts_with(line));
    let came = place("tables + hairpin: 10.244.1.9 ").expect("it came");
    let left = place("tables - hairpin: 10.244.1.1 ").expect("it left");
    let taken = place("ipvsadm -a -t 10.96.0.10:80 -r 10.244.1.9:80").expect("a real server");
    assert!(came < taken && taken < left, "{journal:?}");
    assert!(!journal.contains(&"tables".to_owned()), "{journal:?}");
}

#[tokio::test(start_paused = true)]
async fn t06_a_start_on_a_correct_kernel_writes_nothing() {
    let shared = Shared::default();
    Loop::over(&shared).start(web()).await;
    let mut again = Loop::over(&shared);
    again.journal();
    again.start(web()).await;
    assert_eq!(again.journal(), [""; 0]);
    assert!(again.handle.pulse().ready);
}

#[tokio::test(start_paused = true)]
async fn the_kernel_is_read_during_the_first_list_and_later_drift_is_found_by_the_next_check() {
    let shared = Shared::default();
    Loop::over(&shared).start(web()).await;
    let mut again = Loop::over(&shared);
    again.read_kernel().await;
    again.world().reads = 0;
    again.world().servers.clear();
    tokio::time::advance(std::time::Duration::from_secs(61)).await;
    again.start(web()).await;
    assert_eq!(again.world().reads, 0, "it was read before");
    assert!(
        again.reconciler.check.next() <= tokio::time::Instant::now(),
        "a period after the reading is over"
    );
    again.check().await;
    assert_eq!(again.save().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn d1_a_change_touches_its_own_key_and_reads_nothing() {
    let mut agent = Loop::over(&Shared::default());
    agent.start(web_and_other()).await;
    agent.journal();
    agent.world().reads = 0;
    agent
        .apply([slice(
            "web",
            TCP,
            &["10.244.1.1@n1", "10.244.2.1@n2", "10.244.2.2@n2"],
        )])
        .await;
    assert_eq!(
        agent.journal(),
        ["ipvsadm -a -t 10.96.0.10:80 -r 10.244.2.2:80 -m -w 1"]
    );
    agent
        .apply([slice(
            "web",
            TCP,
            &["10.244.1.1@n1", "10.244.2.1@n2", "10.244.2.2@n2"],
        )])
        .await;
    assert_eq!(agent.journal(), [""; 0], "equal content is no change");
    assert_eq!(agent.world().reads, 0);
}

#[tokio::test(start_paused = true)]
async fn pain_12_foreign_virtual_servers_are_never_touched() {
    let shared = Shared::default();
    let mut foreign = Loop::over(&shared);
    foreign
        .start(vec![
            service("theirs", "10.96.0.10", TCP),
            service("far", "192.0.2.1", TCP),
        ])
        .await;
    shared.0.borrow_mut().record.clear();
    let before = foreign.save();
    foreign.journal();

    let mut agent = Loop::over(&shared);
    agent.start(web()).await;
    agent.check().await;
    agent.delete(&service("web", "10.96.0.10", TCP)).await;
    agent.apply(web()).await;
    assert_eq!(agent.save(), before);
    assert!(agent.journal().iter().all(|line| !line.contains("ipvsadm")));
    assert_eq!(agent.handle.pulse().foreign, 2);

    // When the foreign virtual server is gone, ours is created.
    shared.0.borrow_mut().servers.remove(&key("10.96.0.10"));
    agent.settle(120_000).await;
    assert!(
        agent
            .save()
            .contains(&"-a -t 10.96.0.10:80 -r 10.244.1.1:80 -m -w 1".to_owned())
    );
    assert_eq!(agent.handle.pulse().foreign, 1);
}

#[tokio::test(start_paused = true)]
async fn adopting_takes_over_in_place_and_records_it() {
    let shared = Shared::default();
    Loop::over(&shared)
        .start(vec![service("web", "10.96.0.10", TCP)])
        .await;
    shared.0.borrow_mut().record.clear();
    let mut agent = Loop::with(&shared, |config| config.adopt = true);
    agent.journal();
    agent.start(web()).await;
    let journal = agent.journal();
    assert!(
        journal.contains(&"claim -t 10.96.0.10:80".to_owned()),
        "{journal:?}"
    );
    assert!(
        !journal.iter().any(|line| line.contains("-A")),
        "{journal:?}"
    );
    assert_eq!(agent.save().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn d8_a_refused_step_fails_only_its_key_and_is_retried_after_a_read() {
    let mut agent = Loop::over(&Shared::default());
    let refused = "ipvsadm -A -t 10.96.0.10:80 -s wrr";
    agent.world().faults = vec![
        (refused.to_owned(), Fault::Refused),
        (refused.to_owned(), Fault::Refused),
    ];
    let mut all = web();
    all.push(service("other", "10.96.0.11", TCP));
    agent.start(all).await;
    assert_eq!(agent.save(), ["-A -t 10.96.0.11:80 -s wrr"]);
    assert_eq!(agent.handle.pulse().waiting, 1);
    assert!(
        !agent.world().record.contains(&key("10.96.0.10")),
        "what was not created is not claimed"
    );
    let service = agent.reconciler.service_state("web").await;
    assert!(
        matches!(&service.servers[0].status, ProgramStatus::Failed { error, .. } if error.contains(refused))
    );
    agent.settle(1_000).await;
    assert_eq!(agent.save().len(), 4);
    assert_eq!(agent.handle.pulse().waiting, 0);
}

#[tokio::test(start_paused = true)]
async fn d10_lost_answers_are_resolved_by_reading_in_both_cases() {
    for fault in [Fault::AnswerLost, Fault::Lost] {
        for step in [
            "ipvsadm -A -t 10.96.0.10:80 -s wrr",
            "ipvsadm -a -t 10.96.0.10:80 -r 10.244.1.1:80 -m -w 1",
        ] {
            let mut agent = Loop::over(&Shared::default());
            agent.world().faults = vec![(step.to_owned(), fault)];
            agent.start(web()).await;
            agent.settle(10_000).await;
            assert_eq!(agent.save().len(), 3, "{fault:?} {step}");
            agent.delete(&service("web", "10.96.0.10", TCP)).await;
            assert_eq!(agent.save(), [""; 0], "it is ours: {fault:?} {step}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn pain_44_drift_of_every_kind_is_repaired_and_nothing_else_is_written() {
    let mut agent = Loop::over(&Shared::default());
    agent.start(web_and_other()).await;
    let before = agent.save();
    agent.journal();
    {
        let mut world = agent.world();
        let web = world.servers.get_mut(&key("10.96.0.10")).unwrap();
        web.real_servers[0].weight = 77;
        web.real_servers.remove(1);
        let stranger = ObservedRealServer {
            address: "10.244.9.9".parse().unwrap(),
            port: 80,
            weight: 1,
            plain: true,
        };
        web.real_servers.push(stranger);
        web.scheduler = "rr".into();
        world.servers.remove(&key("10.96.0.11"));
    }
    agent.check().await;
    agent.settle(10_000).await;
    assert_eq!(agent.save(), before);
    agent.journal();
    agent.check().await;
    assert_eq!(agent.journal(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn pain_44_tables_that_are_slow_to_read_delay_nothing_and_are_repaired_later() {
    let mut agent = Loop::over(&Shared::default());
    agent.start(web()).await;
    let tables = {
        let mut world = agent.world();
        world.table_polls = 3;
        std::mem::take(&mut world.tables)
    };
    agent.check().await;
    agent
        .apply([slice("web", TCP, &["10.244.1.1@n1", "10.244.2.9@n2"])])
        .await;
    assert!(agent.save().concat().contains("10.244.2.9"));
    assert_ne!(agent.world().tables, tables);
    agent.settle(300).await;
    assert_eq!(agent.world().tables, tables);
}

#[tokio::test(start_paused = true)]
async fn services_that_an_unread_file_may_have_are_not_deleted() {
    let shared = Shared::default();
    Loop::over(&shared).start(web()).await;
    let mut agent = Loop::over(&shared);
    agent
        .start_with(
            vec![service("other", "10.96.0.11", TCP)],
            Completeness::Partial,
        )
        .await;
    assert_eq!(agent.save().len(), 4);
    agent.say(Event::Complete(Completeness::Whole));
    agent.reconciler.full_pass().await;
    assert_eq!(agent.save(), ["-A -t 10.96.0.11:80 -s wrr"]);
}

#[tokio::test(start_paused = true)]
async fn pain_16_a_kernel_that_cannot_be_read_is_tried_again_and_nothing_is_written() {
    let mut agent = Loop::over(&Shared::default());
    agent.world().unreadable = true;
    agent.start(web()).await;
    agent.settle(5_000).await;
    assert_eq!(agent.journal(), [""; 0]);
    assert!(!agent.handle.pulse().ready);
    agent.world().unreadable = false;
    agent.settle(120_000).await;
    assert!(agent.handle.pulse().ready);
    assert_eq!(agent.save().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn t13_without_tables_the_virtual_servers_are_programmed_all_the_same() {
    let mut agent = Loop::over(&Shared::default());
    agent.world().table_refusals = Some(0);
    agent.start(web()).await;
    assert_eq!(agent.save().len(), 3);
    assert_eq!(
        agent.handle.pulse().node_warnings.len(),
        2,
        "no nft, and no address of the node"
    );
    agent.world().table_refusals = None;
    agent.settle(1_000).await;
    assert!(agent.journal().contains(&"tables".to_owned()));
    assert_eq!(agent.handle.pulse().node_warnings.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn d13_tables_that_can_neither_be_read_nor_set_in_time_delay_no_virtual_server() {
    let mut agent = Loop::over(&Shared::default());
    agent.world().tables_hang = true;
    agent.start(web()).await;
    assert_eq!(agent.save().len(), 3);
    assert!(agent.handle.pulse().ready);
    agent.settle(10_000).await;
    agent.world().tables_hang = false;
    agent.settle(1_000).await;
    assert!(agent.journal().contains(&"tables".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn t13_refused_tables_are_written_once_in_a_pass() {
    let mut agent = Loop::over(&Shared::default());
    agent.world().table_refusals = Some(0);
    agent.start(web()).await;
    assert_eq!(agent.world().table_refusals, Some(1));
}

#[tokio::test(start_paused = true)]
async fn a_record_that_can_be_written_again_has_no_warning() {
    let mut agent = Loop::over(&Shared::default());
    agent.world().record_fails = true;
    agent.start(web()).await;
    assert_eq!(agent.save(), [""; 0]);
    let complains = |agent: &Loop| {
        let warnings = agent.handle.pulse().node_warnings;
        warnings
            .iter()
            .any(|one| one.text.contains("ownership record"))
    };
    assert!(complains(&agent));
    agent.world().record_fails = false;
    agent.settle(1_000).await;
    assert_eq!(agent.save().len(), 3);
    assert!(!complains(&agent));
}
