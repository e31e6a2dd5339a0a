//! Tests the answers of the loop to queries.

use std::collections::BTreeMap;
use std::time::Duration;

use cluster::event::{Batch, Completeness, Event, FileReport};
use cluster::object::{Kind, Object, ObjectKey};
use cluster::warning::{Code, Subject, Warning};
use tokio::sync::oneshot;
use tokio::time::timeout;
use topology_core::model::{Drain, Frontend, ObjectName};
use topology_core::policy::LevelKey;

use super::fake::Shared;
use super::script::{Loop, node, service};
use super::{TCP, web};
use crate::node_warning::Topic;
use crate::reconcile::pass::SLICE;
use crate::state::Query;

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn queries_are_answered_page_by_page() {
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
async fn an_explanation_has_this_node_and_the_warnings_of_the_input() {
    let mut agent = Loop::over(&Shared::default());
    agent.start(web()).await;
    let warning = |object: &str| Warning {
        file: "web.yaml".into(),
        line: 3,
        subject: Subject::Object(ObjectKey {
            kind: Kind::Service,
            name: ObjectName::new("t", object),
        }),
        field: "spec.type".into(),
        message: "is odd".into(),
        remedy: "make it even".into(),
        code: Code::Field,
    };
    agent.reconciler.absorb(Batch::from(FileReport {
        file: "web.yaml".into(),
        warnings: vec![warning("web"), warning("other")],
        skipped: BTreeMap::new(),
    }));
    let shown = |agent: &Loop| {
        let view = agent
            .reconciler
            .explain_input_of("web")
            .explain()
            .unwrap()
            .remove(0);
        let codes = view.warnings.into_iter().map(|one| one.code);
        (view.node.unwrap().known, codes.collect::<Vec<_>>())
    };
    assert_eq!(
        shown(&agent),
        (false, vec!["Field".to_owned(), "NodeUnknown".to_owned()])
    );
    agent.apply([node("n1", "192.168.0.1")]).await;
    assert_eq!(shown(&agent), (true, vec!["Field".to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn the_report_follows_the_decisions() {
    let mut agent = Loop::over(&Shared::default());
    let drain = Drain {
        generation: 7,
        ..Drain::of("one", LevelKey::Node, vec!["n1".into()])
    };
    let mut objects = web();
    objects.push(Object::Drain(drain));
    agent.start(objects).await;
    let drained = async |agent: &mut Loop| {
        let (reply, answer) = oneshot::channel();
        agent.reconciler.answer(Query::DecisionSummary(reply)).await;
        let drains = answer.await.unwrap().drains;
        drains
            .iter()
            .map(|one| (one.generation, one.endpoints))
            .collect::<Vec<_>>()
    };
    assert_eq!(drained(&mut agent).await, [(7, 1)]);
    agent.delete(&service("web", "10.96.0.10", TCP)).await;
    assert_eq!(drained(&mut agent).await, [(7, 0)]);
}

#[tokio::test(start_paused = true)]
async fn a_query_wakes_no_reader_with_or_without_failures() {
    for fails in [false, true] {
        let mut agent = Loop::over(&Shared::default());
        agent.world().table_refusals = fails.then_some(0);
        agent.start(web()).await;
        let woken = timeout(SECOND, agent.handle.changed()).await;
        assert!(woken.is_ok(), "the start");
        assert_eq!(agent.handle.pulse().oldest_pending().is_some(), fails);
        let (reply, _answer) = oneshot::channel();
        agent.reconciler.answer(Query::DecisionSummary(reply)).await;
        agent.reconciler.publish();
        assert!(timeout(SECOND, agent.handle.changed()).await.is_err());
    }
}

/// The output of `diff`, or why there is none.
async fn planned(agent: &mut Loop) -> Result<Vec<String>, String> {
    let (reply, answer) = oneshot::channel();
    agent.reconciler.answer(Query::Plan(reply)).await;
    while agent.reconciler.plan_queries.is_running() {
        agent.reconciler.continue_plan().await;
    }
    let steps = answer.await.unwrap()?;
    Ok(steps.iter().map(ToString::to_string).collect())
}

/// Two slices of virtual servers, and a change between them.
#[tokio::test(start_paused = true)]
async fn d13_a_change_does_not_wait_for_a_plan_and_is_no_difference() {
    let shared = Shared::default();
    let mut agent = Loop::over(&shared);
    let count = u8::try_from(SLICE + 2).unwrap();
    let one = |number: u8| service(&format!("s{number}"), &format!("10.96.1.{number}"), TCP);
    agent.start((1..=count).map(one).collect()).await;

    let (reply, answer) = oneshot::channel();
    agent.reconciler.answer(Query::Plan(reply)).await;
    for _ in 0..2 {
        agent.reconciler.continue_plan().await;
    }
    agent
        .reconciler
        .absorb(Batch::from(Event::Apply(one(count + 1))));
    agent.reconciler.pass_dirty().await;
    assert!(agent.reconciler.plan_queries.is_running());
    while agent.reconciler.plan_queries.is_running() {
        agent.reconciler.continue_plan().await;
    }
    assert_eq!(answer.await.unwrap(), Ok(Vec::new()));

    let (reply, gone) = oneshot::channel();
    agent.reconciler.answer(Query::Plan(reply)).await;
    drop(gone);
    assert_eq!(planned(&mut agent).await, Ok(Vec::new()));
}

#[tokio::test(start_paused = true)]
async fn a_plan_deletes_nothing_if_input_is_missing() {
    let shared = Shared::default();
    Loop::over(&shared).start(web()).await;
    let mut again = Loop::over(&shared);
    while again.reconciler.initial_read.is_partly_read() {
        again.reconciler.read_on().await;
    }
    let refused = planned(&mut again).await.unwrap_err();
    assert!(refused.contains("not read completely"), "{refused}");
    again.start_with(Vec::new(), Completeness::Partial).await;
    assert_eq!(planned(&mut again).await, Ok(Vec::new()));
    again.say(Event::Complete(Completeness::Whole));
    let gone = ["ipvsadm -D -t 10.96.0.10:80".to_owned()];
    assert_eq!(planned(&mut again).await.unwrap(), gone);
}

#[tokio::test(start_paused = true)]
async fn a_service_that_names_a_policy_is_in_the_overview() {
    let mut agent = Loop::over(&Shared::default());
    let mut objects = vec![service("plain", "10.96.0.1", TCP)];
    let Object::Service(mut named) = service("named", "10.96.0.2", TCP) else {
        panic!()
    };
    named.named_policy = Some("near".into());
    objects.push(Object::Service(named));
    agent.start(objects).await;
    assert_eq!(agent.reconciler.overview_of(), ["t/named"]);
}

/// One tenant must not take the series of all others.
#[tokio::test(start_paused = true)]
async fn pain_40_share_series_are_limited_and_each_namespace_has_its_turn() {
    let mut agent = Loop::over(&Shared::default());
    let named = |namespace: &str, name: &str, ip: u8, ports: &[&str]| {
        let Object::Service(mut service) = service(name, &format!("10.96.0.{ip}"), ports) else {
            panic!()
        };
        service.name = ObjectName::new(namespace, name);
        service.named_policy = Some("near".into());
        Object::Service(service)
    };
    let Object::Service(mut published) = named("a", "s01", 13, TCP) else {
        panic!()
    };
    // Its virtual servers have the same series.
    let outside = (1..100).map(|number| Frontend::load_balancer([192, 0, 2, number].into()));
    published.frontends.extend(outside);
    let mut objects = vec![
        named("a", "wide", 1, &["80/TCP"; 11]),
        Object::Service(published),
    ];
    objects.extend((2..12).map(|ip| named("a", &format!("s{ip:02}"), ip, TCP)));
    objects.push(named("b", "web", 12, TCP));
    agent.start(objects).await;
    let shown = agent.reconciler.overview_of();
    assert_eq!(shown.len(), 9);
    assert_eq!(shown[..3], ["a/s01", "b/web", "a/s02"]);
}

#[tokio::test(start_paused = true)]
async fn d13_a_few_findings_of_one_service_are_logged_and_the_others_counted() {
    let mut agent = Loop::over(&Shared::default());
    // The first one is logged; the others repeat it.
    agent
        .start(vec![service("web", "10.96.0.10", &["80/TCP"; 5_001])])
        .await;
    let name = ObjectName::new("t", "web");
    let asked = agent.reconciler.desired.service(&name).unwrap();
    assert_eq!(asked.findings.len(), 21);
    let last = &asked.findings[20];
    assert!(
        last.starts_with("Service t/web: 4980 more warnings"),
        "{last}"
    );
    let known = asked.clone();
    let repeated = agent.reconciler.desired.new_findings(&name, &known);
    assert_eq!(repeated.len(), 0, "each is logged once");
}

/// Without the warning, `status` would show no foreign objects as if there were none.
#[tokio::test(start_paused = true)]
async fn a_list_of_foreign_objects_that_cannot_be_read_is_a_warning_while_it_fails() {
    let mut agent = Loop::over(&Shared::default());
    agent.start(web()).await;
    let lines = async |agent: &mut Loop| {
        let warnings = agent.reconciler.surroundings().await.warnings;
        let lines = warnings
            .iter()
            .filter(|warning| warning.topic == Topic::Kernel);
        lines.map(|line| line.text.clone()).collect::<Vec<_>>()
    };
    agent.world().unlisted = vec!["tables cannot be read".to_owned()];
    assert_eq!(lines(&mut agent).await, ["tables cannot be read"]);
    agent.world().unlisted.clear();
    assert_eq!(lines(&mut agent).await, [""; 0]);
}
