//! Parses the output of `nft -j -t list table`, which has no elements, and keeps what shows whether our table was changed.

use std::collections::{BTreeMap, BTreeSet};

use netlink_pipeline::{Connection, Error, NetlinkProtocol, Options};
use serde_json::Value;

use super::family::TableFamily;
use super::observed_elements::{ElementBytes, loaded, read};
use super::table::{Rule, Set, Table};

/// One of our tables as the kernel holds it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ObservedTable {
    /// Sets and maps by name.
    sets: BTreeMap<String, ObservedSet>,
    /// `type hook priority policy` (or nothing) and the comments of the rules, by chain.
    chains: BTreeMap<String, (String, Vec<String>)>,
    /// Whether it has a counter, quota, ...: we create none, so another program changed the table.
    has_other_objects: bool,
}

/// A set or map as the kernel holds it.
#[derive(Debug, PartialEq, Eq)]
struct ObservedSet {
    /// As [`KeyType::kind`](super::sets::KeyType::kind).
    kind: &'static str,
    /// As [`KeyType::types`](super::sets::KeyType::types).
    types: Option<String>,
    /// Without `dynamic`.
    flags: BTreeSet<String>,
    /// In seconds.
    timeout: Option<u64>,
    /// Empty if the set has a timeout: rules add its elements.
    elements: Vec<ElementBytes>,
}

impl ObservedSet {
    /// What nft lists after it has loaded the set.
    fn after(set: &Set, family: TableFamily) -> Self {
        let flags = set.key.flags().iter().copied();
        Self {
            kind: set.key.kind(),
            types: set.key.types(family.addresses()),
            flags: flags.filter(is_compared).map(str::to_owned).collect(),
            timeout: set.key.timeout(),
            elements: loaded(&set.elements, set.key.is_interval()),
        }
    }

    fn parse(kind: &'static str, set: &Value) -> Self {
        let flags = values(set, "flags").filter_map(Value::as_str);
        Self {
            kind,
            types: types(set),
            flags: flags.filter(is_compared).map(str::to_owned).collect(),
            timeout: set.get("timeout").and_then(Value::as_u64),
            elements: Vec::new(),
        }
    }

    fn is_interval(&self) -> bool {
        self.flags.contains("interval")
    }
}

impl From<&Table> for ObservedTable {
    /// What nft lists after it has loaded the table.
    fn from(table: &Table) -> Self {
        let after = |set: &Set| ObservedSet::after(set, table.family);
        let sets = table.sets.iter();
        let sets = sets.map(|set| (set.name.to_string(), after(set)));
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
            has_other_objects: false,
        }
    }
}

impl ObservedTable {
    /// Parses nft's JSON (`libnftables-json(5)`), and leaves the sets without elements. An unknown object makes the table
    /// differ from every desired one, so that it is replaced.
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
                table.has_other_objects = true;
            }
        }
        Ok(table)
    }

    /// Reads the elements of the sets over netlink, in the current network namespace.
    pub(super) fn read_elements(&mut self, family: TableFamily) -> Result<(), Error> {
        let mut connection = Connection::open(NetlinkProtocol::NETFILTER, &Options::default())?;
        let sets = self.sets.iter_mut();
        for (name, set) in sets.filter(|(_, set)| set.timeout.is_none()) {
            set.elements = read(&mut connection, family, name, set.is_interval())?;
        }
        Ok(())
    }

    fn read_set(&mut self, kind: &'static str, set: &Value) {
        self.sets
            .insert(text(set, "name"), ObservedSet::parse(kind, set));
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
