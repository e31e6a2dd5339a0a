//! Every way in which a server may end, refuse or forget, and that no server makes a storm.

use proptest::prelude::*;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

/// A machine with a clock that is moved on by what it waits for.
struct Bench {
    machine: Machine,
    now: Duration,
    requests: u32,
}

impl Bench {
    fn new(optional: bool) -> Self {
        Self {
            machine: Machine::new(optional),
            now: Duration::ZERO,
            requests: 0,
        }
    }

    /// The next request, after the wait before it.
    fn request(&mut self) -> Ask {
        loop {
            match self.machine.ask(self.now) {
                Ask::Wait(until) => {
                    assert!(until > self.now);
                    self.now = until;
                }
                ask => {
                    self.requests += 1;
                    return ask;
                }
            }
        }
    }

    fn hear(&mut self, heard: Heard) -> Turn {
        self.machine.hear(self.now, heard, 0.5)
    }

    fn fail(&mut self, fault: Fault) -> Turn {
        self.hear(Heard::Failed(fault, None))
    }

    /// Gets a list by streaming, and follows from version `version`.
    fn listed(version: &str) -> Self {
        let mut bench = Self::new(false);
        assert_eq!(bench.request(), Ask::Stream);
        bench.hear(Heard::Opened);
        assert_eq!(bench.hear(at(version, true)), Turn::Listed);
        bench
    }

    fn waits(&self) -> Duration {
        match self.machine.ask(self.now) {
            Ask::Wait(until) => until.saturating_sub(self.now),
            _ => Duration::ZERO,
        }
    }
}

fn at(version: &str, listed: bool) -> Heard {
    Heard::Version {
        version: version.into(),
        listed,
    }
}

fn page(version: &str, token: Option<&str>) -> Heard {
    Heard::Page {
        version: version.into(),
        token: token.map(Into::into),
    }
}

const FIRST_PAGE: Ask = Ask::Page {
    token: None,
    whole: false,
};

#[test]
fn a_stream_lists_and_then_follows_in_one_request() {
    let mut bench = Bench::listed("7");
    bench.hear(at("9", false));
    bench.now += 300 * SECOND;
    bench.hear(Heard::Ended);
    assert!(
        bench.waits() <= SECOND,
        "a stream that lived is opened again soon"
    );
    assert_eq!(bench.request(), Ask::Follow("9".into()));
    assert_eq!(bench.requests, 2);
}

#[test]
fn a_server_that_cannot_stream_is_asked_for_pages_at_once() {
    let mut bench = Bench::new(false);
    assert_eq!(bench.request(), Ask::Stream);
    bench.fail(Fault::Invalid);
    assert_eq!(bench.waits(), Duration::ZERO);
    assert_eq!(bench.request(), FIRST_PAGE);
    assert_eq!(bench.hear(page("5", Some("next"))), Turn::Nothing);
    let second = Ask::Page {
        token: Some("next".into()),
        whole: false,
    };
    assert_eq!(bench.request(), second);
    assert_eq!(bench.hear(page("5", None)), Turn::Listed);
    assert_eq!(bench.request(), Ask::Follow("5".into()));
}

#[test]
fn a_version_that_is_not_kept_any_more_means_a_new_list() {
    let mut bench = Bench::listed("7");
    bench.now += 60 * SECOND;
    bench.fail(Fault::Gone);
    assert!(bench.waits() < 2 * SECOND);
    assert_eq!(bench.request(), Ask::Stream);
}

#[test]
fn a_list_of_pages_that_expires_begins_anew_and_in_the_end_comes_in_one() {
    let mut bench = Bench::new(false);
    bench.request();
    bench.fail(Fault::Invalid);
    for _ in 0..2 {
        assert_eq!(bench.request(), FIRST_PAGE);
        bench.hear(page("5", Some("next")));
        bench.request();
        bench.fail(Fault::Gone);
    }
    let whole = Ask::Page {
        token: None,
        whole: true,
    };
    assert_eq!(bench.request(), whole);
    assert_eq!(bench.hear(page("8", None)), Turn::Listed);
    assert_eq!(bench.request(), Ask::Follow("8".into()));
}

#[test]
fn a_page_that_breaks_is_asked_for_again_and_one_that_is_refused_is_not() {
    let mut bench = Bench::new(false);
    bench.request();
    bench.fail(Fault::Invalid);
    bench.request();
    bench.hear(page("5", Some("next")));
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
        assert_eq!(bench.request(), Ask::Stream);
        bench.hear(Heard::Opened);
        bench.now += 60 * SECOND;
        bench.hear(Heard::Silent);
    }
    assert_eq!(bench.request(), FIRST_PAGE);
}

#[test]
fn a_broken_line_while_following_means_a_new_list() {
    let mut bench = Bench::listed("7");
    bench.fail(Fault::Garbled);
    assert_eq!(bench.request(), Ask::Stream);
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
            assert_eq!(bench.request(), Ask::Follow("7".into()), "{fault:?}");
        }
        assert_eq!(bench.machine.failures(), 5);
    }
}

#[test]
fn a_kind_that_is_not_there_is_looked_for_now_and_then() {
    let mut bench = Bench::new(true);
    assert_eq!(bench.request(), Ask::Stream);
    assert_eq!(bench.fail(Fault::NotFound), Turn::Absent);
    assert_eq!(bench.waits(), ABSENT);
    assert_eq!(bench.request(), Ask::Stream);
    bench.hear(Heard::Opened);
    assert_eq!(bench.hear(at("1", true)), Turn::Listed);
}

#[test]
fn a_kind_that_was_there_must_be_missing_twice() {
    let mut bench = Bench::listed("7");
    bench.machine.optional = true;
    assert_eq!(bench.fail(Fault::NotFound), Turn::Nothing);
    assert_eq!(bench.request(), Ask::Stream);
    assert_eq!(bench.fail(Fault::NotFound), Turn::Absent);
}

#[test]
fn what_must_be_there_is_never_taken_for_absent() {
    let mut bench = Bench::new(false);
    for _ in 0..5 {
        bench.request();
        assert_eq!(bench.fail(Fault::NotFound), Turn::Nothing);
    }
}

#[test]
fn a_server_that_asks_for_peace_gets_it() {
    let mut bench = Bench::listed("7");
    bench.hear(Heard::Failed(Fault::TooManyRequests, Some(20 * SECOND)));
    assert!(bench.waits() >= 20 * SECOND);
    assert_eq!(bench.request(), Ask::Follow("7".into()));
}

#[test]
fn a_thousand_clean_ends_make_no_storm() {
    let mut bench = Bench::listed("7");
    for _ in 0..1000 {
        bench.hear(Heard::Ended);
        assert_eq!(bench.request(), Ask::Follow("7".into()));
        bench.hear(Heard::Opened);
    }
    assert!(
        bench.now > 1000 * 15 * SECOND,
        "{:?} for 1000 requests",
        bench.now
    );
}

/// Anything that a server may do in answer to one request.
fn answer() -> impl Strategy<Value = Vec<Heard>> {
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
        Just(Heard::Ended),
        Just(Heard::Silent),
        fault.clone().prop_map(|fault| Heard::Failed(fault, None)),
    ];
    let stream =
        (any::<bool>(), end).prop_map(|(listed, end)| vec![Heard::Opened, at("3", listed), end]);
    prop_oneof![
        stream,
        fault.prop_map(|fault| vec![Heard::Failed(fault, None)]),
        any::<bool>().prop_map(|more| vec![page("2", more.then_some("t"))]),
    ]
}

/// Whether a server can answer so: a page to a page, a stream to a stream.
fn fits(ask: &Ask, answer: &[Heard]) -> bool {
    match answer.first() {
        Some(Heard::Page { .. }) => matches!(ask, Ask::Page { .. }),
        Some(Heard::Opened) => !matches!(ask, Ask::Page { .. }),
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
            let ask = bench.request();
            if !fits(&ask, answer) {
                bench.machine.hear(bench.now, Heard::Failed(Fault::Unavailable, None), *chance);
                continue;
            }
            for heard in answer {
                bench.machine.hear(bench.now, heard.clone(), *chance);
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
            let ask = bench.request();
            if let Ask::Follow(version) = &ask {
                prop_assert!(reached, "followed {version} without a list");
            }
            let answer = if fits(&ask, answer) { answer.as_slice() } else { &[Heard::Failed(Fault::Unavailable, None)] };
            for heard in answer {
                reached |= bench.machine.hear(bench.now, heard.clone(), *chance) == Turn::Listed;
            }
        }
    }
}
