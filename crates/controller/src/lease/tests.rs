//! Many replicas, one Lease, and requests that take any time, arrive without an answer, or do not arrive.

use proptest::prelude::*;

use super::*;

/// The API server: one object, written only by who knows its version.
#[derive(Default)]
struct Server {
    record: Option<Record>,
    version: u64,
}

impl Server {
    fn write(&mut self, record: &Record) -> Response {
        self.version += 1;
        let version = self.version.to_string();
        self.record = Some(Record {
            version: version.clone(),
            ..record.clone()
        });
        Response::Written(version)
    }

    fn answer(&mut self, ask: &LeaseRequest) -> Response {
        match (ask, &self.record) {
            (LeaseRequest::Get, Some(record)) => Response::Found(record.clone()),
            (LeaseRequest::Get, None) => Response::Missing,
            (LeaseRequest::Create(record), None) => self.write(record),
            (LeaseRequest::Replace(record), Some(kept)) if kept.version == record.version => {
                self.write(record)
            }
            _ => Response::Lost,
        }
    }
}

/// A request under way: when it arrives, and when its answer does.
struct Underway {
    ask: LeaseRequest,
    arrives: u64,
    returns: u64,
    answer: Option<Response>,
}

/// What happens to the next request: milliseconds there and back, and whether it or its answer is lost.
type Fate = (u64, u64, u8);

fn fates() -> impl Strategy<Value = Vec<Fate>> {
    prop::collection::vec((0..9_000_u64, 0..9_000_u64, 0..10_u8), 10..200)
}

fn at(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Runs replicas whose clocks differ; returns how many led at some time, and at most how many at once.
fn run(replicas: usize, fates: &[Fate], stop: Option<usize>) -> (usize, usize) {
    let mut server = Server::default();
    let skew = |one: usize| at(1_000_000 * one as u64);
    let mut all: Vec<(Election, Option<Underway>)> = (0..replicas)
        .map(|one| (Election::new(&format!("replica-{one}")), None))
        .collect();
    let mut fates = fates.iter().cycle();
    let (mut ever, mut most) = (vec![false; replicas], 0);
    for now in (0..600_000_u64).step_by(100) {
        for (one, (election, underway)) in all.iter_mut().enumerate() {
            let mine = at(now) + skew(one);
            if let Some(request) = underway {
                if request.answer.is_none() && now >= request.arrives {
                    request.answer = Some(server.answer(&request.ask));
                }
                if now >= request.returns {
                    let answer = request.answer.take().unwrap_or(Response::Failed);
                    election.handle(mine, answer);
                    *underway = None;
                }
                continue;
            }
            if stop == Some(one) && now > 300_000 {
                if let Some(record) = election.release() {
                    server.answer(&LeaseRequest::Replace(record));
                }
                continue;
            }
            let ask = election.next_request(mine);
            if matches!(ask, LeaseRequest::Wait(_)) {
                continue;
            }
            let (there, back, luck) = *fates.next().unwrap();
            let mut request = Underway {
                ask,
                arrives: now + there,
                returns: now + there + back,
                answer: None,
            };
            match luck {
                // The request is lost.
                0 => request.arrives = u64::MAX,
                // It arrives, and the answer is lost.
                1 => {
                    server.answer(&request.ask);
                    request.arrives = u64::MAX;
                }
                _ => {}
            }
            *underway = Some(request);
        }
        let mut leaders = 0;
        for (one, (election, _)) in all.iter().enumerate() {
            if election.leads_until(at(now) + skew(one)).is_some() {
                leaders += 1;
                ever[one] = true;
            }
        }
        most = most.max(leaders);
    }
    (ever.iter().filter(|led| **led).count(), most)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn there_is_never_more_than_one_leader(replicas in 1..5_usize, fates in fates()) {
        let (_, most) = run(replicas, &fates, None);
        prop_assert!(most <= 1, "{}", most);
    }

    #[test]
    fn a_leader_that_hands_over_is_followed_by_another(delay in 0..500_u64) {
        let (ever, most) = run(3, &[(delay, delay, 9)], Some(0));
        prop_assert_eq!((ever, most), (2, 1));
    }
}

#[test]
fn the_first_makes_the_lease_and_leads() {
    let mut election = Election::new("a");
    let second = Duration::from_secs(1);
    assert_eq!(election.next_request(second), LeaseRequest::Get);
    election.handle(second, Response::Missing);
    assert!(
        matches!(election.next_request(second), LeaseRequest::Create(record) if record.holder == "a")
    );
    assert_eq!(election.leads_until(second), None);
    election.handle(second * 2, Response::Written("1".to_owned()));
    let until = second + DEADLINE;
    assert_eq!(
        election.leads_until(second * 2),
        Some(until),
        "from when it was sent"
    );
    assert_eq!(election.leads_until(until), None);
    assert_eq!(
        election.next_request(second * 3),
        LeaseRequest::Wait(second * 4)
    );
    assert!(
        matches!(election.next_request(second * 4), LeaseRequest::Replace(record) if record.version == "1")
    );
}

#[test]
fn a_lease_that_is_held_is_taken_once_it_was_not_renewed() {
    let held = Record {
        holder: "a".to_owned(),
        duration: DURATION,
        transitions: 3,
        version: "7".to_owned(),
    };
    let mut election = Election::new("b");
    let begin = Duration::from_secs(100);
    assert_eq!(election.next_request(begin), LeaseRequest::Get);
    election.handle(begin, Response::Found(held.clone()));
    let later = begin + DURATION;
    assert_eq!(election.next_request(later), LeaseRequest::Get);
    election.handle(
        later,
        Response::Found(Record {
            version: "8".to_owned(),
            ..held.clone()
        }),
    );
    assert_eq!(
        election.next_request(later + RETRY),
        LeaseRequest::Get,
        "it was renewed meanwhile"
    );
    let late = later + DURATION * 2;
    election.handle(
        late,
        Response::Found(Record {
            version: "8".to_owned(),
            ..held
        }),
    );
    let LeaseRequest::Replace(taken) = election.next_request(late) else {
        panic!("not taken");
    };
    assert_eq!(
        (&*taken.holder, taken.transitions, &*taken.version),
        ("b", 4, "8")
    );
    election.handle(late, Response::Written("9".to_owned()));
    let renewal = election.next_request(late + RETRY);
    assert!(
        matches!(&renewal, LeaseRequest::Replace(record) if record.transitions == 4),
        "{renewal:?}"
    );
}
