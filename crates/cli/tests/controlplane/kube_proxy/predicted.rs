//! kube-proxy's table by its documented rules: the reviewed differences explain everything that these predict. This needs
//! no guest, so a change of ours that makes another difference shows at once.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::compare::{cluster, compare};
use super::differences::Difference;
use super::explain::Comparison;
use super::facts::{Claim, Facts, Kind};
use super::table::{Entry, Table};

const CLUSTERS: u64 = 300;

/// KP-VS-01 to KP-VS-04, KP-VS-22, KP-TP-06, KP-TP-07. Of two Services with one address the last one wins (KP-SY-18).
fn table(facts: &Facts) -> Table {
    let claims = facts.all_claims();
    claims
        .map(|(key, claim)| {
            let reals = endpoints(facts, &key, claim).into_iter();
            let entry = Entry {
                scheduler: "rr".to_owned(),
                options: persistence(claim),
                reals: reals.map(|real| (real, "-m -w 1".to_owned())).collect(),
            };
            (key, entry)
        })
        .collect()
}

fn endpoints(facts: &Facts, key: &str, claim: Claim<'_>) -> Vec<String> {
    let lists = facts.lists(claim, key.contains('['));
    let field = match claim.kind {
        Kind::ClusterIp => "internalTrafficPolicy",
        Kind::NodePort | Kind::ExternalIp | Kind::LoadBalancer => "externalTrafficPolicy",
    };
    let has_cluster_list = !claim.is_local("internalTrafficPolicy") || claim.is_external();
    let chosen = if claim.is_local(field) && !(lists.local.is_empty() && has_cluster_list) {
        lists.local
    } else {
        lists.cluster
    };
    chosen.into_iter().collect()
}

fn persistence(claim: Claim<'_>) -> String {
    let spec = &claim.service["spec"];
    let seconds = spec.pointer("/sessionAffinityConfig/clientIP/timeoutSeconds");
    match (spec["sessionAffinity"].as_str(), seconds) {
        (Some("ClientIP"), Some(seconds)) => format!("-p {seconds}"),
        _ => String::new(),
    }
}

#[test]
fn the_documented_rules_of_kube_proxy_predict_no_difference_that_is_not_reviewed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cluster.json");
    let mut seen = BTreeMap::new();
    for seed in 0..CLUSTERS {
        let items: Vec<Value> = cluster(seed)
            .into_iter()
            .map(|(_, object)| object)
            .collect();
        let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
        let mut comparison = Comparison::default();
        compare(&mut comparison, &path, &list, &table(&Facts::of(&list)));
        let unexplained = comparison.unexplained.join("\n");
        assert!(unexplained.is_empty(), "cluster {seed}:\n{unexplained}");
        for (difference, times) in comparison.seen {
            *seen.entry(difference).or_insert(0) += times;
        }
    }
    for difference in Difference::ALL {
        assert!(seen.contains_key(&difference), "{difference:?}: {seen:?}");
    }
}
