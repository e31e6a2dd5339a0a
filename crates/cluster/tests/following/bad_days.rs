//! Following a server that fails: no object that still exists is deleted, and requests stay rare.

use std::time::Duration;

use cluster::api::Phase;
use cluster::event::{Completeness, Event};
use kube_io::Fault;
use serde_json::json;

use crate::fake::{
    DRAINS, Fake, Followed, NODES, Reply, SERVICES, SLICES, added, bookmark, error_event, service,
};

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);

/// Whether a batch has a `Delete` event.
fn has_deletions(followed: &Followed) -> bool {
    let events = followed.batches.iter().flat_map(|batch| &batch.events);
    events
        .into_iter()
        .any(|event| matches!(event, Event::Delete(_)))
}

#[tokio::test(start_paused = true)]
async fn streams_that_close_at_once_for_an_hour_cause_few_requests() {
    let fake = Fake::new();
    fake.add(SERVICES, service("cart"));
    let mut followed = Followed::new();
    let server = fake.clone();
    fake.follow_with(&mut followed, HOUR, move |second, _| {
        if second == 1 {
            server.world(|world| {
                world
                    .always
                    .insert(SERVICES.to_owned(), Reply::Lines(Vec::new()))
            });
            server.end_streams(SERVICES);
        }
    })
    .await;
    let requests = fake.requests(SERVICES).len();
    assert!((60..300).contains(&requests), "{requests} in an hour");
    assert_eq!(followed.services(), ["cart"]);
}

#[tokio::test(start_paused = true)]
async fn lists_that_break_at_once_for_an_hour_cause_few_requests_and_are_not_complete() {
    let fake = Fake::new();
    for collection in [SERVICES, SLICES, NODES] {
        fake.world(|world| {
            world
                .always
                .insert(collection.to_owned(), Reply::Lines(Vec::new()))
        });
    }
    let followed = fake.followed(HOUR).await;
    let requests = fake.requests(SERVICES).len();
    assert!((60..300).contains(&requests), "{requests} in an hour");
    assert_eq!(followed.index.completeness(), None);
    assert_eq!(followed.state("services").phase, Phase::Listing);
}

#[tokio::test(start_paused = true)]
async fn after_compaction_the_watch_relists_and_reports_only_the_difference() {
    for gone in [
        Reply::Refuse(410, "Expired"),
        Reply::Lines(vec![error_event(410, "Expired")]),
    ] {
        let fake = Fake::new();
        for name in ["a", "b", "c"] {
            fake.add(SERVICES, service(name));
        }
        let mut followed = Followed::new();
        let server = fake.clone();
        fake.follow_with(&mut followed, MINUTE, move |second, followed| {
            if second == 20 {
                followed.batches.clear();
                server.next(SERVICES, [gone.clone()]);
                server.end_streams(SERVICES);
                server.remove(SERVICES, "b");
                server.add(SERVICES, service("d"));
            }
        })
        .await;
        assert_eq!(followed.services(), ["a", "c", "d"]);
        let events: usize = followed
            .batches
            .iter()
            .map(|batch| batch.events.len())
            .sum();
        assert_eq!(events, 2, "{:?}", followed.batches);
    }
}

#[tokio::test(start_paused = true)]
async fn pages_that_expire_in_the_middle_are_read_again() {
    let fake = Fake::new();
    for index in 0..5 {
        fake.add(SERVICES, service(&format!("s{index}")));
    }
    let mut followed = Followed::new();
    let server = fake.clone();
    fake.world(|world| world.streams = false);
    // The stream is refused, so the list is read in pages.
    fake.next(SERVICES, [Reply::Refuse(422, "Invalid")]);
    fake.follow_with(&mut followed, MINUTE, move |second, _| {
        if second == 0 {
            server.world(|world| assert!(world.seen.len() < 8));
        }
    })
    .await;
    assert_eq!(followed.services().len(), 5);
    assert!(!has_deletions(&followed));

    let fake = Fake::new();
    fake.add(SERVICES, service("a"));
    fake.world(|world| world.streams = false);
    let page =
        json!({"metadata": {"resourceVersion": "9", "continue": "1"}, "items": []}).to_string();
    fake.next(
        SERVICES,
        [
            Reply::Refuse(422, "Invalid"),
            Reply::Lines(vec![page.clone()]),
            Reply::Refuse(410, "Expired"),
            Reply::Lines(vec![page]),
            Reply::Refuse(410, "Expired"),
        ],
    );
    let followed = fake.followed(MINUTE).await;
    assert_eq!(followed.services(), ["a"]);
    let requests = fake.requests(SERVICES);
    assert!(
        !requests[5].contains("limit="),
        "the third list is not in pages: {requests:?}"
    );
}

/// Found by the fuzz target `answer`.
#[tokio::test(start_paused = true)]
async fn a_continue_token_that_repeats_causes_few_requests() {
    let fake = Fake::new();
    let page = json!({"metadata": {"resourceVersion": "5", "continue": "x"}, "items": []});
    fake.world(|world| {
        world
            .always
            .insert(SERVICES.to_owned(), Reply::Lines(vec![page.to_string()]))
    });
    let followed = fake.followed(HOUR).await;
    let requests = fake.requests(SERVICES).len();
    assert!((10..500).contains(&requests), "{requests}");
    assert!(!followed.is_whole());
    let error = followed.state("services").error.unwrap();
    assert_eq!(error.fault, Fault::DecodeError);
    assert!(
        error.message.contains("same continue token again"),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn after_429_and_5xx_the_watch_continues_and_retry_after_is_respected() {
    let fake = Fake::new();
    fake.add(SERVICES, service("cart"));
    let mut followed = Followed::new();
    let server = fake.clone();
    fake.follow_with(
        &mut followed,
        5 * MINUTE,
        move |second, followed| match second {
            20 => {
                let replies = [
                    Reply::Refuse(503, ""),
                    Reply::RetryAfter(40),
                    Reply::Refuse(500, ""),
                ];
                server.next(SERVICES, replies);
                server.end_streams(SERVICES);
            }
            30 => {
                let state = followed.state("services");
                assert_eq!(state.phase, Phase::Stale);
                assert!(
                    state
                        .error
                        .unwrap()
                        .to_string()
                        .contains("TooManyRequests (429)")
                );
                assert!(state.last_received.is_some());
                assert_eq!(server.requests(SERVICES).len(), 3);
            }
            60 => assert_eq!(
                server.requests(SERVICES).len(),
                3,
                "not before 40 seconds have passed"
            ),
            _ => {}
        },
    )
    .await;
    assert_eq!(followed.services(), ["cart"]);
    assert!(!has_deletions(&followed));
    assert_eq!(followed.state("services").phase, Phase::Following);
    assert_eq!(
        followed.index.warnings().count(),
        0,
        "the warning is removed when the fault is over"
    );
}

#[tokio::test(start_paused = true)]
async fn a_line_that_is_not_json_causes_a_relist() {
    let fake = Fake::new();
    fake.add(SERVICES, service("cart"));
    let mut followed = Followed::new();
    let server = fake.clone();
    fake.follow_with(&mut followed, MINUTE, move |second, _| {
        if second == 20 {
            let broken = ["{\"type\":\"ADDED\",\"object\":{]}\n".to_owned()].to_vec();
            server.next(SERVICES, [Reply::Lines(broken)]);
            server.end_streams(SERVICES);
        }
    })
    .await;
    assert_eq!(followed.services(), ["cart"]);
    assert!(!has_deletions(&followed));
    assert_eq!(followed.state("services").phase, Phase::Following);
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_breaks_in_a_line_continues_after_the_last_complete_line() {
    let fake = Fake::new();
    let lines = vec![
        added(&service("a")),
        bookmark(42, true),
        added(&service("b")),
    ];
    fake.next(SERVICES, [Reply::Break(lines)]);
    let followed = fake.followed(MINUTE).await;
    assert_eq!(followed.services(), ["a", "b"]);
    let requests = fake.requests(SERVICES);
    assert!(requests[1].contains("resourceVersion=11"), "{requests:?}");
    assert!(!has_deletions(&followed));
}

#[tokio::test(start_paused = true)]
async fn a_list_that_breaks_is_not_complete_and_deletes_nothing() {
    let fake = Fake::new();
    fake.add(SERVICES, service("a"));
    fake.next(
        SERVICES,
        [Reply::Break(vec![added(&service("b"))]), Reply::Silent],
    );
    let mut followed = Followed::new();
    fake.follow_with(&mut followed, 6 * MINUTE, |second, followed| {
        if second == 60 {
            assert_eq!(followed.services(), ["b"]);
            assert_eq!(followed.index.completeness(), None);
        }
    })
    .await;
    // `b` was in the broken list only.
    assert_eq!(followed.services(), ["a"]);
    assert!(followed.is_whole());
}

#[tokio::test(start_paused = true)]
async fn a_silent_watch_is_opened_again() {
    let fake = Fake::new();
    fake.add(SERVICES, service("a"));
    let mut followed = Followed::new();
    let server = fake.clone();
    fake.follow_with(&mut followed, 10 * MINUTE, move |second, _| {
        if second == 20 {
            // A dead connection sends no error.
            server.next(SERVICES, [Reply::Silent]);
            server.end_streams(SERVICES);
            server.world(|world| world.objects.clear());
        }
    })
    .await;
    let requests = fake.requests(SERVICES);
    assert!((5..10).contains(&requests.len()), "{requests:?}");
    assert_eq!(
        followed.services(),
        ["a"],
        "the watch continues from the last version"
    );
}

#[tokio::test(start_paused = true)]
async fn a_missing_rbac_rule_is_reported_and_the_other_kinds_are_used() {
    let fake = Fake::new();
    fake.add(SERVICES, service("a"));
    fake.world(|world| {
        world
            .always
            .insert(DRAINS.to_owned(), Reply::Refuse(403, "Forbidden"))
    });
    let mut followed = Followed::new();
    let server = fake.clone();
    fake.follow_with(&mut followed, 5 * MINUTE, move |second, followed| {
        if second == 30 {
            assert_eq!(followed.index.completeness(), Some(Completeness::Partial));
            let mut warnings = followed.index.warnings().map(ToString::to_string);
            let warning = warnings.next().unwrap();
            let rule = r#"apiGroups: ["topology.ipvs-topo.io"], resources: ["topologydrains"], verbs: ["list", "watch"]"#;
            assert!(warning.contains(rule), "{warning}");
            server.world(|world| world.always.clear());
        }
    })
    .await;
    assert!(followed.is_whole());
}

#[tokio::test(start_paused = true)]
async fn without_access_to_services_the_index_is_never_complete() {
    let fake = Fake::new();
    fake.world(|world| {
        world
            .always
            .insert(SERVICES.to_owned(), Reply::Refuse(401, "Unauthorized"))
    });
    let followed = fake.followed(10 * MINUTE).await;
    assert_eq!(followed.index.completeness(), None);
    assert!(fake.requests(SERVICES).len() < 40);
}

/// An API server answers like this when its etcd was restored from an empty backup.
#[tokio::test(start_paused = true)]
async fn d13_a_server_that_loses_all_objects_for_half_a_minute_deletes_nothing() {
    let fake = Fake::new();
    for name in ["cart", "web", "db"] {
        fake.add(SERVICES, service(name));
    }
    let mut followed = Followed::new();
    let server = fake.clone();
    let empty = |server: &Fake| {
        server.world(|world| world.objects.remove(SERVICES));
        server.next(SERVICES, [Reply::Refuse(410, "Expired")]);
        server.end_streams(SERVICES);
    };
    fake.follow_with(
        &mut followed,
        Duration::from_secs(400),
        move |second, followed| match second {
            5 => empty(&server),
            20 => {
                assert_eq!(followed.state("services").doubted, 3);
                let warnings: Vec<String> =
                    followed.index.warnings().map(ToString::to_string).collect();
                assert!(
                    warnings[0].contains("the last list of services lacks 3 objects"),
                    "{warnings:?}"
                );
            }
            35 => {
                for name in ["cart", "web", "db"] {
                    server.add(SERVICES, service(name));
                }
            }
            100 => {
                assert!(!has_deletions(followed), "nothing was removed");
                assert_eq!(followed.index.warnings().count(), 0);
                assert_eq!(followed.state("services").doubted, 0);
                empty(&server);
            }
            155 => assert_eq!(followed.services().len(), 3),
            190 => assert_eq!(
                followed.services(),
                [""; 0],
                "it is empty a minute later, too"
            ),
            _ => {}
        },
    )
    .await;
}
