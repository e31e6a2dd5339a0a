//! Tables, chains, rules, sets and transactions as values that print in nft's notation.
//!
//! Every rule has a comment that ends in a hash of the rule's text. So the comments alone show whether a table that is
//! read back has our rules in this version, even if the installed nft prints expressions differently.

use std::fmt;

use topology_core::model::Family;

use super::sets::{Element, KeyType};
use crate::hash::fnv1a;

/// The name of our table in each family. It identifies us as the owner.
pub const TABLE: &str = "ipvs-topo";

/// The nftables families that have one of our tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TableFamily {
    /// IPv4 packets.
    Ip,
    /// IPv6 packets.
    Ip6,
    /// ARP requests and replies for IPv4 addresses.
    Arp,
}

impl TableFamily {
    pub const ALL: [Self; 3] = [Self::Ip, Self::Ip6, Self::Arp];

    /// The family in nft's notation.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ip => "ip",
            Self::Ip6 => "ip6",
            Self::Arp => "arp",
        }
    }

    /// The address family of the elements of its sets.
    pub(super) fn addresses(self) -> Family {
        match self {
            Self::Ip | Self::Arp => Family::V4,
            Self::Ip6 => Family::V6,
        }
    }
}

/// A whole table.
pub(super) struct Table {
    pub(super) family: TableFamily,
    pub(super) sets: Vec<Set>,
    pub(super) chains: Vec<Chain>,
}

/// A set and its elements.
pub(super) struct Set {
    pub(super) name: &'static str,
    pub(super) key: KeyType,
    pub(super) elements: Vec<Element>,
}

/// A chain and its rules.
pub(super) struct Chain {
    pub(super) name: &'static str,
    /// `None` for a chain that is a jump target.
    pub(super) hook: Option<Hook>,
    pub(super) rules: Vec<Rule>,
}

/// The hook of a base chain.
#[derive(Clone, Copy)]
pub(super) struct Hook {
    pub(super) kind: &'static str,
    pub(super) point: &'static str,
    pub(super) priority: i32,
}

/// A rule, and an explanation for operators who list the table.
pub(super) struct Rule {
    text: String,
    about: &'static str,
}

impl Rule {
    pub(super) fn new(text: impl Into<String>, about: &'static str) -> Self {
        let text = text.into();
        Self { text, about }
    }

    /// `about [hash of the text]`.
    pub(super) fn comment(&self) -> String {
        format!("{} [{:08x}]", self.about, fnv1a(&self.text))
    }
}

/// A line or block of a transaction.
pub(super) enum Operation {
    /// Adds the table first, so that the deletion cannot fail.
    DeleteTable(TableFamily),
    DefineTable(Table),
    AddElements(TableFamily, &'static str, Vec<Element>),
    DeleteElements(TableFamily, &'static str, Vec<Element>),
}

/// Operations that nft carries out together or not at all.
pub(super) struct Transaction(pub(super) Vec<Operation>);

impl fmt::Display for Transaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|operation| operation.fmt(f))
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut change = |verb: &str, family: &TableFamily, set: &str, elements: &[Element]| {
            write!(f, "{verb} element {} {TABLE} {set} ", family.as_str())?;
            writeln!(f, "{{ {} }}", Joined(elements))
        };
        match self {
            Self::DeleteTable(family) => {
                let family = family.as_str();
                write!(
                    f,
                    "add table {family} {TABLE}\ndelete table {family} {TABLE}\n"
                )
            }
            Self::DefineTable(table) => table.fmt(f),
            Self::AddElements(family, set, elements) => change("add", family, set, elements),
            Self::DeleteElements(family, set, elements) => change("delete", family, set, elements),
        }
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "table {} {TABLE} {{", self.family.as_str())?;
        for set in &self.sets {
            let declaration = set.key.declaration(self.family.addresses());
            writeln!(f, "\tset {} {{\n\t\t{declaration}", set.name)?;
            if !set.elements.is_empty() {
                writeln!(f, "\t\telements = {{ {} }}", Joined(&set.elements))?;
            }
            f.write_str("\t}\n")?;
        }
        self.chains.iter().try_for_each(|chain| chain.fmt(f))?;
        f.write_str("}\n")
    }
}

impl fmt::Display for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\tchain {} {{", self.name)?;
        if let Some(hook) = self.hook {
            let Hook {
                kind,
                point,
                priority,
            } = hook;
            writeln!(
                f,
                "\t\ttype {kind} hook {point} priority {priority}; policy accept;"
            )?;
        }
        for rule in &self.rules {
            writeln!(f, "\t\t{} comment \"{}\"", rule.text, rule.comment())?;
        }
        f.write_str("\t}\n")
    }
}

/// Elements separated by commas.
struct Joined<'a>(&'a [Element]);

impl fmt::Display for Joined<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (nth, element) in self.0.iter().enumerate() {
            let comma = if nth == 0 { "" } else { ", " };
            write!(f, "{comma}{element}")?;
        }
        Ok(())
    }
}
