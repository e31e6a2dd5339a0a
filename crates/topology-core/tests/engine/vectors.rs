//! The vectors of `tests/vectors`, with a test for each by name.

use serde::Deserialize;

/// A case of `shares.json`: tiers from near to far, and the expected weights.
#[derive(Deserialize)]
pub(crate) struct Shares {
    pub(crate) id: String,
    pub(crate) desc: String,
    /// Ready and total endpoints of each tier.
    pub(crate) tiers: Vec<(u8, u8)>,
    pub(crate) weights: Vec<u32>,
    pub(crate) opts: serde_json::Map<String, serde_json::Value>,
    /// `none` if no endpoint can be used.
    pub(crate) result: String,
    /// Shares in percent.
    #[serde(default)]
    pub(crate) want: Vec<f64>,
    #[serde(default)]
    pub(crate) per_endpoint_weight: Vec<u32>,
    #[serde(default)]
    pub(crate) achieved_by_original_tier: Vec<f64>,
    #[serde(default)]
    pub(crate) stage: String,
    #[serde(default)]
    pub(crate) cycle: u64,
}

/// A case of `labels.json`: a Node and a policy in the fixture, and the expected weights.
#[derive(Deserialize)]
pub(crate) struct Labels {
    pub(crate) id: String,
    pub(crate) desc: String,
    pub(crate) node: String,
    pub(crate) levels: Vec<(String, u32)>,
    pub(crate) opts: serde_json::Map<String, serde_json::Value>,
    /// `None`: clients are refused.
    pub(crate) weights: Option<std::collections::BTreeMap<String, u32>>,
}

pub(crate) fn shares() -> Vec<Shares> {
    serde_json::from_str(include_str!("../vectors/shares.json")).unwrap()
}

pub(crate) fn labels() -> Vec<Labels> {
    serde_json::from_str(include_str!("../vectors/labels.json")).unwrap()
}

/// Defines a test for each vector, and one that finds vectors without a test.
macro_rules! each_vector {
    ($load:path, $check:path, [$($test:ident = $id:literal),* $(,)?]) => {
        $(
            #[test]
            fn $test() {
                let vectors = $load();
                let vector = vectors.iter().find(|vector| vector.id == $id);
                $check(vector.expect("the file holds the vector"));
            }
        )*

        #[test]
        fn every_vector_is_named() {
            let named = [$($id),*];
            for vector in $load() {
                let is_named = named.contains(&vector.id.as_str());
                assert!(is_named, "{}: {}", vector.id, vector.desc);
            }
        }
    };
}
pub(crate) use each_vector;
