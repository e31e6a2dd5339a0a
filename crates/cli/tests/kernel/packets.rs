//! Every kind of client at every kind of frontend: who answers, and which source address the server sees.

#[path = "packets/connect.rs"]
mod connect;
#[path = "packets/rules.rs"]
mod rules;
#[path = "packets/world.rs"]
mod world;

use std::net::IpAddr;
use std::time::Duration;

use connect::{Protocol, Seen, attempt, check_health};
use rules::{Cell, Endpoints, Frontend, Outcome, Source};
use world::{World, is_sticky, node_addresses, target};

/// Two unanswered SYNs; SCTP repeats its first packet after 3 s.
const SHORT: Duration = Duration::from_secs(5);
const LONG: Duration = Duration::from_secs(15);

/// Whether a client may see this.
fn fits(cell: Cell, protocol: Protocol, source: IpAddr, node: &[IpAddr], seen: &Seen) -> bool {
    match (cell.outcome(), seen) {
        (Outcome::Answer { here, elsewhere }, Seen::Answer(text)) => {
            let (server, peer) = text.split_once(' ').unwrap_or_default();
            let expected = match server {
                "here" => here,
                "elsewhere" => elsewhere,
                _ => None,
            };
            let peer = peer.parse::<IpAddr>();
            peer.is_ok_and(|peer| match expected {
                Some(Source::Client) => peer == source,
                Some(Source::Node) => node.contains(&peer),
                None => false,
            })
        }
        (Outcome::Health(status), Seen::Answer(text)) => *text == status.to_string(),
        // The kernel keeps "port unreachable" from SCTP sockets (`sctp_v4_err` in `net/sctp/input.c`).
        (Outcome::Refused | Outcome::Dropped, Seen::Refused | Seen::Nothing)
            if protocol == Protocol::Sctp =>
        {
            true
        }
        (Outcome::Refused, Seen::Refused) | (Outcome::Dropped, Seen::Nothing) => true,
        _ => false,
    }
}

/// One connection of a cell.
#[derive(Debug, Clone, Copy)]
struct Connection {
    cell: Cell,
    protocol: Protocol,
    is_v6: bool,
}

impl Connection {
    fn all(endpoints: Endpoints) -> Vec<Self> {
        let mut all = Vec::new();
        for cell in Cell::all(endpoints) {
            let protocols = match cell.frontend {
                Frontend::HealthPort => &[Protocol::Tcp],
                _ => &Protocol::ALL[..],
            };
            for &protocol in protocols {
                all.extend([false, true].map(|is_v6| Self {
                    cell,
                    protocol,
                    is_v6,
                }));
            }
        }
        all
    }

    /// Opens it; returns what the client saw if that is not as expected.
    fn surprise(self, world: &World, node: &[IpAddr], patience: Duration) -> Option<Seen> {
        let (place, source) = world.client(self.cell.client, self.is_v6);
        let connect = || self.repeat(source, patience);
        let all = place.map_or_else(connect, |place| place.inside(connect));
        let mut others = all.iter().filter(|seen| **seen != all[0]);
        let is_one = |seen: &&Seen| !fits(self.cell, self.protocol, source, node, seen);
        let other = others.next().filter(|_| is_sticky(self.cell.policy));
        all.iter().find(is_one).or(other).cloned()
    }

    /// Opens it as often as the cell needs.
    fn repeat(self, source: IpAddr, patience: Duration) -> Vec<Seen> {
        let at = target(self.cell, self.protocol, self.is_v6);
        let times = if is_sticky(self.cell.policy) { 3 } else { 1 };
        let connect = |_| match self.cell.frontend {
            Frontend::HealthPort => check_health(source, at, patience),
            _ => attempt(self.protocol, source, at, patience),
        };
        (0..times).map(connect).collect()
    }
}

/// Opens all of these connections at once, and returns the surprises.
fn open(
    world: &World,
    connections: Vec<Connection>,
    patience: Duration,
) -> Vec<(Connection, Seen)> {
    let node = node_addresses();
    std::thread::scope(|scope| {
        let threads: Vec<_> = connections
            .into_iter()
            .map(|one| {
                let node = &node;
                scope.spawn(move || Some((one, one.surprise(world, node, patience)?)))
            })
            .collect();
        let surprises = threads.into_iter();
        surprises
            .filter_map(|thread| thread.join().expect("the thread's own panic was printed"))
            .collect()
    })
}

/// A line for each cell of a state that is not as expected. What had no answer is tried again alone, because a busy guest
/// may be too slow for so many connections.
fn wrong(world: &World, endpoints: Endpoints) -> Vec<String> {
    let first = open(world, Connection::all(endpoints), SHORT);
    let (silent, mut wrong): (Vec<_>, Vec<_>) = first
        .into_iter()
        .partition(|(_, seen)| *seen == Seen::Nothing);
    let again = silent.into_iter().map(|(one, _)| one).collect();
    wrong.extend(open(world, again, LONG));
    let line = |(one, seen): (Connection, Seen)| {
        format!("{one:?}: {seen:?} instead of {:?}", one.cell.outcome())
    };
    wrong.into_iter().map(line).collect()
}

/// KP-TP-06, KP-TP-07, KP-WK-01, KP-WK-02.
#[test]
fn every_client_gets_what_the_api_promises_at_every_frontend() {
    let mut world = World::start();
    let mut all = Vec::new();
    for endpoints in Endpoints::ALL {
        world.set(endpoints);
        all.extend(wrong(&world, endpoints));
    }
    assert!(all.is_empty(), "{} cells:\n{}", all.len(), all.join("\n"));
}
