//! Every way in which a server may end, refuse or forget, and that no server makes a storm.

use proptest::prelude::*;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

/// A `ListWatch` with a clock that is moved on by what it waits for.
struct Bench {
    list_watch: ListWatch,
    now: Duration,
    requests: u32,
}

impl Bench {
    fn new(optional: bool) -> Self {
        Self {
            list_watch: ListWatch::new(optional),
            now: Duration::ZERO,
            requests: 0,
        }
    }

    /// The next request, after the wait before it.
    fn request(&mut self) -> ListWatchRequest {
        loop {
            match self.list_watch.next_request(self.now) {
                ListWatchRequest::Wait(until) => {
                    assert!(until > self.now);
                    self.now = until;
                }
                next_request => {
                    self.requests += 1;
                    return next_request;
                }
            }
        }
    }

    fn apply(&mut self, event: Input) -> ListPhase {
        self.list_watch.apply(self.now, event, 0.5)
    }

    fn fail(&mut self, fault: Fault) -> ListPhase {
        self.apply(Input::Failed(fault, None))
    }

    /// Gets a list by streaming, and follows from the version `resource_version`.
    fn listed(resource_version: &str) -> Self {
        let mut bench = Self::new(false);
        assert_eq!(bench.request(), ListWatchRequest::StreamList);
        bench.apply(Input::Opened);
        assert_eq!(bench.apply(at(resource_version, true)), ListPhase::Listed);
        bench
    }

    fn waits(&self) -> Duration {
        match self.list_watch.next_request(self.now) {
            ListWatchRequest::Wait(until) => until.saturating_sub(self.now),
            _ => Duration::ZERO,
        }
    }
}

fn at(resource_version: &str, listed: bool) -> Input {
    Input::Version {
        resource_version: resource_version.into(),
        listed,
    }
}

fn page(resource_version: &str, continue_token: Option<&str>) -> Input {
    Input::Page {
        resource_version: resource_version.into(),
        continue_token: continue_token.map(Into::into),
    }
}

const FIRST_PAGE: ListWatchRequest = ListWatchRequest::Page {
    continue_token: None,
    whole: false,
};

#[test]
fn a_stream_lists_and_then_follows_in_one_request() {
    let mut bench = Bench::listed("7");
    bench.apply(at("9", false));
    bench.now += 300 * SECOND;
    bench.apply(Input::Ended);
    assert!(
        bench.waits() <= SECOND,
        "a stream that lived is opened again soon"
    );
    assert_eq!(bench.request(), ListWatchRequest::Watch("9".into()));
    assert_eq!(bench.requests, 2);
}

#[test]
fn a_server_that_cannot_stream_is_asked_for_pages_at_once() {
    let mut bench = Bench::new(false);
    assert_eq!(bench.request(), ListWatchRequest::StreamList);
    bench.fail(Fault::Invalid);
    assert_eq!(bench.waits(), Duration::ZERO);
    assert_eq!(bench.request(), FIRST_PAGE);
    assert_eq!(bench.apply(page("5", Some("next"))), ListPhase::Nothing);
    let second = ListWatchRequest::Page {
        continue_token: Some("next".into()),
        whole: false,
    };
    assert_eq!(bench.request(), second);
    assert_eq!(bench.apply(page("5", None)), ListPhase::Listed);
    assert_eq!(bench.request(), ListWatchRequest::Watch("5".into()));
}

#[test]
fn a_version_that_is_not_kept_any_more_means_a_new_list() {
    let mut bench = Bench::listed("7");
    bench.now += 60 * SECOND;
    bench.fail(Fault::Gone);
    assert!(bench.waits() < 2 * SECOND);
    assert_eq!(bench.request(), ListWatchRequest::StreamList);
}

#[test]
fn a_list_of_pages_that_expires_begins_anew_and_in_the_end_comes_in_one() {
    let mut bench = Bench::new(false);
    bench.request();
    bench.fail(Fault::Invalid);
    for _ in 0..2 {
        assert_eq!(bench.request(), FIRST_PAGE);
        bench.apply(page("5", Some("next")));
        bench.request();
        bench.fail(Fault::Gone);
    }
    let whole = ListWatchRequest::Page {
        continue_token: None,
        whole: true,
    };
    assert_eq!(bench.request(), whole);
    assert_eq!(bench.apply(page("8", None)), ListPhase::Listed);
    assert_eq!(bench.request(), ListWatchRequest::Watch("8".into()));
}

#[test]
fn a_page_that_breaks_is_asked_for_again_and_one_that_is_refused_is_not() {
    let mut bench = Bench::new(false);
    bench.request();
    bench.fail(Fault::Invalid);
    bench.request();
    bench.apply(page("5", Some("next")));
    let second = bench.request();
    bench.fail(Fault::Unreachable);
    assert_eq!(bench.request(), second);
    bench.fail(Fault::Garbled);
    assert_eq!(bench.request(), FIRST_PAGE);
}

#[test]
fn streams_that_never_name_everything_give_way_to_pages() {
    let mut bench = Bench::new(false);
    for _ in 0..STREAM_TRIES {
        assert_eq!(bench.request(), ListWatchRequest::StreamList);
        bench.apply(Input::Opened);
        bench.now += 60 * SECOND;
        bench.apply(Input::Silent);
    }
    assert_eq!(bench.request(), FIRST_PAGE);
}

#[test]
fn a_broken_line_while_following_means_a_new_list() {
    let mut bench = Bench::listed("7");
    bench.fail(Fault::Garbled);
    assert_eq!(bench.request(), ListWatchRequest::StreamList);
}

#[test]
fn other_failures_while_following_lose_nothing() {
    for fault in [
        Fault::Unreachable,
        Fault::Unavailable,
        Fault::Unauthorized,
        Fault::Forbidden,
        Fault::Timeout,
    ] {
        let mut bench = Bench::listed("7");
        for _ in 0..5 {
            bench.fail(fault);
            assert_eq!(
                bench.request(),
                ListWatchRequest::Watch("7".into()),
                "{fault:?}"
            );
        }
        assert_eq!(bench.list_watch.failures(), 5);
    }
}

#[test]
fn a_kind_that_is_not_there_is_looked_for_now_and_then() {
    let mut bench = Bench::new(true);
    assert_eq!(bench.request(), ListWatchRequest::StreamList);
    assert_eq!(bench.fail(Fault::NotFound), ListPhase::Absent);
    assert_eq!(bench.waits(), ABSENT);
    assert_eq!(bench.request(), ListWatchRequest::StreamList);
    bench.apply(Input::Opened);
    assert_eq!(bench.apply(at("1", true)), ListPhase::Listed);
}

#[test]
fn a_kind_that_was_there_must_be_missing_twice() {
    let mut bench = Bench::listed("7");
    bench.list_watch.optional = true;
    assert_eq!(bench.fail(Fault::NotFound), ListPhase::Nothing);
    assert_eq!(bench.request(), ListWatchRequest::StreamList);
    assert_eq!(bench.fail(Fault::NotFound), ListPhase::Absent);
}

#[test]
fn what_must_be_there_is_never_taken_for_absent() {
    let mut bench = Bench::new(false);
    for _ in 0..5 {
        bench.request();
        assert_eq!(bench.fail(Fault::NotFound), ListPhase::Nothing);
    }
}

#[test]
fn a_server_that_asks_for_peace_gets_it() {
    let mut bench = Bench::listed("7");
    bench.apply(Input::Failed(Fault::TooManyRequests, Some(20 * SECOND)));
    assert!(bench.waits() >= 20 * SECOND);
    assert_eq!(bench.request(), ListWatchRequest::Watch("7".into()));
}

#[test]
fn a_thousand_clean_ends_make_no_storm() {
    let mut bench = Bench::listed("7");
    for _ in 0..1000 {
        bench.apply(Input::Ended);
        assert_eq!(bench.request(), ListWatchRequest::Watch("7".into()));
        bench.apply(Input::Opened);
    }
    assert!(
        bench.now > 1000 * 15 * SECOND,
        "{:?} for 1000 requests",
        bench.now
    );
}

/// Anything that a server may do in answer to one request.
fn answer() -> impl Strategy<Value = Vec<Input>> {
    let fault = prop_oneof![
        Just(Fault::Unauthorized),
        Just(Fault::NotFound),
        Just(Fault::Gone),
        Just(Fault::Invalid),
        Just(Fault::TooManyRequests),
        Just(Fault::Unavailable),
        Just(Fault::Unreachable),
        Just(Fault::Garbled),
    ];
    let end = prop_oneof![
        Just(Input::Ended),
        Just(Input::Silent),
        fault.clone().prop_map(|fault| Input::Failed(fault, None)),
    ];
    let stream =
        (any::<bool>(), end).prop_map(|(listed, end)| vec![Input::Opened, at("3", listed), end]);
    prop_oneof![
        stream,
        fault.prop_map(|fault| vec![Input::Failed(fault, None)]),
        any::<bool>().prop_map(|more| vec![page("2", more.then_some("t"))]),
    ]
}

/// Whether a server can answer so: a page to a page, a stream to a stream.
fn fits(next_request: &ListWatchRequest, answer: &[Input]) -> bool {
    match answer.first() {
        Some(Input::Page { .. }) => matches!(next_request, ListWatchRequest::Page { .. }),
        Some(Input::Opened) => !matches!(next_request, ListWatchRequest::Page { .. }),
        _ => true,
    }
}

proptest! {
    #[test]
    fn whatever_servers_do_requests_stay_rare(
        answers in prop::collection::vec((answer(), 0.0..=1.0_f64), 200..400),
        optional: bool,
    ) {
        let mut bench = Bench::new(optional);
        for (answer, chance) in &answers {
            let next_request = bench.request();
            if !fits(&next_request, answer) {
                bench.list_watch.apply(bench.now, Input::Failed(Fault::Unavailable, None), *chance);
                continue;
            }
            for event in answer {
                bench.list_watch.apply(bench.now, event.clone(), *chance);
            }
        }
        // Pages and changes of form cost no wait; all the rest does, and the waits grow.
        let waits = bench.requests / 4;
        prop_assert!(bench.now > waits * 2 * SECOND, "{:?} for {} requests", bench.now, bench.requests);
    }

    #[test]
    fn following_never_goes_back_before_the_version_that_was_reached(
        answers in prop::collection::vec((answer(), 0.0..=1.0_f64), 0..60),
    ) {
        let mut bench = Bench::new(false);
        let mut reached = false;
        for (answer, chance) in &answers {
            let next_request = bench.request();
            if let ListWatchRequest::Watch(resource_version) = &next_request {
                prop_assert!(reached, "followed {resource_version} without a list");
            }
            let answer = if fits(&next_request, answer) { answer.as_slice() } else { &[Input::Failed(Fault::Unavailable, None)] };
            for event in answer {
                reached |= bench.list_watch.apply(bench.now, event.clone(), *chance) == ListPhase::Listed;
            }
        }
    }
}
