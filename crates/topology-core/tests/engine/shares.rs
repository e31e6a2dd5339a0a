//! Vectors Q: from endpoints in levels to weights, through the whole engine.

use topology_core::model::Node;
use topology_core::policy::{Demand, EmptyTier};

use crate::vectors::{Shares, each_vector, shares};
use crate::world::{Ep, World, ep, weighted};

each_vector!(
    shares,
    check,
    [
        q01_hard_two_local = "Q01",
        q02_hard_none_local_is_refused = "Q02",
        q03_prefer_the_nearest = "Q03",
        q04_prefer_falls_to_the_zone = "Q04",
        q05_prefer_falls_to_any = "Q05",
        q06_weighted_80_15_5_over_1_3_6 = "Q06",
        q07_weighted_80_15_5_over_2_4_10 = "Q07",
        q08_an_empty_node_cascades = "Q08",
        q09_an_empty_node_is_renormalized = "Q09",
        q10_an_empty_middle_cascades_outward = "Q10",
        q11_an_empty_outermost_falls_inward = "Q11",
        q12_weighted_70_30_over_1_7 = "Q12",
        q13_weighted_80_20_over_3_5 = "Q13",
        q14_four_tiers_need_a_search = "Q14",
        q15_fewer_endpoints_far_away = "Q15",
        q16_search_with_one_near_and_200_far = "Q16",
        q17_wide_exact_with_one_near_and_200_far = "Q17",
        q17s_as_q17_with_28_far = "Q17s",
        q18_wide_exact_99_1 = "Q18",
        q18s_as_q18_with_5_far = "Q18s",
        q19_all_weights_zero_prefers_the_nearest = "Q19",
        q20_one_of_two_ready_merges_prefer = "Q20",
        q21_one_of_two_ready_merges_weighted = "Q21",
        q22_three_of_ten_ready_merge = "Q22",
        q23_five_of_ten_ready_stay = "Q23",
        q24_all_ready_spill_nothing = "Q24",
        q25_eight_of_ten_ready_spill_nothing = "Q25",
        q26_five_of_ten_ready_spill_30 = "Q26",
        q27_one_of_four_ready_spills_65 = "Q27",
        q28_both_half_ready = "Q28",
        q29_both_a_quarter_ready = "Q29",
        q30_weighted_spill = "Q30",
        q31_three_levels_spill = "Q31",
        q32_cap_with_20_percent_overload = "Q32",
        q33_cap_without_overload = "Q33",
        q34_cap_of_all = "Q34",
        q35_4_4_3_seen_from_the_small_zone = "Q35",
        q36_4_4_3_seen_from_a_large_zone = "Q36",
        q37_caps_of_node_and_zone = "Q37",
        q38_weighted_with_caps = "Q38",
    ]
);

/// Each tier of the file is a level: the label `t0`, `t1` ... with a Node that shares it with this one.
fn world(vector: &Shares) -> World {
    let keys: Vec<String> = (0..vector.tiers.len())
        .map(|tier| format!("t{tier}"))
        .collect();
    let levels: Vec<(&str, u32)> = keys
        .iter()
        .map(String::as_str)
        .zip(vector.weights.iter().copied())
        .collect();
    let mut policy = weighted(&levels);
    if vector
        .opts
        .get("empty")
        .is_some_and(|rule| rule == "Renormalize")
    {
        policy.empty_tier = EmptyTier::Renormalize;
    }
    let number = |name: &str| vector.opts.get(name).and_then(serde_json::Value::as_u64);
    policy.overprovision = number("ovp").map(|percent| percent.try_into().unwrap());
    for level in &mut policy.levels {
        let (count, percent) = (number("minready"), number("minpct"));
        level.min_ready.count = count.unwrap_or(1).try_into().unwrap();
        level.min_ready.percent = percent.unwrap_or(0).try_into().unwrap();
    }
    if vector.opts.contains_key("cap") {
        policy.max_overload = Some(0);
        policy.demand = Demand::AllocatableCpu;
    }
    let mine: Vec<(&str, &str)> = keys.iter().map(|key| (key.as_str(), "here")).collect();
    let mut world = World::new("me").node("me", &mine).policy(policy);
    // A nearer Node is also inside the outer levels.
    for ((tier, key), cpu) in keys.iter().enumerate().zip(demands(vector)) {
        let name = format!("node-{key}");
        world = world.node(&name, &mine[tier..]);
        let node = world.snapshot.node(&name).unwrap().clone();
        world.snapshot.set_node(Node {
            cpu_milli: cpu,
            ..node
        });
    }
    world.endpoints(endpoints(vector))
}

/// All demand; a multiple of every denominator in the file.
const ALL: u64 = 55 * 72 * 54 * 12;

/// The CPU of each tier's Node, so that endpoints / demand is the cap in the vector.
fn demands(vector: &Shares) -> Vec<u64> {
    let all: u64 = vector
        .tiers
        .iter()
        .map(|(ready, _)| u64::from(*ready))
        .sum();
    let (mut inside, mut before) = (0, 0);
    let caps: Vec<Option<String>> = match vector.opts.get("cap") {
        Some(caps) => serde_json::from_value(caps.clone()).unwrap(),
        None => vec![None; vector.tiers.len()],
    };
    let cpu = |((ready, _), cap): (&(u8, u8), Option<String>)| {
        inside += u64::from(*ready);
        let demand = cap.map_or(ALL, |cap| {
            let (most, of) = cap.split_once('/').unwrap_or((&cap, "1"));
            let (most, of): (u64, u64) = (most.parse().unwrap(), of.parse().unwrap());
            assert_eq!(ALL * inside * of % (all * most), 0, "{}", vector.id);
            ALL * inside * of / (all * most)
        });
        demand - std::mem::replace(&mut before, demand)
    };
    vector.tiers.iter().zip(caps).map(cpu).collect()
}

fn endpoints(vector: &Shares) -> Vec<Ep> {
    let mut endpoints = Vec::new();
    for (tier, (ready, total)) in vector.tiers.iter().enumerate() {
        for number in 0..*total {
            let endpoint = crate::world::at([10, 244, u8::try_from(tier).unwrap(), number].into())
                .on(&format!("node-t{tier}"));
            endpoints.push(if number < *ready {
                endpoint
            } else {
                endpoint.unready()
            });
        }
    }
    // An endpoint outside of all levels: it must never be chosen.
    endpoints.push(ep(255).on("elsewhere"));
    endpoints
}

fn check(vector: &Shares) {
    let server = world(vector).server();
    let decision = server.decision;
    if vector.result == "none" {
        assert!(server.server.real_servers.is_empty());
        assert!(decision.refusal.is_some());
        return;
    }
    let weight_of = |tier: usize| {
        let key = format!("t{tier}");
        let of_tier = decision.endpoints.iter().filter(|endpoint| {
            endpoint
                .level
                .as_ref()
                .is_some_and(|level| level.to_string() == key)
                && endpoint.reason.code() != "NotReady"
        });
        let weights: Vec<u32> = of_tier.map(|endpoint| endpoint.weight).collect();
        assert!(
            weights.windows(2).all(|pair| pair[0] == pair[1]),
            "alike: {weights:?}"
        );
        weights.first().copied().unwrap_or(0)
    };
    let weights: Vec<u32> = (0..vector.tiers.len()).map(weight_of).collect();
    assert_eq!(weights, vector.per_endpoint_weight);
    let (stage, cycle) = decision.quantised.unwrap();
    assert_eq!(
        (stage.as_str(), cycle),
        (vector.stage.as_str(), vector.cycle)
    );
    for (level, (want, achieved)) in decision
        .levels
        .iter()
        .zip(vector.want.iter().zip(&vector.achieved_by_original_tier))
    {
        assert_percent(level.share.to_f64(), *want);
        assert_percent(level.achieved.to_f64(), *achieved);
    }
    let programmed: u64 = server
        .server
        .real_servers
        .iter()
        .map(|real| u64::from(real.weight))
        .sum();
    assert_eq!(
        programmed, vector.cycle,
        "weight 0 is not programmed, and nothing else is"
    );
}

/// The file has two decimals.
#[track_caller]
fn assert_percent(share: f64, percent: f64) {
    assert!(
        (share * 100.0 - percent).abs() < 0.006,
        "{share} is not {percent} %"
    );
}
