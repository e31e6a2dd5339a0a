//! Vectors Q: from endpoints in tiers to weights, through the whole engine.

use topology_core::policy::EmptyTier;

use crate::vectors::{Shares, each_vector, shares};
use crate::world::{Ep, World, ep, weighted};

each_vector!(shares, check, later: ["minready", "minpct", "ovp", "cap"], [
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
]);

/// Every tier is a level of its own: the label `t0`, `t1` ... with a node that shares it with ours.
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
    let mine: Vec<(&str, &str)> = keys.iter().map(|key| (key.as_str(), "here")).collect();
    let mut world = World::new("me").node("me", &mine).policy(policy);
    for key in &keys {
        world = world.node(&format!("node-{key}"), &[(key, "here")]);
    }
    world.endpoints(endpoints(vector))
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
    // One that belongs nowhere: it must never be chosen.
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
    assert_eq!((stage.word(), cycle), (vector.stage.as_str(), vector.cycle));
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

/// The file gives two decimals.
#[track_caller]
fn assert_percent(share: f64, percent: f64) {
    assert!(
        (share * 100.0 - percent).abs() < 0.006,
        "{share} is not {percent} %"
    );
}
