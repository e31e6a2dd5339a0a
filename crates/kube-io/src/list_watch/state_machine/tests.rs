//! Tests every way in which a server may end, refuse or forget, and that none of them causes a
//! storm of requests.

use proptest::prelude::*;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

/// A `ListWatch` with a clock that moves forward by each wait.
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

    /// Returns the next request, after the wait before it.
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

    /// Lists by streaming and then watches from `resource_version`.
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
fn a_stream_lists_and_watches_in_one_request() {
    let mut bench = Bench::listed("7");
    bench.apply(at("9", false));
    bench.now += 300 * SECOND;
    bench.apply(Input::Ended);
    assert!(
        bench.waits() <= SECOND,
        "a stream that lived long is opened again soon"
    );
    assert_eq!(bench.request(), ListWatchRequest::Watch("9".into()));
    assert_eq!(bench.requests, 2);
}

#[test]
fn a_server_that_cannot_stream_gets_a_request_for_pages_at_once() {
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
fn an_expired_version_causes_a_new_list() {
    let mut bench = Bench::listed("7");
    bench.now += 60 * SECOND;
    bench.fail(Fault::Gone);
    assert!(bench.waits() < 2 * SECOND);
    assert_eq!(bench.request(), ListWatchRequest::StreamList);
}

#[test]
fn a_paged_list_that_expires_restarts_and_at_last_is_one_page() {
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
fn a_page_that_breaks_is_requested_again_and_a_refused_one_is_not() {
    let mut bench = Bench::new(false);
    bench.request();
    bench.fail(Fault::Invalid);
    bench.request();
    bench.apply(page("5", Some("next")));
    let second = bench.request();
    bench.fail(Fault::Unreachable);
    assert_eq!(bench.request(), second);
    bench.fail(Fault::DecodeError);
    assert_eq!(bench.request(), FIRST_PAGE);
}

#[test]
fn streams_that_never_complete_the_list_are_replaced_by_pages() {
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
fn a_broken_line_in_a_watch_causes_a_new_list() {
    let mut bench = Bench::listed("7");
    bench.fail(Fault::DecodeError);
    assert_eq!(bench.request(), ListWatchRequest::StreamList);
}

#[test]
fn other_failures_of_a_watch_lose_nothing() {
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
fn an_unknown_kind_is_listed_again_now_and_then() {
    let mut bench = Bench::new(true);
    assert_eq!(bench.request(), ListWatchRequest::StreamList);
    assert_eq!(bench.fail(Fault::NotFound), ListPhase::Absent);
    assert_eq!(bench.waits(), ABSENT);
    assert_eq!(bench.request(), ListWatchRequest::StreamList);
    bench.apply(Input::Opened);
    assert_eq!(bench.apply(at("1", true)), ListPhase::Listed);
}

#[test]
fn a_known_kind_must_be_missing_twice() {
    let mut bench = Bench::listed("7");
    bench.list_watch.optional = true;
    assert_eq!(bench.fail(Fault::NotFound), ListPhase::Nothing);
    assert_eq!(bench.request(), ListWatchRequest::StreamList);
    assert_eq!(bench.fail(Fault::NotFound), ListPhase::Absent);
}

#[test]
fn a_required_kind_is_never_absent() {
    let mut bench = Bench::new(false);
    for _ in 0..5 {
        bench.request();
        assert_eq!(bench.fail(Fault::NotFound), ListPhase::Nothing);
    }
}

#[test]
fn retry_after_of_the_server_is_respected() {
    let mut bench = Bench::listed("7");
    bench.apply(Input::Failed(Fault::TooManyRequests, Some(20 * SECOND)));
    assert!(bench.waits() >= 20 * SECOND);
    assert_eq!(bench.request(), ListWatchRequest::Watch("7".into()));
}

#[test]
fn a_thousand_clean_ends_cause_no_storm() {
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

/// Generates the inputs that one request may cause.
fn answer() -> impl Strategy<Value = Vec<Input>> {
    let fault = prop_oneof![
        Just(Fault::Unauthorized),
        Just(Fault::NotFound),
        Just(Fault::Gone),
        Just(Fault::Invalid),
        Just(Fault::TooManyRequests),
        Just(Fault::Unavailable),
        Just(Fault::Unreachable),
        Just(Fault::DecodeError),
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

/// Whether the inputs fit the request: a page to a page, a stream to a stream.
fn fits(next_request: &ListWatchRequest, answer: &[Input]) -> bool {
    match answer.first() {
        Some(Input::Page { .. }) => matches!(next_request, ListWatchRequest::Page { .. }),
        Some(Input::Opened) => !matches!(next_request, ListWatchRequest::Page { .. }),
        _ => true,
    }
}

proptest! {
    #[test]
    fn requests_stay_rare_on_any_server(
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
        // Pages and changes to pages cost no wait. Everything else does, and the waits grow.
        let waits = bench.requests / 4;
        prop_assert!(bench.now > waits * 2 * SECOND, "{:?} for {} requests", bench.now, bench.requests);
    }

    #[test]
    fn a_watch_never_restarts_before_the_version_it_reached(
        answers in prop::collection::vec((answer(), 0.0..=1.0_f64), 0..60),
    ) {
        let mut bench = Bench::new(false);
        let mut reached = false;
        for (answer, chance) in &answers {
            let next_request = bench.request();
            if let ListWatchRequest::Watch(resource_version) = &next_request {
                prop_assert!(reached, "watched {resource_version} without a list");
            }
            let answer = if fits(&next_request, answer) { answer.as_slice() } else { &[Input::Failed(Fault::Unavailable, None)] };
            for event in answer {
                reached |= bench.list_watch.apply(bench.now, event.clone(), *chance) == ListPhase::Listed;
            }
        }
    }
}
