//! What must be true of everything the demo showed.

use guest_wire::{Change, Load, Picture, Server};

/// How far a real server's hits may be from the wanted ones, as a share of all connections: 1,000
/// connections are eight of the scheduler's cycles of 120 and 40 more, which hold 16 to 40 of the
/// heaviest instead of 32, as its cursor happens to stand.
const TOLERANCE: f64 = 0.02;

/// What a demo is to show.
pub(super) struct Expected {
    /// Connections of each client behind each picture.
    pub(super) connections: u64,
    /// Pictures: at rest, and after each change.
    pub(super) pictures: usize,
    /// Pictures, counted from 0, that show the same weights.
    pub(super) same: &'static [(usize, usize)],
    /// How long a change may take to reach the kernel, in milliseconds.
    pub(super) slowest_change: f64,
}

/// Collects what was seen.
pub(super) struct Judge {
    expected: Expected,
    /// Each with a column for each client.
    pictures: Vec<Vec<Picture>>,
    changes: Vec<Change>,
    proofs: Vec<String>,
}

/// One thing that must be true, and whether it is.
struct Claim {
    text: String,
    holds: bool,
}

impl Judge {
    /// Expects what is written there.
    pub(super) fn new(expected: Expected) -> Self {
        Self {
            expected,
            pictures: Vec::new(),
            changes: Vec::new(),
            proofs: Vec::new(),
        }
    }

    /// Takes a picture in.
    pub(super) fn picture(&mut self, columns: Vec<Picture>) {
        self.pictures.push(columns);
    }

    /// Takes a change in.
    pub(super) fn change(&mut self, change: Change) {
        self.changes.push(change);
    }

    /// Takes a proof in.
    pub(super) fn proof(&mut self, text: String) {
        self.proofs.push(text);
    }

    /// Everything that is not as it must be, in words.
    pub(super) fn verdict(&self) -> Vec<String> {
        let claims = self.claims().into_iter();
        claims
            .filter(|claim| !claim.holds)
            .map(|claim| claim.text)
            .collect()
    }

    /// How many claims hold.
    pub(super) fn passed(&self) -> usize {
        self.claims().iter().filter(|claim| claim.holds).count()
    }

    fn claims(&self) -> Vec<Claim> {
        let Expected { pictures, same, .. } = self.expected;
        let mut claims = vec![
            Claim {
                text: format!("{} pictures instead of {pictures}", self.pictures.len()),
                holds: self.pictures.len() == pictures && self.changes.len() + 1 == pictures,
            },
            Claim {
                text: "a program does not show every real server".to_owned(),
                holds: self.is_proven(),
            },
        ];
        claims.extend(same.iter().map(|(one, other)| Claim {
            text: format!("picture {other} is not picture {one} again, counted from 0"),
            holds: weights(self.pictures.get(*one)) == weights(self.pictures.get(*other)),
        }));
        for picture in self.pictures.iter().flatten() {
            claims.extend(self.picture_claims(picture));
        }
        for change in &self.changes {
            claims.extend(self.change_claims(change));
        }
        claims
    }

    /// Whether every program that was asked shows what the last picture does.
    fn is_proven(&self) -> bool {
        let Some(last) = self.pictures.last().and_then(|columns| columns.first()) else {
            return false;
        };
        let shows = |text: &String| {
            text.contains(&last.address)
                && last
                    .servers
                    .iter()
                    .filter(|server| belongs(server))
                    .all(|server| text.contains(&server.address))
        };
        !self.proofs.is_empty() && self.proofs.iter().all(shows)
    }

    fn picture_claims(&self, picture: &Picture) -> Vec<Claim> {
        let mut claims = vec![
            no_failure(&picture.load, "a picture"),
            Claim {
                text: format!(
                    "{} connections from {} instead of {}",
                    picture.load.requests, picture.client, self.expected.connections
                ),
                holds: picture.load.requests == self.expected.connections,
            },
        ];
        claims.extend(picture.servers.iter().map(|server| {
            let share = share(server.hits, picture.load.requests);
            let near = (share - server.wanted).abs() <= TOLERANCE;
            Claim {
                text: format!(
                    "{} got {:.1} % of the connections from {} instead of {:.1} %",
                    server.address,
                    100.0 * share,
                    picture.client,
                    100.0 * server.wanted
                ),
                // Nothing at all goes where nothing is wanted, and something where something is.
                holds: near && (server.hits > 0) == (server.wanted > 0.0),
            }
        }));
        claims
    }

    fn change_claims(&self, change: &Change) -> [Claim; 3] {
        [
            no_failure(&change.load, &change.what),
            Claim {
                text: format!("{}: no request was under way", change.what),
                holds: change.load.requests > 0,
            },
            Claim {
                text: format!(
                    "{}: {:.0} ms until the kernel had changed",
                    change.what, change.milliseconds
                ),
                holds: change.milliseconds <= self.expected.slowest_change,
            },
        ]
    }
}

fn no_failure(load: &Load, when: &str) -> Claim {
    Claim {
        text: format!(
            "{when}: {} requests failed: {}",
            load.failed,
            load.errors.join(", ")
        ),
        holds: load.failed == 0,
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
fn share(hits: u64, requests: u64) -> f64 {
    hits as f64 / requests.max(1) as f64
}

/// The weights in each column of a picture, by node: pods that come back have other addresses.
fn weights(columns: Option<&Vec<Picture>>) -> Vec<Vec<(&str, Option<u32>)>> {
    let columns = columns.map_or_else(Default::default, Vec::as_slice);
    columns.iter().map(weights_of).collect()
}

/// Whether it is an endpoint still: one whose pod is gone has no node, and stays in the kernel until its connections end.
fn belongs(server: &Server) -> bool {
    !server.node.is_empty()
}

fn weights_of(picture: &Picture) -> Vec<(&str, Option<u32>)> {
    let servers = picture.servers.iter().filter(|server| belongs(server));
    let mut weights: Vec<_> = servers
        .map(|server| (&*server.node, server.weight))
        .collect();
    weights.sort_unstable();
    weights
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(requests: u64, failed: u64) -> Load {
        Load {
            requests,
            failed,
            errors: Vec::new(),
            seconds: 1.0,
        }
    }

    fn picture(hits: [u64; 2]) -> Picture {
        let server = |address: &str, wanted, hits| Server {
            address: address.to_owned(),
            node: "n1".to_owned(),
            zone: "a".to_owned(),
            level: Some("node".to_owned()),
            weight: Some(1),
            wanted,
            hits,
        };
        Picture {
            client: "n1".to_owned(),
            service: "shop/cart".to_owned(),
            address: "10.96.0.10:80".to_owned(),
            policy: String::new(),
            load: load(100, 0),
            servers: vec![
                server("10.0.0.1:80", 0.8, hits[0]),
                server("10.0.0.2:80", 0.2, hits[1]),
            ],
        }
    }

    fn change(milliseconds: f64, failed: u64) -> Change {
        Change {
            what: "a pod leaves".to_owned(),
            milliseconds,
            load: load(50, failed),
        }
    }

    fn expected() -> Expected {
        Expected {
            connections: 100,
            pictures: 4,
            same: &[(0, 3)],
            slowest_change: 5000.0,
        }
    }

    fn judge(pictures: [[u64; 2]; 4], changes: [(f64, u64); 3]) -> Judge {
        let mut judge = Judge::new(expected());
        for hits in pictures {
            judge.picture(vec![picture(hits)]);
        }
        for (milliseconds, failed) in changes {
            judge.change(change(milliseconds, failed));
        }
        judge.proof("10.96.0.10:80 10.0.0.1:80 10.0.0.2:80".to_owned());
        judge
    }

    const RIGHT: [[u64; 2]; 4] = [[80, 20]; 4];
    const QUICK: [(f64, u64); 3] = [(9.0, 0); 3];

    #[test]
    fn a_demo_as_it_should_be_has_no_misses() {
        let judge = judge(RIGHT, QUICK);
        assert_eq!(judge.verdict(), Vec::<String>::new());
        assert!(judge.passed() > 20);
    }

    #[test]
    fn each_kind_of_miss_is_found() {
        let wrong_share = judge([[80, 20], [80, 20], [77, 23], [80, 20]], QUICK).verdict();
        assert_eq!(wrong_share.len(), 2, "{wrong_share:?}");
        let failed_request = judge(RIGHT, [(9.0, 0), (9.0, 1), (9.0, 0)]).verdict();
        assert_eq!(failed_request.len(), 1, "{failed_request:?}");
        let slow = judge(RIGHT, [(9.0, 0), (9.0, 0), (5001.0, 0)]).verdict();
        assert_eq!(slow.len(), 1, "{slow:?}");
        assert!(!Judge::new(expected()).verdict().is_empty());
    }

    #[test]
    fn a_pod_that_is_gone_and_finishes_its_connections_spoils_nothing() {
        let mut judge = judge(RIGHT, QUICK);
        let last = judge.pictures.last_mut().unwrap().first_mut().unwrap();
        last.servers.push(Server {
            address: "10.0.0.9:80".to_owned(),
            node: String::new(),
            zone: String::new(),
            level: None,
            weight: Some(0),
            wanted: 0.0,
            hits: 0,
        });
        assert_eq!(judge.verdict(), Vec::<String>::new());
    }

    #[test]
    fn a_proof_that_lacks_a_server_is_none() {
        let mut judge = judge(RIGHT, QUICK);
        judge.proof("10.96.0.10:80 10.0.0.1:80".to_owned());
        assert_eq!(judge.verdict().len(), 1);
    }
}
