//! Many replicas, one Lease, and requests that are slow or lost, or whose answers are lost.

use proptest::prelude::*;

use super::*;

/// The API server with one object; a write must name its version.
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

    fn answer(&mut self, request: &LeaseRequest) -> Response {
        match (request, &self.record) {
            (LeaseRequest::Get, Some(record)) => Response::Found(record.clone()),
            (LeaseRequest::Get, None) => Response::Missing,
            (LeaseRequest::Create(record), None) => self.write(record),
            (LeaseRequest::Replace(record), Some(stored)) if stored.version == record.version => {
                self.write(record)
            }
            _ => Response::Lost,
        }
    }
}

/// A request in flight, with the times in milliseconds when it and its answer arrive.
struct InFlight {
    ask: LeaseRequest,
    arrives: u64,
    returns: u64,
    answer: Option<Response>,
}

/// Latency of a request and of its answer in milliseconds, and whether one of them is lost.
type Latency = (u64, u64, u8);

fn latencies() -> impl Strategy<Value = Vec<Latency>> {
    prop::collection::vec((0..9_000_u64, 0..9_000_u64, 0..10_u8), 10..200)
}

fn at(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Runs replicas whose clocks differ. Returns how many led at some time, and the maximum at one
/// time.
fn run(replicas: usize, latencies: &[Latency], stop: Option<usize>) -> (usize, usize) {
    let mut server = Server::default();
    let skew = |replica: usize| at(1_000_000 * replica as u64);
    let mut all: Vec<(Election, Option<InFlight>)> = (0..replicas)
        .map(|replica| (Election::new(&format!("replica-{replica}")), None))
        .collect();
    let mut latencies = latencies.iter().cycle();
    let (mut ever, mut most) = (vec![false; replicas], 0);
    for now in (0..600_000_u64).step_by(100) {
        for (replica, (election, underway)) in all.iter_mut().enumerate() {
            let local = at(now) + skew(replica);
            if let Some(request) = underway {
                if request.answer.is_none() && now >= request.arrives {
                    request.answer = Some(server.answer(&request.ask));
                }
                if now >= request.returns {
                    let answer = request.answer.take().unwrap_or(Response::Failed);
                    election.handle(local, answer);
                    *underway = None;
                }
                continue;
            }
            if stop == Some(replica) && now > 300_000 {
                if let Some(record) = election.release() {
                    server.answer(&LeaseRequest::Replace(record));
                }
                continue;
            }
            let ask = election.next_request(local);
            if matches!(ask, LeaseRequest::Wait(_)) {
                continue;
            }
            let (there, back, loss) = *latencies.next().unwrap();
            let mut request = InFlight {
                ask,
                arrives: now + there,
                returns: now + there + back,
                answer: None,
            };
            match loss {
                // The request is lost.
                0 => request.arrives = u64::MAX,
                // The answer is lost.
                1 => {
                    server.answer(&request.ask);
                    request.arrives = u64::MAX;
                }
                _ => {}
            }
            *underway = Some(request);
        }
        let mut leaders = 0;
        for (replica, (election, _)) in all.iter().enumerate() {
            if election.leads_until(at(now) + skew(replica)).is_some() {
                leaders += 1;
                ever[replica] = true;
            }
        }
        most = most.max(leaders);
    }
    (ever.iter().filter(|led| **led).count(), most)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn there_is_never_more_than_one_leader(replicas in 1..5_usize, latencies in latencies()) {
        let (_, most) = run(replicas, &latencies, None);
        prop_assert!(most <= 1, "{}", most);
    }

    #[test]
    fn after_a_release_another_replica_leads(delay in 0..500_u64) {
        let (ever, most) = run(3, &[(delay, delay, 9)], Some(0));
        prop_assert_eq!((ever, most), (2, 1));
    }
}

#[test]
fn the_first_replica_creates_the_lease_and_leads() {
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
        "counted from the time of the request"
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
fn a_lease_is_taken_when_it_was_not_renewed() {
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
        "the Lease was renewed"
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
        panic!("the Lease was not taken");
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
