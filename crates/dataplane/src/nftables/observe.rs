//! Parses the output of `nft -j list table` and keeps what shows whether our table was changed.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{AddrParseError, IpAddr};

use serde_json::Value;

use super::family::TableFamily;
use super::table::{Rule, Set, Table};

/// One of our tables as the kernel holds it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ObservedTable {
    /// By kind and name: `set vips`.
    sets: BTreeMap<String, ObservedSet>,
    /// `type hook priority policy` (or nothing) and the comments of the rules, by chain.
    chains: BTreeMap<String, (String, Vec<String>)>,
}

/// A set or map as the kernel holds it.
#[derive(Debug, Default, PartialEq, Eq)]
struct ObservedSet {
    /// As [`KeyType::types`](super::sets::KeyType::types).
    types: Option<String>,
    /// Without `dynamic`.
    flags: BTreeSet<String>,
    /// In seconds.
    timeout: Option<u64>,
    elements: BTreeSet<String>,
}

impl ObservedSet {
    /// What nft lists after it has loaded the set.
    fn after(set: &Set, family: TableFamily) -> Self {
        let flags = set.key.flags().iter().copied();
        Self {
            types: set.key.types(family.addresses()),
            flags: flags.filter(is_compared).map(str::to_owned).collect(),
            timeout: set.key.timeout(),
            elements: set.elements.iter().map(ToString::to_string).collect(),
        }
    }

    fn parse(set: &Value) -> Self {
        let timeout = set.get("timeout").and_then(Value::as_u64);
        let flags = values(set, "flags").filter_map(Value::as_str);
        // Rules add the elements of a set with a timeout.
        let elements = values(set, "elem").filter(|_| timeout.is_none());
        Self {
            types: types(set),
            flags: flags.filter(is_compared).map(str::to_owned).collect(),
            timeout,
            elements: elements.map(element).collect(),
        }
    }
}

impl From<&Table> for ObservedTable {
    /// What nft lists after it has loaded the table.
    fn from(table: &Table) -> Self {
        let sets = table.sets.iter().map(|set| {
            let name = format!("{} {}", set.key.kind(), set.name);
            (name, ObservedSet::after(set, table.family))
        });
        let chains = table.chains.iter().map(|chain| {
            let hook = chain
                .hook
                .map(|h| hook_text(h.kind, h.point, i64::from(h.priority), "accept"));
            let comments = chain.rules.iter().map(Rule::comment).collect();
            (chain.name.to_owned(), (hook.unwrap_or_default(), comments))
        });
        Self {
            sets: sets.collect(),
            chains: chains.collect(),
        }
    }
}

impl ObservedTable {
    /// Parses nft's JSON (`libnftables-json(5)`). An unknown object makes the table differ from every desired one, so
    /// that it is replaced.
    pub(super) fn parse(json: &str) -> Result<Self, serde_json::Error> {
        let root: Value = serde_json::from_str(json)?;
        let mut table = Self::default();
        for object in root
            .get("nftables")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            if let Some(set) = object.get("set") {
                table.read_set("set", set);
            } else if let Some(map) = object.get("map") {
                table.read_set("map", map);
            } else if let Some(chain) = object.get("chain") {
                table.read_chain(chain);
            } else if let Some(rule) = object.get("rule") {
                table.read_rule(rule);
            } else if object.get("table").is_none() && object.get("metainfo").is_none() {
                // A counter, quota, ...: we create none, so another program changed the table.
                table
                    .sets
                    .insert(object.to_string(), ObservedSet::default());
            }
        }
        Ok(table)
    }

    fn read_set(&mut self, kind: &str, set: &Value) {
        let name = format!("{kind} {}", text(set, "name"));
        self.sets.insert(name, ObservedSet::parse(set));
    }

    fn read_chain(&mut self, chain: &Value) {
        let hook = chain.get("hook").map(|hook| {
            let priority = chain
                .get("prio")
                .and_then(Value::as_i64)
                .unwrap_or_default();
            let hook = hook.as_str().unwrap_or_default();
            hook_text(&text(chain, "type"), hook, priority, &text(chain, "policy"))
        });
        let entry = self.chains.entry(text(chain, "name")).or_default();
        entry.0 = hook.unwrap_or_default();
    }

    fn read_rule(&mut self, rule: &Value) {
        let entry = self.chains.entry(text(rule, "chain")).or_default();
        entry.1.push(text(rule, "comment"));
    }
}

fn text(object: &Value, field: &str) -> String {
    object
        .get(field)
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned()
}

/// The values of a field that is an array, or one value.
fn values<'a>(object: &'a Value, field: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    let value = object.get(field);
    let one = value.filter(|value| !value.is_array());
    let array = value.and_then(Value::as_array).into_iter().flatten();
    array.chain(one)
}

/// nft 1.0.6 does not list the flag `dynamic`.
fn is_compared(flag: &&str) -> bool {
    *flag != "dynamic"
}

/// The types of a set or map; `None` if it was declared with `typeof`. For such a key nft lists `integer`, which cannot
/// be declared, or the expression.
fn types(set: &Value) -> Option<String> {
    let keys: Option<Vec<&str>> = values(set, "type").map(Value::as_str).collect();
    let keys = keys.filter(|keys| *keys != ["integer"])?.join(" . ");
    Some(match text(set, "map") {
        data if data.is_empty() => keys,
        data => format!("{keys} : {data}"),
    })
}

fn hook_text(kind: &str, hook: &str, priority: i64, policy: &str) -> String {
    format!("{kind} {hook} {priority} {policy}")
}

/// A set element in the notation of [`super::sets::Element`].
fn element(value: &Value) -> String {
    // An element of a map: its key and a mark.
    if let Some([key, mark]) = value.as_array().map(Vec::as_slice) {
        let mark = mark.as_u64().map(|mark| format!("{mark:#010x}"));
        return format!("{} : {}", element(key), mark.unwrap_or_default());
    }
    if let Some(text) = value.as_str() {
        // Parses and prints an address, so that both sides have the same notation.
        return text
            .parse::<IpAddr>()
            .map_or_else(|_: AddrParseError| text.to_owned(), |ip| ip.to_string());
    }
    if let Some(prefix) = value.get("prefix") {
        let length = prefix
            .get("len")
            .and_then(Value::as_u64)
            .unwrap_or_default();
        return format!("{}/{length}", text(prefix, "addr"));
    }
    if let Some(parts) = value.get("concat").and_then(Value::as_array) {
        let parts: Vec<_> = parts.iter().map(element).collect();
        return parts.join(" . ");
    }
    value.to_string()
}
