//! Describes what weights mean under each scheduler of the kernel.

use topology_core::resolve::Decision;
use topology_core::scheduler::Scheduler;

use crate::numbers::short_percent;

/// Below this share a level may wait long for a connection.
const SMALL: f64 = 0.02;

/// Describes what the weights of a virtual server mean for its clients.
pub(super) fn note(scheduler: Scheduler, decision: &Decision) -> String {
    let meaning = meaning(scheduler);
    let cycle = cycle(decision).filter(|_| scheduler == Scheduler::Wrr);
    let cycle = cycle.map_or_else(String::new, |cycle| {
        format!("; one cycle is {cycle} connections")
    });
    let small = smallest(decision).map_or_else(String::new, |(level, share)| {
        format!(
            ". Level {level} gets {}: Nodes with few connections may never reach it",
            short_percent(share)
        )
    });
    format!("{meaning}{cycle}{small}")
}

/// Describes what weights mean for the clients of DNS.
pub(super) fn note_of_dns(decision: &Decision) -> String {
    let cycle = cycle(decision).map_or_else(String::new, |cycle| {
        format!("; one cycle is {cycle} answers to a client")
    });
    format!(
        "each answer has the endpoints of one level, and each level gets exactly its share of the answers{cycle}"
    )
}

/// The picks until they repeat, if there is a choice.
fn cycle(decision: &Decision) -> Option<u64> {
    let (_, cycle) = decision.quantised?;
    (cycle > 1).then_some(cycle)
}

/// Source: `net/netfilter/ipvs` of the kernel.
const fn meaning(scheduler: Scheduler) -> &'static str {
    match scheduler {
        Scheduler::Wrr => {
            "each real server gets exactly its weight's part of the connections, the heaviest first"
        }
        Scheduler::Mh => {
            "each real server gets about its weight's part of 4093 buckets of client addresses; weights are 1 to 63, so small shares are not met"
        }
        Scheduler::Sh => {
            "each real server gets its weight's part of 256 buckets of client addresses, at least one"
        }
        Scheduler::Wlc => {
            "the fewest connections for its weight wins; shares hold only while connections live equally long"
        }
        Scheduler::Twos => {
            "of two at random the one with fewer connections for its weight wins; shares hold only while connections live equally long"
        }
        Scheduler::Sed | Scheduler::Nq => {
            "the fewest active connections for its weight wins; shares are approximate over TCP, and over UDP one real server takes everything"
        }
        Scheduler::Lblc | Scheduler::Lblcr => {
            "all connections to the address go to one real server until it has more than its weight; shares do not hold"
        }
        Scheduler::Fo => "the heaviest takes everything until it is gone; shares do not hold",
        Scheduler::Ovf => {
            "the heaviest takes as many connections as its weight says, then the next, and beyond all weights clients are refused; shares do not hold"
        }
        Scheduler::Rr => "weights are ignored, except that 0 takes nothing; shares do not hold",
        Scheduler::Lc => {
            "the fewest connections wins; weights are ignored, except that 0 takes nothing; shares do not hold"
        }
        Scheduler::Dh => {
            "all connections to the address go to one real server, and are refused if that has weight 0; shares do not hold"
        }
    }
}

/// The level with the smallest share above 0, if that is small.
fn smallest(decision: &Decision) -> Option<(String, f64)> {
    let levels = decision
        .levels
        .iter()
        .map(|level| (level.key.to_string(), level.achieved.to_f64()));
    let small = levels.filter(|(_, share)| *share > 0.0 && *share < SMALL);
    small.min_by(|left, right| left.1.total_cmp(&right.1))
}
