//! What a weight means under each scheduler of the kernel.

use topology_core::resolve::Decision;

use crate::output::bar::short_percent;

/// Levels with less than this are better served by `mh`.
const SMALL: f64 = 0.02;

/// What the weights of a virtual server mean for its clients.
pub(crate) fn note(scheduler: &str, decision: &Decision) -> String {
    let meaning = meaning(scheduler);
    let cycle = decision
        .quantised
        .map(|(_, cycle)| cycle)
        .filter(|cycle| scheduler == "wrr" && *cycle > 1);
    let cycle = cycle.map_or_else(String::new, |cycle| {
        format!("; one cycle is {cycle} connections")
    });
    let small = smallest(decision).filter(|_| matches!(scheduler, "wrr" | "wlc" | "sed" | "nq"));
    let advice = small.map_or_else(String::new, |(level, share)| {
        format!(
            ". Level {level} gets {}: Nodes with few connections may never reach it; scheduler mh spreads so small a share evenly",
            short_percent(share)
        )
    });
    format!("{meaning}{cycle}{advice}")
}

/// From the kernel's sources (`net/netfilter/ipvs`).
fn meaning(scheduler: &str) -> &'static str {
    match scheduler {
        "wrr" => {
            "each real server gets exactly its weight's part of the connections, the heaviest first"
        }
        "mh" => {
            "each real server gets its weight's part of the client addresses, without bursts (Maglev hashing)"
        }
        "sh" => {
            "each real server gets its weight's part of 256 buckets of client addresses; weights that sum to more are cut off"
        }
        "wlc" => {
            "the fewest connections for its weight wins; shares hold only while connections live equally long"
        }
        "sed" | "nq" => "the shortest expected delay for its weight wins; shares are approximate",
        "lblc" | "lblcr" => {
            "connections to one address stay together, else the fewest for its weight wins; shares are approximate"
        }
        "fo" => "the heaviest takes everything until it is gone; shares do not hold",
        "ovf" => {
            "the heaviest takes as many connections as its weight says, then the next; shares do not hold"
        }
        "rr" | "lc" | "dh" => {
            "weights are ignored, except that 0 takes nothing; shares do not hold"
        }
        _ => "this program does not know what it makes of weights; shares may not hold",
    }
}

/// The level with the smallest share above none, if that is small.
fn smallest(decision: &Decision) -> Option<(String, f64)> {
    let levels = decision
        .levels
        .iter()
        .map(|level| (level.key.to_string(), level.achieved.to_f64()));
    let small = levels.filter(|(_, share)| *share > 0.0 && *share < SMALL);
    small.min_by(|left, right| left.1.total_cmp(&right.1))
}
