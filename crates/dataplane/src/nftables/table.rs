//! Tables, chains, rules, sets and transactions as values that print in nft's notation.
//!
//! Every rule has a comment that ends in a hash of the rule's text. So the comments alone show whether a table that is
//! read back has our rules in this version, even if the installed nft prints expressions differently.

use std::fmt;

use super::family::TableFamily;
use super::sets::{Element, KeyType, SetName};
use crate::hash::fnv1a;

/// The name of our table in each family. It identifies us as the owner.
pub const TABLE: &str = "ipvs-topo";

/// A whole table.
pub(super) struct Table {
    pub(super) family: TableFamily,
    pub(super) sets: Vec<Set>,
    pub(super) chains: Vec<Chain>,
}

/// A set or map and its elements.
pub(super) struct Set {
    pub(super) name: SetName,
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
    DefineSet(TableFamily, Set),
    /// Deletes a set that no rule uses.
    DeleteSet(TableFamily, SetName),
    /// Removes all elements of a set.
    FlushSet(TableFamily, SetName),
    /// Replaces the rules of a chain.
    ReplaceRules(TableFamily, Chain),
    AddElements(TableFamily, SetName, Vec<Element>),
    DeleteElements(TableFamily, SetName, Vec<Element>),
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
        let table = |family: &TableFamily| format!("{} {TABLE}", family.as_str());
        match self {
            Self::DeleteTable(family) => {
                let table = table(family);
                write!(f, "add table {table}\ndelete table {table}\n")
            }
            Self::DefineTable(table) => table.fmt(f),
            Self::DefineSet(family, set) => {
                let Set { name, key, .. } = set;
                let body = set.body(*family, " ");
                writeln!(f, "add {} {} {name} {{ {body}}}", key.kind(), table(family))
            }
            Self::DeleteSet(family, set) => writeln!(f, "delete set {} {set}", table(family)),
            Self::FlushSet(family, set) => writeln!(f, "flush set {} {set}", table(family)),
            Self::ReplaceRules(family, chain) => {
                let at = format!("{} {}", table(family), chain.name);
                writeln!(f, "flush chain {at}")?;
                let mut rules = chain.rules.iter();
                rules.try_for_each(|rule| writeln!(f, "add rule {at} {rule}"))
            }
            Self::AddElements(family, set, elements) => {
                let elements = Joined(elements);
                writeln!(f, "add element {} {set} {{ {elements} }}", table(family))
            }
            Self::DeleteElements(family, set, elements) => {
                let elements = Joined(elements);
                writeln!(f, "delete element {} {set} {{ {elements} }}", table(family))
            }
        }
    }
}

impl Set {
    /// Declaration and elements, each followed by `end`.
    fn body(&self, family: TableFamily, end: &str) -> String {
        let declaration = self.key.declaration(family.addresses());
        if self.elements.is_empty() {
            return format!("{declaration}{end}");
        }
        let elements = Joined(&self.elements);
        format!("{declaration}{end}elements = {{ {elements} }}{end}")
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "table {} {TABLE} {{", self.family.as_str())?;
        for set in &self.sets {
            let body = set.body(self.family, "\n");
            writeln!(f, "\t{} {} {{", set.key.kind(), set.name)?;
            let mut lines = body.lines();
            lines.try_for_each(|line| writeln!(f, "\t\t{line}"))?;
            f.write_str("\t}\n")?;
        }
        self.chains.iter().try_for_each(|chain| chain.fmt(f))?;
        f.write_str("}\n")
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} comment \"{}\"", self.text, self.comment())
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
            writeln!(f, "\t\t{rule}")?;
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
