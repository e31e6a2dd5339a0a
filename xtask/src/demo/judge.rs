//! What must be true of everything the demo showed.

use guest_wire::{Change, Load, Picture};

/// How far a real server's hits may be from the wanted ones, as a share of all connections: 1,000
/// connections are eight of the scheduler's cycles of 120 and 40 more, which hold 16 to 40 of the
/// heaviest instead of 32, as its cursor happens to stand.
const TOLERANCE: f64 = 0.02;

/// How long a change may take to reach the kernel, in milliseconds. Tens are usual; this is for
/// an emulated processor on a machine that is busy with ten other things.
const SLOWEST_CHANGE: f64 = 5000.0;

/// Pictures that the demo shows: at rest, and after each change.
const PICTURES: usize = 4;

/// Collects what was seen.
pub(super) struct Judge {
    connections: u64,
    pictures: Vec<Picture>,
    changes: Vec<Change>,
    proofs: Vec<String>,
}

/// One thing that must be true, and whether it is.
struct Claim {
    text: String,
    holds: bool,
}

impl Judge {
    /// Expects `connections` behind every picture.
    pub(super) fn new(connections: u64) -> Self {
        Self {
            connections,
            pictures: Vec::new(),
            changes: Vec::new(),
            proofs: Vec::new(),
        }
    }

    /// Takes a picture in.
    pub(super) fn picture(&mut self, picture: Picture) {
        self.pictures.push(picture);
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
        let mut claims = vec![
            Claim {
                text: format!("{} pictures instead of {PICTURES}", self.pictures.len()),
                holds: self.pictures.len() == PICTURES && self.changes.len() + 1 == PICTURES,
            },
            Claim {
                text: "the last picture is not the first one again".to_owned(),
                holds: weights(self.pictures.first()) == weights(self.pictures.last()),
            },
            Claim {
                text: "ipvsadm does not show every real server".to_owned(),
                holds: self.is_proven(),
            },
        ];
        for picture in &self.pictures {
            claims.extend(self.picture_claims(picture));
        }
        for change in &self.changes {
            claims.extend(change_claims(change));
        }
        claims
    }

    /// Whether a program that knows nothing of us shows what the last picture does.
    fn is_proven(&self) -> bool {
        let Some(last) = self.pictures.last() else {
            return false;
        };
        let shows = |text: &String| {
            text.contains(&last.address)
                && last
                    .servers
                    .iter()
                    .all(|server| text.contains(&server.address))
        };
        !self.proofs.is_empty() && self.proofs.iter().all(shows)
    }

    fn picture_claims(&self, picture: &Picture) -> Vec<Claim> {
        let mut claims = vec![
            no_failure(&picture.load, "a picture"),
            Claim {
                text: format!(
                    "{} connections instead of {}",
                    picture.load.requests, self.connections
                ),
                holds: picture.load.requests == self.connections,
            },
        ];
        claims.extend(picture.servers.iter().map(|server| {
            let share = share(server.hits, picture.load.requests);
            let near = (share - server.wanted).abs() <= TOLERANCE;
            Claim {
                text: format!(
                    "{} got {:.1} % of the connections instead of {:.1} %",
                    server.address,
                    100.0 * share,
                    100.0 * server.wanted
                ),
                // Nothing at all goes where nothing is wanted, and something where something is.
                holds: near && (server.hits > 0) == (server.wanted > 0.0),
            }
        }));
        claims
    }
}

fn change_claims(change: &Change) -> [Claim; 3] {
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
            holds: change.milliseconds <= SLOWEST_CHANGE,
        },
    ]
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

/// The weights of a picture by address.
fn weights(picture: Option<&Picture>) -> Vec<(&str, Option<u32>)> {
    let servers = picture.map_or_else(Default::default, |picture| picture.servers.as_slice());
    let mut weights: Vec<_> = servers
        .iter()
        .map(|server| (server.address.as_str(), server.weight))
        .collect();
    weights.sort();
    weights
}

#[cfg(test)]
mod tests {
    use guest_wire::Server;

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

    fn judge(pictures: [[u64; 2]; 4], changes: [(f64, u64); 3]) -> Judge {
        let mut judge = Judge::new(100);
        for hits in pictures {
            judge.picture(picture(hits));
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
        assert!(!Judge::new(100).verdict().is_empty());
    }

    #[test]
    fn a_proof_that_lacks_a_server_is_none() {
        let mut judge = judge(RIGHT, QUICK);
        judge.proof("10.96.0.10:80 10.0.0.1:80".to_owned());
        assert_eq!(judge.verdict().len(), 1);
    }
}
