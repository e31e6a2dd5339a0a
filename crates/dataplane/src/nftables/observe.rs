//! Reads one of our tables over netlink, and keeps what shows whether it was changed.
//!
//! `nft` would read the whole ruleset with all elements for it, and versions of `nft` list the same table in different
//! ways.

use std::borrow::Cow;
use std::collections::BTreeMap;

use netlink_pipeline::{
    AttributeValue as _, Connection, DecodeError, Error, NetlinkProtocol, NetworkU32, Options,
    Request, Writer, require,
};
use topology_core::model::Family;

use super::elements::name_table;
use super::family::TableFamily;
use super::observed_elements::{ElementBytes, HEADER, loaded, read};
use super::sets::{KeyType, SetId};
use super::table::{Chain, Hook, Rule, Set, TABLE, Table};
use super::wire::{
    ChainAttributes, ObjectAttributes, RuleAttributes, SetAttributes, TableAttributes,
};

/// Messages of the subsystem `NFNL_SUBSYS_NFTABLES`: `NFT_MSG_GETTABLE` and so on.
const GET_TABLE: u16 = 0x0a01;
const GET_CHAIN: u16 = 0x0a04;
const GET_RULE: u16 = 0x0a07;
const GET_SET: u16 = 0x0a0a;
const GET_OBJECT: u16 = 0x0a13;
const GET_FLOW_TABLE: u16 = 0x0a17;

/// `NFT_SET_ANONYMOUS`: a set in a rule, which the rule's comment covers.
const ANONYMOUS: u32 = 0x1;
const INTERVAL: u32 = 0x4;
const MAP: u32 = 0x8;
const TIMEOUT: u32 = 0x10;
/// `NFT_SET_EVAL`, the flag `dynamic` of nft.
const DYNAMIC: u32 = 0x20;

/// `NF_ACCEPT` of `include/uapi/linux/netfilter.h`.
const ACCEPT: u32 = 1;
/// `NFTNL_UDATA_RULE_COMMENT` of libnftnl: the type of a comment in a rule's user data.
const COMMENT: u8 = 0;

/// Types of data, as nft numbers them (`enum datatypes` in `include/datatype.h` of nftables). The kernel only keeps them.
mod data_type {
    pub(super) const INTEGER: u32 = 4;
    pub(super) const IPV4_ADDRESS: u32 = 7;
    pub(super) const IPV6_ADDRESS: u32 = 8;
    pub(super) const PROTOCOL: u32 = 12;
    pub(super) const PORT: u32 = 13;
    pub(super) const MARK: u32 = 19;
    pub(super) const LINK: u32 = 20;
    /// Bits of each type in the number of a concatenation.
    pub(super) const BITS: u32 = 6;
}

/// One of our tables as the kernel holds it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ObservedTable {
    /// `NFTA_TABLE_FLAGS`: not 0 if the table is dormant or has an owner.
    flags: u32,
    /// Sets and maps by name.
    sets: BTreeMap<String, ObservedSet>,
    chains: BTreeMap<String, ObservedChain>,
    /// Whether it has a counter, quota, ...: we create none, so another program changed the table.
    has_other_objects: bool,
}

/// A set or map as the kernel holds it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ObservedSet {
    flags: u32,
    key: ValueType,
    /// Of the values of a map; 0 and 0 for a set.
    value: ValueType,
    /// In milliseconds; 0 without.
    timeout: u64,
    /// Empty if the set has a timeout: rules add its elements.
    elements: Vec<ElementBytes>,
}

/// Number and length of a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ValueType {
    number: u32,
    /// In bytes.
    length: u32,
}

/// A chain as the kernel holds it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct ObservedChain {
    hook: Option<ObservedHook>,
    /// The comments of its rules.
    comments: Vec<String>,
}

/// The hook of a base chain.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ObservedHook {
    kind: String,
    number: u32,
    priority: i32,
    policy: u32,
}

impl ValueType {
    /// The type of a concatenation: each value is padded to four bytes.
    fn of(parts: &[(u32, u32)]) -> Self {
        let number = |all: u32, part: &(u32, u32)| all << data_type::BITS | part.0;
        Self {
            number: parts.iter().fold(0, number),
            length: parts.iter().map(|part| part.1.next_multiple_of(4)).sum(),
        }
    }
}

/// The types of the keys of a set, and of a map's values.
fn types(key: KeyType, family: Family) -> [ValueType; 2] {
    use data_type::{INTEGER, IPV4_ADDRESS, IPV6_ADDRESS, LINK, MARK, PORT, PROTOCOL};
    let address = match family {
        Family::V4 => (IPV4_ADDRESS, 4),
        Family::V6 => (IPV6_ADDRESS, 16),
    };
    let listener = [address, (PROTOCOL, 1), (PORT, 2)];
    let mark: &[(u32, u32)] = &[(MARK, 4)];
    let [protocol, port] = [listener[1], listener[2]];
    match key {
        KeyType::Range | KeyType::Address => [ValueType::of(&[address]), ValueType::of(&[])],
        KeyType::Pair => [ValueType::of(&[address, address]), ValueType::of(&[])],
        KeyType::Listener => [ValueType::of(&listener), ValueType::of(&[])],
        KeyType::SourceRange => [
            ValueType::of(&[address, protocol, port, address]),
            ValueType::of(&[]),
        ],
        KeyType::Mark => [ValueType::of(&listener), ValueType::of(mark)],
        KeyType::Saved => [ValueType::of(&[(INTEGER, 4)]), ValueType::of(mark)],
        KeyType::Links => [ValueType::of(&[(LINK, 4), (LINK, 4)]), ValueType::of(&[])],
    }
}

const fn flags(key: KeyType) -> u32 {
    match key {
        KeyType::Range => INTERVAL,
        KeyType::Mark => MAP,
        KeyType::Saved => MAP | TIMEOUT | DYNAMIC,
        KeyType::Links => TIMEOUT | DYNAMIC,
        KeyType::Address | KeyType::Pair | KeyType::Listener | KeyType::SourceRange => 0,
    }
}

impl ObservedSet {
    /// What the kernel holds after nft has loaded the set.
    fn after(set: &Set, family: TableFamily) -> Self {
        let [key, value] = types(set.key, family.addresses());
        Self {
            flags: flags(set.key),
            key,
            value,
            timeout: set.key.timeout().map_or(0, |seconds| seconds * 1_000),
            elements: loaded(&set.elements, set.key.is_interval()),
        }
    }

    fn parse(set: &SetAttributes<'_>) -> Self {
        let value = |number, length| ValueType {
            number: or_zero(number),
            length: or_zero(length),
        };
        Self {
            flags: or_zero(set.flags),
            key: value(set.key_type, set.key_length),
            value: value(set.data_type, set.data_length),
            timeout: set.timeout.map_or(0, |timeout| timeout.0),
            elements: Vec::new(),
        }
    }
}

impl ObservedHook {
    fn after(hook: Hook, family: TableFamily) -> Self {
        Self {
            kind: hook.kind.to_owned(),
            number: hook_number(hook.point, family),
            priority: hook.priority,
            policy: ACCEPT,
        }
    }

    fn parse(chain: &ChainAttributes<'_>) -> Option<Self> {
        let hook = chain.hook.as_ref()?;
        Some(Self {
            kind: chain.kind.as_deref().unwrap_or_default().to_owned(),
            number: or_zero(hook.number),
            priority: or_zero(hook.priority).cast_signed(),
            policy: or_zero(chain.policy),
        })
    }
}

impl ObservedChain {
    fn after(chain: &Chain, family: TableFamily) -> Self {
        Self {
            hook: chain.hook.map(|hook| ObservedHook::after(hook, family)),
            comments: chain.rules.iter().map(Rule::comment).collect(),
        }
    }
}

impl From<&Table> for ObservedTable {
    /// What the kernel holds after nft has loaded the table.
    fn from(table: &Table) -> Self {
        let family = table.family;
        let set = |set: &Set| (set.name.to_string(), ObservedSet::after(set, family));
        let chain = |chain: &Chain| {
            let name = chain.name.to_owned();
            (name, ObservedChain::after(chain, family))
        };
        Self {
            flags: 0,
            sets: table.sets.iter().map(set).collect(),
            chains: table.chains.iter().map(chain).collect(),
            has_other_objects: false,
        }
    }
}

impl ObservedTable {
    /// The prefix lengths for which it has a set of source ranges.
    pub(super) fn lengths(&self) -> impl Iterator<Item = u8> {
        let source_ranges = SetId::SourceRanges.row().name;
        let names = self.sets.keys();
        names.filter_map(move |name| {
            let length = name.strip_prefix(source_ranges)?.strip_prefix('-')?;
            length.parse().ok()
        })
    }

    /// Reads the table of a family in the current network namespace; `None` if it does not exist.
    pub(super) fn read(family: TableFamily) -> Result<Option<Self>, Error> {
        let mut reader = Reader {
            connection: Connection::open(NetlinkProtocol::NETFILTER, &Options::default())?,
            family,
        };
        let tables = reader.objects(GET_TABLE, parse_table)?;
        let Some(&flags) = tables.first() else {
            return Ok(None);
        };
        let mut table = Self {
            flags,
            ..Self::default()
        };
        table.sets.extend(reader.objects(GET_SET, parse_set)?);
        table.chains.extend(reader.objects(GET_CHAIN, parse_chain)?);
        for (chain, comment) in reader.objects(GET_RULE, parse_rule)? {
            table
                .chains
                .entry(chain)
                .or_default()
                .comments
                .push(comment);
        }
        for kind in [GET_OBJECT, GET_FLOW_TABLE] {
            table.has_other_objects |= !reader.objects(kind, parse_object)?.is_empty();
        }
        for (name, set) in table.sets.iter_mut().filter(|(_, set)| set.timeout == 0) {
            let is_interval = set.flags & INTERVAL != 0;
            set.elements = read(&mut reader.connection, family, name, is_interval)?;
        }
        Ok(Some(table))
    }
}

/// Reads the objects of our table in one family.
struct Reader {
    connection: Connection,
    family: TableFamily,
}

impl Reader {
    /// The objects of a kind; `parse` returns `None` for those of other tables.
    fn objects<T>(
        &mut self,
        kind: u16,
        parse: fn(&[u8]) -> Result<Option<T>, DecodeError>,
    ) -> Result<Vec<T>, Error> {
        let mut request = Vec::new();
        name_table(&mut Writer::new(&mut request), self.family);
        self.connection
            .dump(Request::new(kind, 0), &request, |message| {
                parse(message.payload.get(HEADER..).unwrap_or_default())
            })
    }
}

fn is_ours(table: Option<&Cow<'_, str>>) -> bool {
    table.is_some_and(|table| table == TABLE)
}

fn parse_table(attributes: &[u8]) -> Result<Option<u32>, DecodeError> {
    let table = TableAttributes::read(attributes, "a table")?;
    Ok(is_ours(table.name.as_ref()).then(|| or_zero(table.flags)))
}

fn parse_set(attributes: &[u8]) -> Result<Option<(String, ObservedSet)>, DecodeError> {
    let set = SetAttributes::read(attributes, "a set")?;
    if !is_ours(set.table.as_ref()) || or_zero(set.flags) & ANONYMOUS != 0 {
        return Ok(None);
    }
    let observed = ObservedSet::parse(&set);
    let name = require(set.name, "NFTA_SET_NAME")?.into_owned();
    Ok(Some((name, observed)))
}

fn parse_chain(attributes: &[u8]) -> Result<Option<(String, ObservedChain)>, DecodeError> {
    let chain = ChainAttributes::read(attributes, "a chain")?;
    if !is_ours(chain.table.as_ref()) {
        return Ok(None);
    }
    let observed = ObservedChain {
        hook: ObservedHook::parse(&chain),
        comments: Vec::new(),
    };
    let name = require(chain.name, "NFTA_CHAIN_NAME")?.into_owned();
    Ok(Some((name, observed)))
}

/// The chain and the comment of a rule.
fn parse_rule(attributes: &[u8]) -> Result<Option<(String, String)>, DecodeError> {
    let rule = RuleAttributes::read(attributes, "a rule")?;
    if !is_ours(rule.table.as_ref()) {
        return Ok(None);
    }
    let comment = rule.user_data.and_then(|data| comment(data.0));
    let chain = require(rule.chain, "NFTA_RULE_CHAIN")?.into_owned();
    Ok(Some((chain, comment.unwrap_or_default())))
}

fn parse_object(attributes: &[u8]) -> Result<Option<()>, DecodeError> {
    let object = ObjectAttributes::read(attributes, "an object")?;
    Ok(is_ours(object.table.as_ref()).then_some(()))
}

/// The comment in a rule's user data: fields of a byte for the type, a byte for the length, and the value.
fn comment(mut data: &[u8]) -> Option<String> {
    loop {
        let (&[kind, length], rest) = data.split_first_chunk::<2>()?;
        let (value, rest) = rest.split_at_checked(length.into())?;
        if kind == COMMENT {
            let text = value.strip_suffix(&[0]).unwrap_or(value);
            return Some(String::from_utf8_lossy(text).into_owned());
        }
        data = rest;
    }
}

fn or_zero(number: Option<NetworkU32>) -> u32 {
    number.map_or(0, |number| number.0)
}

/// `NF_INET_*` and `NF_ARP_*` of `include/uapi/linux/netfilter.h` and `netfilter_arp.h`.
fn hook_number(point: &str, family: TableFamily) -> u32 {
    match (family, point) {
        (TableFamily::Arp, _) | (_, "prerouting") => 0,
        (_, "input") => 1,
        (_, "forward") => 2,
        (_, "output") => 3,
        _ => 4,
    }
}

/// Parses arbitrary bytes as objects of our table.
#[cfg(fuzzing)]
pub(super) fn fuzz(attributes: &[u8]) {
    let _parsed = [
        parse_table(attributes).map(|table| table.is_some()),
        parse_set(attributes).map(|set| set.is_some()),
        parse_chain(attributes).map(|chain| chain.is_some()),
        parse_rule(attributes).map(|rule| rule.is_some()),
        parse_object(attributes).map(|object| object.is_some()),
    ];
}

#[cfg(test)]
mod tests {
    use super::super::SetId;
    use super::super::desired::DesiredTables;
    use super::super::sets::Element;
    use super::super::wire::*;
    use super::*;

    /// What the kernel sends about a table, apart from the elements of its sets.
    #[derive(Debug, Clone, Default)]
    struct Messages {
        tables: Vec<Vec<u8>>,
        sets: Vec<Vec<u8>>,
        chains: Vec<Vec<u8>>,
        rules: Vec<Vec<u8>>,
    }

    fn attributes(fill: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
        let mut bytes = Vec::new();
        fill(&mut Writer::new(&mut bytes));
        bytes
    }

    fn number(out: &mut Writer<'_>, kind: u16, number: u32) {
        out.fixed(kind, number.to_be_bytes());
    }

    fn set(name: &str, flags: u32, key: (u32, u32), value: (u32, u32), timeout: u64) -> Vec<u8> {
        attributes(|out| {
            out.text(NFTA_SET_TABLE, TABLE);
            out.text(NFTA_SET_NAME, name);
            number(out, NFTA_SET_FLAGS, flags);
            number(out, NFTA_SET_KEY_TYPE, key.0);
            number(out, NFTA_SET_KEY_LEN, key.1);
            if flags & MAP != 0 {
                number(out, NFTA_SET_DATA_TYPE, value.0);
                number(out, NFTA_SET_DATA_LEN, value.1);
            }
            if timeout != 0 {
                out.fixed(NFTA_SET_TIMEOUT, timeout.to_be_bytes());
            }
        })
    }

    fn chain(name: &str, kind: &str, hook: u32, priority: i32, policy: u32) -> Vec<u8> {
        attributes(|out| {
            out.text(NFTA_CHAIN_TABLE, TABLE);
            out.text(NFTA_CHAIN_NAME, name);
            out.nested(NFTA_CHAIN_HOOK, |out| {
                number(out, NFTA_HOOK_HOOKNUM, hook);
                number(out, NFTA_HOOK_PRIORITY, priority.cast_unsigned());
            });
            number(out, NFTA_CHAIN_POLICY, policy);
            out.text(NFTA_CHAIN_TYPE, kind);
        })
    }

    fn rule(chain: &str, comment: &str) -> Vec<u8> {
        let length = u8::try_from(comment.len() + 1).unwrap();
        // Another field comes first.
        let data = [&[7, 1, 9, COMMENT, length][..], comment.as_bytes(), &[0]].concat();
        attributes(|out| {
            out.text(NFTA_RULE_TABLE, TABLE);
            out.text(NFTA_RULE_CHAIN, chain);
            out.attribute(NFTA_RULE_USERDATA, &data);
        })
    }

    fn read(messages: &Messages) -> ObservedTable {
        let mut table = ObservedTable::default();
        for message in &messages.tables {
            table.flags |= parse_table(message).unwrap().unwrap();
        }
        let sets = messages.sets.iter();
        table
            .sets
            .extend(sets.filter_map(|set| parse_set(set).unwrap()));
        let chains = messages.chains.iter();
        table
            .chains
            .extend(chains.filter_map(|chain| parse_chain(chain).unwrap()));
        for message in &messages.rules {
            let (chain, comment) = parse_rule(message).unwrap().unwrap();
            table
                .chains
                .entry(chain)
                .or_default()
                .comments
                .push(comment);
        }
        table
    }

    /// The `arp` table: it has few objects.
    fn desired() -> Table {
        let ip = |text: &str| text.parse().unwrap();
        let tables =
            DesiredTables::default().with(SetId::Vips, [Element::Address(ip("203.0.113.7"))]);
        let mut table = tables.table(TableFamily::Arp).unwrap();
        for set in &mut table.sets {
            set.elements.clear();
        }
        table
    }

    fn listed() -> Messages {
        let table = desired();
        let chain_of_table = &table.chains[0];
        let comments = chain_of_table.rules.iter().map(Rule::comment);
        Messages {
            tables: vec![attributes(|out| {
                out.text(NFTA_TABLE_NAME, TABLE);
                number(out, NFTA_TABLE_FLAGS, 0);
            })],
            sets: vec![
                set("cidrs", INTERVAL, (7, 4), (0, 0), 0),
                set("vips", 0, (7, 4), (0, 0), 0),
                set("own", 0, (7, 4), (0, 0), 0),
                set("__set0", ANONYMOUS | 2, (7, 4), (0, 0), 0),
            ],
            chains: vec![chain("input", "filter", 0, 0, ACCEPT)],
            rules: comments.map(|comment| rule("input", &comment)).collect(),
        }
    }

    #[test]
    fn what_the_kernel_sends_equals_the_desired_table() {
        assert_eq!(read(&listed()), ObservedTable::from(&desired()));
    }

    #[test]
    fn pain_44_every_kind_of_tampering_makes_the_table_differ() {
        type Change = fn(&mut Messages);
        let changes: [(&str, Change); 14] = [
            ("dormant", |all| {
                all.tables = vec![attributes(|out| {
                    out.text(NFTA_TABLE_NAME, TABLE);
                    number(out, NFTA_TABLE_FLAGS, 1);
                })];
            }),
            ("another name of a set", |all| {
                all.sets[1] = set("vipz", 0, (7, 4), (0, 0), 0);
            }),
            ("no set", |all| drop(all.sets.remove(1))),
            ("a map", |all| {
                all.sets[1] = set("vips", MAP, (7, 4), (19, 4), 0);
            }),
            ("another type", |all| {
                all.sets[1] = set("vips", 0, (8, 4), (0, 0), 0);
            }),
            ("another length", |all| {
                all.sets[1] = set("vips", 0, (7, 16), (0, 0), 0);
            }),
            ("no intervals", |all| {
                all.sets[0] = set("cidrs", 0, (7, 4), (0, 0), 0);
            }),
            ("a timeout", |all| {
                all.sets[1] = set("vips", 0, (7, 4), (0, 0), 1_000);
            }),
            ("another type of chain", |all| {
                all.chains[0] = chain("input", "nat", 0, 0, ACCEPT);
            }),
            ("another hook", |all| {
                all.chains[0] = chain("input", "filter", 1, 0, ACCEPT);
            }),
            ("another priority", |all| {
                all.chains[0] = chain("input", "filter", 0, -1, ACCEPT);
            }),
            ("another policy", |all| {
                all.chains[0] = chain("input", "filter", 0, 0, 0);
            }),
            ("another rule", |all| all.rules[0] = rule("input", "mine")),
            ("another order of rules", |all| all.rules.reverse()),
        ];
        let target = ObservedTable::from(&desired());
        for (what, change) in changes {
            let mut messages = listed();
            change(&mut messages);
            assert_ne!(read(&messages), target, "{what}");
        }
    }

    #[test]
    fn objects_of_other_tables_are_ignored_and_a_rule_may_have_no_comment() {
        let other = attributes(|out| out.text(NFTA_OBJ_TABLE, "kube-proxy"));
        assert_eq!(parse_table(&other), Ok(None));
        assert_eq!(parse_set(&other), Ok(None));
        assert_eq!(parse_chain(&other), Ok(None));
        assert_eq!(parse_rule(&other), Ok(None));
        assert_eq!(parse_object(&other), Ok(None));
        let ours = attributes(|out| out.text(NFTA_OBJ_TABLE, TABLE));
        assert_eq!(parse_object(&ours), Ok(Some(())));
        assert!(parse_set(&ours).is_err(), "a set without a name");
        let plain = attributes(|out| {
            out.text(NFTA_RULE_TABLE, TABLE);
            out.text(NFTA_RULE_CHAIN, "input");
        });
        let chain = "input".to_owned();
        assert_eq!(parse_rule(&plain), Ok(Some((chain, String::new()))));
        for data in [&[][..], &[0], &[0, 9, b'a'], &[3, 0]] {
            assert_eq!(comment(data), None, "{data:?}");
        }
    }

    /// The types of concatenations, as `nft --debug=netlink` shows them.
    #[test]
    fn concatenations_have_the_numbers_of_nft() {
        let listener = types(KeyType::Listener, Family::V4)[0];
        assert_eq!((listener.number, listener.length), (29_453, 12));
        let ranges = types(KeyType::SourceRange, Family::V6)[0];
        assert_eq!((ranges.number, ranges.length), (2_147_144, 40));
    }
}
