//! What servers do on bad days: nothing that still exists goes, and requests stay rare.

use std::time::Duration;

use cluster::api::Phase;
use cluster::event::{Completeness, Event};
use kube_io::Fault;
use serde_json::json;

use crate::fake::{
    DRAINS, Deed, Fake, Followed, NODES, SERVICES, SLICES, added, bookmark, ended, service,
};

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);

/// Whether anything was said to be gone.
fn deletes(followed: &Followed) -> bool {
    let events = followed.batches.iter().flat_map(|batch| &batch.events);
    events
        .into_iter()
        .any(|event| matches!(event, Event::Delete(_)))
}

#[tokio::test(start_paused = true)]
async fn streams_that_end_at_once_for_an_hour_make_no_storm() {
    let fake = Fake::new();
    fake.add(SERVICES, service("cart"));
    let mut followed = Followed::new();
    let server = fake.clone();
    fake.follow_with(&mut followed, HOUR, move |second, _| {
        if second == 1 {
            server.world(|world| {
                world
                    .always
                    .insert(SERVICES.to_owned(), Deed::Lines(Vec::new()))
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
async fn lists_that_end_at_once_for_an_hour_make_no_storm_and_open_no_gate() {
    let fake = Fake::new();
    for collection in [SERVICES, SLICES, NODES] {
        fake.world(|world| {
            world
                .always
                .insert(collection.to_owned(), Deed::Lines(Vec::new()))
        });
    }
    let followed = fake.followed(HOUR).await;
    let requests = fake.requests(SERVICES).len();
    assert!((60..300).contains(&requests), "{requests} in an hour");
    assert_eq!(followed.index.completeness(), None);
    assert_eq!(followed.state("services").phase, Phase::Listing);
}

#[tokio::test(start_paused = true)]
async fn a_history_that_was_compacted_means_a_new_list_and_only_the_difference_is_told() {
    for gone in [
        Deed::Refuse(410, "Expired"),
        Deed::Lines(vec![ended(410, "Expired")]),
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
    // The first stream is refused, the first page comes, the second has expired.
    fake.next(SERVICES, [Deed::Refuse(422, "Invalid")]);
    fake.follow_with(&mut followed, MINUTE, move |second, _| {
        if second == 0 {
            server.world(|world| assert!(world.seen.len() < 8));
        }
    })
    .await;
    assert_eq!(followed.services().len(), 5);
    assert!(!deletes(&followed));

    let fake = Fake::new();
    fake.add(SERVICES, service("a"));
    fake.world(|world| world.streams = false);
    let page =
        json!({"metadata": {"resourceVersion": "9", "continue": "1"}, "items": []}).to_string();
    fake.next(
        SERVICES,
        [
            Deed::Refuse(422, "Invalid"),
            Deed::Lines(vec![page.clone()]),
            Deed::Refuse(410, "Expired"),
            Deed::Lines(vec![page]),
            Deed::Refuse(410, "Expired"),
        ],
    );
    let followed = fake.followed(MINUTE).await;
    assert_eq!(followed.services(), ["a"]);
    let requests = fake.requests(SERVICES);
    assert!(
        !requests[5].contains("limit="),
        "the third time everything in one: {requests:?}"
    );
}

/// Found by the fuzz target `answer`.
#[tokio::test(start_paused = true)]
async fn a_page_that_names_itself_as_the_next_makes_no_storm() {
    let fake = Fake::new();
    let page = json!({"metadata": {"resourceVersion": "5", "continue": "x"}, "items": []});
    fake.world(|world| {
        world
            .always
            .insert(SERVICES.to_owned(), Deed::Lines(vec![page.to_string()]))
    });
    let followed = fake.followed(HOUR).await;
    let requests = fake.requests(SERVICES).len();
    assert!((10..500).contains(&requests), "{requests}");
    assert!(!followed.is_whole());
    let error = followed.state("services").error.unwrap();
    assert_eq!(error.fault, Fault::Garbled);
    assert!(error.message.contains("names itself"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_minute_of_429_and_5xx_costs_nothing_but_time_and_retry_after_is_kept() {
    let fake = Fake::new();
    fake.add(SERVICES, service("cart"));
    let mut followed = Followed::new();
    let server = fake.clone();
    fake.follow_with(
        &mut followed,
        5 * MINUTE,
        move |second, followed| match second {
            20 => {
                let deeds = [
                    Deed::Refuse(503, ""),
                    Deed::Later(40),
                    Deed::Refuse(500, ""),
                ];
                server.next(SERVICES, deeds);
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
                assert_eq!(followed.sync_status().stale_since(), state.last_received);
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
    assert!(!deletes(&followed));
    assert_eq!(followed.state("services").phase, Phase::Following);
    assert_eq!(
        followed.index.warnings().count(),
        0,
        "what is over is not said any more"
    );
}

#[tokio::test(start_paused = true)]
async fn a_line_that_is_no_json_means_a_new_list() {
    let fake = Fake::new();
    fake.add(SERVICES, service("cart"));
    let mut followed = Followed::new();
    let server = fake.clone();
    fake.follow_with(&mut followed, MINUTE, move |second, _| {
        if second == 20 {
            let broken = ["{\"type\":\"ADDED\",\"object\":{]}\n".to_owned()].to_vec();
            server.next(SERVICES, [Deed::Lines(broken)]);
            server.end_streams(SERVICES);
        }
    })
    .await;
    assert_eq!(followed.services(), ["cart"]);
    assert!(!deletes(&followed));
    assert_eq!(followed.state("services").phase, Phase::Following);
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_breaks_in_the_middle_of_a_line_goes_on_behind_the_last_whole_one() {
    let fake = Fake::new();
    let lines = vec![
        added(&service("a")),
        bookmark(42, true),
        added(&service("b")),
    ];
    fake.next(SERVICES, [Deed::Break(lines)]);
    let followed = fake.followed(MINUTE).await;
    assert_eq!(followed.services(), ["a", "b"]);
    let requests = fake.requests(SERVICES);
    assert!(requests[1].contains("resourceVersion=11"), "{requests:?}");
    assert!(!deletes(&followed));
}

#[tokio::test(start_paused = true)]
async fn a_list_that_breaks_in_the_middle_opens_no_gate_and_removes_nothing() {
    let fake = Fake::new();
    fake.add(SERVICES, service("a"));
    fake.next(
        SERVICES,
        [Deed::Break(vec![added(&service("b"))]), Deed::Mute],
    );
    let mut followed = Followed::new();
    fake.follow_with(&mut followed, 6 * MINUTE, |second, followed| {
        if second == 60 {
            assert_eq!(followed.services(), ["b"]);
            assert_eq!(followed.index.completeness(), None);
        }
    })
    .await;
    // What the broken list named and the whole one does not has gone.
    assert_eq!(followed.services(), ["a"]);
    assert!(followed.is_whole());
}

#[tokio::test(start_paused = true)]
async fn silence_is_noticed() {
    let fake = Fake::new();
    fake.add(SERVICES, service("a"));
    let mut followed = Followed::new();
    let server = fake.clone();
    fake.follow_with(&mut followed, 10 * MINUTE, move |second, _| {
        if second == 20 {
            // The connection is dead, and nobody says so.
            server.next(SERVICES, [Deed::Mute]);
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
        "following goes on from the version that was reached"
    );
}

#[tokio::test(start_paused = true)]
async fn a_rule_that_is_missing_is_named_and_what_may_be_read_is_used() {
    let fake = Fake::new();
    fake.add(SERVICES, service("a"));
    fake.world(|world| {
        world
            .always
            .insert(DRAINS.to_owned(), Deed::Refuse(403, "Forbidden"))
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
async fn services_that_may_not_be_read_open_no_gate() {
    let fake = Fake::new();
    fake.world(|world| {
        world
            .always
            .insert(SERVICES.to_owned(), Deed::Refuse(401, "Unauthorized"))
    });
    let followed = fake.followed(10 * MINUTE).await;
    assert_eq!(followed.index.completeness(), None);
    assert!(fake.requests(SERVICES).len() < 40);
}

/// As an API server answers whose etcd was restored from an empty backup.
#[tokio::test(start_paused = true)]
async fn d13_a_server_that_has_lost_everything_for_half_a_minute_removes_nothing() {
    let fake = Fake::new();
    for name in ["cart", "web", "db"] {
        fake.add(SERVICES, service(name));
    }
    let mut followed = Followed::new();
    let server = fake.clone();
    let empty = |server: &Fake| {
        server.world(|world| world.objects.remove(SERVICES));
        server.next(SERVICES, [Deed::Refuse(410, "Expired")]);
        server.end_streams(SERVICES);
    };
    fake.follow_with(
        &mut followed,
        Duration::from_secs(400),
        move |second, followed| match second {
            5 => empty(&server),
            20 => {
                assert_eq!(followed.state("services").doubted, 3);
                let said: Vec<String> =
                    followed.index.warnings().map(ToString::to_string).collect();
                assert!(
                    said[0].contains("the last list of services lacks 3 objects"),
                    "{said:?}"
                );
            }
            35 => {
                for name in ["cart", "web", "db"] {
                    server.add(SERVICES, service(name));
                }
            }
            100 => {
                assert!(!deletes(followed), "nothing was removed");
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
