//! Makes CEL conditions for the value of one annotation.
//!
//! Expressions ignore spaces around a value, like the agent.

use topology_core::policy::{MAX_LEVELS, ValueKind};

use super::policy::Check;
use crate::policy::ALIASES;
use crate::property::{LABEL_KEY, OBJECT_NAME};

/// The longest prefix of a label key.
const MAX_PREFIX: usize = 253;

/// The conditions for a value, and the named parts that they use.
#[derive(Debug, Default)]
pub(super) struct Conditions {
    pub(super) variables: Vec<(String, String)>,
    pub(super) checks: Vec<Check>,
}

/// Makes the conditions for `text`. `name` is the annotation's name as a variable.
pub(super) fn conditions(name: &str, value: &ValueKind, text: &str) -> Conditions {
    let mut conditions = Conditions::default();
    match value {
        ValueKind::Word(words) => {
            let listed = words.join("', '");
            conditions.check(
                format!("{text} in ['{listed}']"),
                format!("use {}", words.join(", ")),
            );
        }
        ValueKind::Levels => levels(&mut conditions, name, &split(text, "x")),
        ValueKind::Weights { most } => weights(&mut conditions, name, text, *most),
        ValueKind::Thresholds { most } => thresholds(&mut conditions, name, text, *most),
        ValueKind::Percent { least, most, none } => {
            let bare = format!("({text}.endsWith('%') ? {} : {text})", without_last(text));
            let bare = conditions.variable(format!("{name}Number"), bare);
            conditions.check(
                format!("{text} == '{none}' || {}", number(&bare, *least, *most)),
                format!("give a percentage from {least} to {most}, or {none}"),
            );
        }
        ValueKind::Domains => domains(&mut conditions, name, text),
        ValueKind::Seconds { most } => conditions.check(
            number(text, 0, *most),
            format!("give whole seconds from 0 to {most}"),
        ),
        ValueKind::Number { least, most } => conditions.check(
            number(text, *least, *most),
            format!("give a whole number from {least} to {most}"),
        ),
        ValueKind::Name => conditions.check(
            format!(
                "{text}.size() <= {} && {}",
                OBJECT_NAME.most,
                matches(text, OBJECT_NAME.pattern)
            ),
            "give the name of a TopologyPolicy in the Service's namespace",
        ),
    }
    conditions
}

impl Conditions {
    fn check(&mut self, holds: impl Into<String>, message: impl Into<String>) {
        self.checks.push(Check::new(holds, message));
    }

    /// Names an expression. Returns the expression that uses it.
    fn variable(&mut self, name: String, is: String) -> String {
        let used = format!("variables.{name}");
        self.variables.push((name, is));
        used
    }
}

/// Splits a list, trims the parts and applies `each` to them.
fn split(text: &str, each: &str) -> String {
    let trimmed = format!("{text}.split(',').map(x, x.trim())");
    if each == "x" {
        trimmed
    } else {
        format!("{trimmed}.map(x, {each})")
    }
}

/// The rules for a list of levels, in every annotation that has one.
fn levels(conditions: &mut Conditions, name: &str, keys: &str) {
    let written = conditions.variable(format!("{name}Written"), keys.to_owned());
    conditions.check(
        format!("{written}.size() <= {MAX_LEVELS}"),
        format!("at most {MAX_LEVELS} levels are allowed"),
    );
    let is_key = format!("(x == '*' || ({}))", label_key("x"));
    conditions.check(
        few(&written, &format!("{written}.all(x, {is_key})")),
        "a level is node, zone, region, * or a label key such as example.com/rack; an empty level is not allowed",
    );
    let full = conditions.variable(format!("{name}Levels"), in_full(&written));
    conditions.check(
        few(&written, &is_distinct(&full)),
        "a level is listed twice; keep the first",
    );
    conditions.check(
        few(
            &written,
            &format!("({full}.indexOf('*') == -1 || {full}.indexOf('*') == {full}.size() - 1)"),
        ),
        "`*` comes before another level; write it last",
    );
}

fn weights(conditions: &mut Conditions, name: &str, text: &str, most: u32) {
    let pairs = conditions.variable(format!("{name}Pairs"), pairs(text));
    let percent = number(&without_last("p[1]"), 0, 100);
    let whole = number("p[1]", 0, most);
    conditions.check(
        format!("{pairs}.all(p, p.size() == 2 && (p[1].endsWith('%') ? {percent} : {whole}))"),
        format!(
            "write level=weight, such as node=80 or node=80%, with whole numbers from 0 to {most} or 0% to 100%"
        ),
    );
    levels(conditions, name, &format!("{pairs}.map(p, p[0])"));
}

fn thresholds(conditions: &mut Conditions, name: &str, text: &str, most: u32) {
    let pairs = conditions.variable(format!("{name}Pairs"), pairs(text));
    let percent = number(&without_last("p[1]"), 0, 100);
    let count = number("p[1]", 1, most);
    conditions.check(
        format!("{pairs}.all(p, p.size() == 2 && (p[1].endsWith('%') ? {percent} : {count}))"),
        format!(
            "write level=count or level=percent%, such as zone=2, with counts from 1 to {most} or 0% to 100%"
        ),
    );
    at_most(conditions, &pairs);
    let keys = format!("{pairs}.map(p, p[0])");
    let full = conditions.variable(format!("{name}Levels"), in_full(&keys));
    conditions.check(
        few(&pairs, &is_distinct(&full)),
        "a level is listed twice; keep the first",
    );
}

fn domains(conditions: &mut Conditions, name: &str, text: &str) {
    let parts = split(text, "x.split(':')");
    let parts = conditions.variable(format!("{name}Parts"), parts);
    let key = label_key("p[0].trim()");
    let mode = "(p.size() == 1 || (p.size() == 2 && p[1] in ['soft', 'hard']))";
    conditions.check(
        format!("{parts}.all(p, {mode} && {key})"),
        "write node, zone, region or a label key, with :soft after it if it may be used as the last resort",
    );
    at_most(conditions, &parts);
    let keys = format!("{parts}.map(p, p[0].trim())");
    let full = conditions.variable(format!("{name}Levels"), in_full(&keys));
    conditions.check(
        few(&parts, &is_distinct(&full)),
        "a label is listed twice; keep the first",
    );
}

/// The limit of entries in a list without levels of its own.
fn at_most(conditions: &mut Conditions, entries: &str) {
    conditions.check(
        format!("{entries}.size() <= {MAX_LEVELS}"),
        format!("at most {MAX_LEVELS} entries are allowed"),
    );
}

/// Splits `a=1, b=2` into pairs.
fn pairs(text: &str) -> String {
    split(text, "x.split('=').map(y, y.trim())")
}

/// A condition whose cost grows with the list; checked only if the list is not too long.
fn few(list: &str, holds: &str) -> String {
    format!("{list}.size() > {MAX_LEVELS} || {holds}")
}

fn is_distinct(list: &str) -> String {
    format!("{list}.all(x, {list}.indexOf(x) == {list}.lastIndexOf(x))")
}

/// The keys, with short names replaced by labels.
fn in_full(list: &str) -> String {
    let names: Vec<String> = ALIASES
        .iter()
        .map(|[alias, key]| format!("x == '{alias}' ? '{key}' : "))
        .collect();
    format!("{list}.map(x, {}x)", names.concat())
}

fn label_key(text: &str) -> String {
    format!(
        "{text}.indexOf('/') <= {MAX_PREFIX} && {}",
        matches(text, LABEL_KEY.pattern)
    )
}

/// A whole number without a sign.
fn number(text: &str, least: u32, most: u32) -> String {
    let mut holds = format!(
        "{} && int({text}) <= {most}",
        matches(text, "^0*[0-9]{1,9}$")
    );
    if least > 0 {
        holds.extend([format!(" && int({text}) >= {least}")]);
    }
    holds
}

/// The text without its last character and the spaces before that.
fn without_last(text: &str) -> String {
    format!("{text}.substring(0, {text}.size() - 1).trim()")
}

fn matches(text: &str, pattern: &str) -> String {
    format!("{text}.matches('{}')", pattern.replace('\\', "\\\\"))
}
