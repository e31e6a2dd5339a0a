//! The loop on a small kernel in memory: order, faults, crashes, ownership, drift.

mod converge;
mod fake;
mod leaving;
mod script;
mod standing;
mod time;

use std::collections::BTreeMap;

use cluster::event::{Batch, Completeness, Event, FileReport};
use cluster::warning::Warning;
use topology_core::mirror::ObservedReal;
use topology_core::model::Protocol;
use topology_core::virtual_server::VirtualServerKey;

use self::fake::{Fault, Shared};
use self::script::{Loop, node, service, slice};
use crate::routes::addresses::Interface;
use crate::state::Standing;

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
            "guard",
            "claim -t 10.96.0.10:80",
            "ipvsadm -A -t 10.96.0.10:80 -s wrr",
            "ipvsadm -a -t 10.96.0.10:80 -r 10.244.1.1:80 -m -w 1",
            "ipvsadm -a -t 10.96.0.10:80 -r 10.244.2.1:80 -m -w 1",
            "+ local 10.96.0.0/12 dev lo table local proto 173",
        ]
    );
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
async fn the_kernel_is_read_while_the_cluster_is_and_what_others_did_since_is_found_by_the_next_check()
 {
    let shared = Shared::default();
    Loop::over(&shared).start(web()).await;
    let mut again = Loop::over(&shared);
    while again.reconciler.table.is_partly_read() {
        again.reconciler.read_on().await;
    }
    again.world().reads = 0;
    again.world().servers.clear();
    tokio::time::advance(std::time::Duration::from_secs(61)).await;
    again.start(web()).await;
    assert_eq!(again.world().reads, 0, "it was read before");
    assert!(
        again.reconciler.next_check <= tokio::time::Instant::now(),
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

    // Once it is gone, ours takes its place by itself.
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
async fn adopting_takes_over_in_place_and_puts_it_on_record() {
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
async fn d8_a_refused_step_fails_its_key_alone_and_is_tried_again_after_a_reading() {
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
        matches!(&service.servers[0].standing, Standing::Failed { error, .. } if error.contains(refused))
    );
    agent.settle(1_000).await;
    assert_eq!(agent.save().len(), 4);
    assert_eq!(agent.handle.pulse().waiting, 0);
}

#[tokio::test(start_paused = true)]
async fn d10_lost_answers_are_settled_by_reading_whichever_way_it_went() {
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
        let stranger = ObservedReal {
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
async fn what_an_unread_file_may_ask_for_is_not_deleted_as_unknown() {
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
    agent.world().guard_fails = true;
    agent.start(web()).await;
    assert_eq!(agent.save().len(), 3);
    assert_eq!(
        agent.handle.pulse().node_warnings.len(),
        2,
        "no nft, and no address of the node"
    );
    agent.world().guard_fails = false;
    agent.settle(1_000).await;
    assert!(agent.journal().contains(&"guard".to_owned()));
    assert_eq!(agent.handle.pulse().node_warnings.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn t03_a_machines_own_address_is_refused_and_served_once_it_is_not_its_own() {
    let mut agent = Loop::over(&Shared::default());
    let own = Interface {
        link: "eth1".to_owned(),
        address: "10.96.0.10".parse().unwrap(),
        prefix: 32,
        global: true,
    };
    agent.world().addresses = vec![own];
    agent.start(web()).await;
    assert_eq!(agent.save(), [""; 0]);
    let service = agent.reconciler.service_state("web").await;
    assert!(
        matches!(&service.servers[0].standing, Standing::Refused(words) if words.contains("eth1"))
    );
    agent.world().addresses.clear();
    agent.check().await;
    assert_eq!(agent.save().len(), 3);
    // And back.
    agent.apply([node("n9", "10.96.0.10")]).await;
    assert_eq!(agent.save(), [""; 0], "now it is another node's");
}

#[tokio::test(start_paused = true)]
async fn t03_an_address_that_comes_or_goes_is_acted_on_without_waiting_for_the_check() {
    let mut agent = Loop::over(&Shared::default());
    agent.start(web()).await;
    agent.journal();
    let own = |address: &str| Interface {
        link: "eth0".to_owned(),
        address: address.parse().unwrap(),
        prefix: 32,
        global: true,
    };
    let node = "192.168.1.1";
    agent.world().addresses = vec![own(node), own("10.96.0.10")];
    agent.reconciler.addresses_moved().await;
    assert_eq!(agent.save(), [""; 0]);
    let route = format!("+ local 10.96.0.0/12 dev lo table local proto 173 src {node}");
    assert!(agent.journal().contains(&route));

    // The kernel takes the route away with the address that it sends from.
    agent.world().addresses.clear();
    agent.world().routes.clear();
    agent.reconciler.addresses_moved().await;
    assert_eq!(agent.save().len(), 3);
    assert_eq!(agent.world().routes.len(), 1);
    agent.journal();
    agent.world().reads = 0;
    agent.reconciler.addresses_moved().await;
    assert_eq!((agent.journal().len(), agent.world().reads), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn questions_are_answered_page_by_page() {
    let mut agent = Loop::over(&Shared::default());
    let names = ["a", "b", "c", "d", "e"];
    agent
        .start(
            names
                .iter()
                .zip(1..)
                .map(|(name, n)| service(name, &format!("10.96.0.{n}"), TCP))
                .collect(),
        )
        .await;
    let first = agent.reconciler.page_of(None, 2).await;
    assert_eq!((first.services.len(), first.more), (2, true));
    let last = agent.reconciler.page_of(Some("d"), 2).await;
    assert_eq!((last.services.len(), last.more), (1, false));
}

#[tokio::test(start_paused = true)]
async fn an_explanation_has_this_node_and_what_is_wrong_with_the_input() {
    let mut agent = Loop::over(&Shared::default());
    agent.start(web()).await;
    let warning = |object: &str| Warning {
        file: "web.yaml".into(),
        line: 3,
        kind: "Service".into(),
        object: Some(object.into()),
        field: "spec.type".into(),
        message: "is odd".into(),
        remedy: "make it even".into(),
        own_code: None,
    };
    agent.reconciler.absorb(Batch::from(FileReport {
        file: "web.yaml".into(),
        warnings: vec![warning("t/web"), warning("t/other")],
        skipped: BTreeMap::new(),
    }));
    let told = |agent: &Loop| {
        let view = agent.reconciler.case_of("web").explain().unwrap().remove(0);
        let codes = view.warnings.into_iter().map(|one| one.code);
        (view.node.unwrap().known, codes.collect::<Vec<_>>())
    };
    assert_eq!(
        told(&agent),
        (false, vec!["Field".to_owned(), "NodeUnknown".to_owned()])
    );
    agent.apply([node("n1", "192.168.0.1")]).await;
    assert_eq!(told(&agent), (true, vec!["Field".to_owned()]));
}

/// States that a plan moves between, with something of everything.
fn states() -> [Vec<cluster::object::Object>; 3] {
    let kept = ["10.244.1.1@n1", "10.244.2.1@n2"];
    [
        vec![
            service("kept", "10.96.0.10", BOTH),
            slice("kept", BOTH, &kept),
            service("gone", "203.0.113.9", BOTH),
            slice("gone", BOTH, &["10.244.1.9@n1"]),
        ],
        vec![
            service("kept", "10.96.0.10", BOTH),
            slice("kept", BOTH, &[kept[0], "10.244.3.1@n3"]),
            service("new", "203.0.113.7", BOTH),
            slice("new", BOTH, &["10.244.1.8@n1", "10.244.3.2@n3"]),
        ],
        vec![],
    ]
}

#[tokio::test(start_paused = true)]
async fn t06_a_kill_after_any_step_is_healed_and_the_untouched_real_server_is_never_touched() {
    let [first, second, nothing] = states();
    let moves = [
        (&nothing, &first),
        (&first, &second),
        (&second, &first),
        (&first, &nothing),
    ];
    for (from, to) in moves {
        let reference = Shared::default();
        Loop::over(&reference).start(to.clone()).await;
        for steps in 0.. {
            let shared = Shared::default();
            Loop::over(&shared).start(from.clone()).await;
            let mut dying = Loop::over(&shared);
            dying.world().steps_left = Some(steps);
            dying.journal();
            dying.start(to.clone()).await;
            let died = dying.world().steps_left == Some(0);
            let mut next = Loop::over(&shared);
            next.world().steps_left = None;
            next.start(to.clone()).await;
            next.settle(1_000).await;
            assert_eq!(
                next.save(),
                reference.0.borrow().save(),
                "killed after {steps} steps"
            );
            assert_eq!(next.world().record, reference.0.borrow().record);
            assert_eq!(next.world().routes, reference.0.borrow().routes);
            if !from.is_empty() && !to.is_empty() {
                let touched = next
                    .journal()
                    .into_iter()
                    .find(|line| line.contains("10.244.1.1:"));
                assert_eq!(touched, None);
            }
            if !died {
                break;
            }
        }
    }
}
