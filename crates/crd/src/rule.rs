//! Rules between properties, written once: as CEL for the API server, and for the reader.

use object_tree::Node;

#[derive(Debug)]
pub(crate) struct Rule {
    /// The property that the error names; empty = the object.
    pub(crate) at: &'static str,
    pub(crate) holds: Expr,
    /// The error if the rule is broken.
    pub(crate) problem: &'static str,
    pub(crate) remedy: &'static str,
}

/// A condition on an object whose defaults are filled in. Names are paths from the object:
/// `guard.demand`.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Expr {
    /// The property, which has no default, is set.
    Has(&'static str),
    /// The property has this word.
    Is(&'static str, &'static str),
    Set(&'static str),
    AtMost(&'static str, i64),
    Empty(&'static str),
    /// Some element of the list meets the condition.
    Some(&'static str, &'static Expr),
    Every(&'static str, &'static Expr),
    /// The last element of the list meets the condition, or the list is empty.
    Last(&'static str, &'static Expr),
    /// No element of the list except the last meets the condition.
    OnlyLast(&'static str, &'static Expr),
    /// No two elements of the list have the same value of a property. An alias equals its full
    /// name.
    Distinct(&'static str, &'static str, &'static [[&'static str; 2]]),
    /// The list in every value of the mapping is as long as another list of the object.
    AsLong(&'static str, &'static str, &'static str),
    Not(&'static Expr),
    Same(&'static Expr, &'static Expr),
    Either(&'static [Expr]),
    If(&'static Expr, &'static Expr),
}

impl Expr {
    /// Prints the condition as a CEL expression about `subject`.
    pub(crate) fn cel(&self, subject: &str) -> String {
        let path = |name: &str| format!("{subject}.{name}");
        match self {
            Self::Has(name) => format!("has({})", path(name)),
            Self::Is(name, word) => format!("{} == '{word}'", path(name)),
            Self::Set(name) => path(name),
            Self::AtMost(name, most) => format!("{} <= {most}", path(name)),
            Self::Empty(name) => format!("{}.size() == 0", path(name)),
            Self::Some(list, each) => format!("{}.exists(x, {})", path(list), each.cel("x")),
            Self::Every(list, each) => format!("{}.all(x, {})", path(list), each.cel("x")),
            Self::Last(list, each) => {
                let list = path(list);
                format!("{list}.size() == 0 || {}", each.cel(&last_of(&list)))
            }
            Self::OnlyLast(list, each) => only_last(&path(list), each),
            Self::Distinct(list, name, aliases) => distinct(&path(list), name, aliases),
            Self::AsLong(map, inner, list) => {
                let (map, list) = (path(map), path(list));
                format!("{map}.all(x, {map}[x].{inner}.size() == {list}.size())")
            }
            Self::Not(inner) => format!("!({})", inner.cel(subject)),
            Self::Same(first, second) => {
                format!("({}) == ({})", first.cel(subject), second.cel(subject))
            }
            Self::Either(options) => {
                let options: Vec<String> = options
                    .iter()
                    .map(|option| format!("({})", option.cel(subject)))
                    .collect();
                options.join(" || ")
            }
            Self::If(condition, then) => {
                format!("!({}) || ({})", condition.cel(subject), then.cel(subject))
            }
        }
    }

    /// Whether the condition holds for `subject`, whose own values were checked before.
    pub(crate) fn holds(&self, subject: &Node) -> bool {
        match self {
            Self::Has(name) => at(subject, name).is_some(),
            Self::Is(name, word) => text(subject, name) == Some(*word),
            Self::Set(name) => at(subject, name).and_then(Node::boolean) == Some(true),
            Self::AtMost(name, most) => {
                let number = text(subject, name).and_then(|text| text.parse::<i64>().ok());
                number.is_some_and(|number| number <= *most)
            }
            Self::Empty(name) => at(subject, name).is_none_or(|node| size(node) == 0),
            Self::Some(name, each) => list(subject, name).iter().any(|item| each.holds(item)),
            Self::Every(name, each) => list(subject, name).iter().all(|item| each.holds(item)),
            Self::Last(name, each) => {
                let last = list(subject, name).last();
                last.is_none_or(|item| each.holds(item))
            }
            Self::OnlyLast(name, each) => {
                let but_last = list(subject, name)
                    .split_last()
                    .map_or(&[][..], |(_, rest)| rest);
                !but_last.iter().any(|item| each.holds(item))
            }
            Self::Distinct(name, key, aliases) => is_distinct(list(subject, name), key, aliases),
            Self::AsLong(map, inner, other) => {
                let length = list(subject, other).len();
                let values = at(subject, map).and_then(Node::map).unwrap_or_default();
                values
                    .iter()
                    .all(|(_, value)| list(value, inner).len() == length)
            }
            Self::Not(inner) => !inner.holds(subject),
            Self::Same(first, second) => first.holds(subject) == second.holds(subject),
            Self::Either(options) => options.iter().any(|option| option.holds(subject)),
            Self::If(condition, then) => !condition.holds(subject) || then.holds(subject),
        }
    }
}

/// CEL macros have no index. So at most one element may meet the condition, and if one does, the
/// last one must.
fn only_last(list: &str, each: &Expr) -> String {
    let found = format!("{list}.filter(x, {})", each.cel("x"));
    let end = each.cel(&last_of(list));
    format!("{found}.size() == 0 || ({found}.size() == 1 && {end})")
}

fn last_of(list: &str) -> String {
    format!("{list}[{list}.size() - 1]")
}

fn distinct(list: &str, name: &str, aliases: &[[&str; 2]]) -> String {
    let mut text = format!(
        "{list}.all(x, !has(x.{name}) || {list}.filter(y, has(y.{name}) && y.{name} == x.{name}).size() == 1)"
    );
    if !aliases.is_empty() {
        let pairs: Vec<String> = aliases
            .iter()
            .map(|[alias, key]| format!("['{alias}', '{key}']"))
            .collect();
        let pairs = pairs.join(", ");
        text = format!(
            "{text} && [{pairs}].all(p, {list}.filter(x, has(x.{name}) && x.{name} in p).size() <= 1)"
        );
    }
    text
}

fn is_distinct(items: &[Node], name: &str, aliases: &[[&str; 2]]) -> bool {
    let full_key = |text| {
        let alias = aliases.iter().find(|[alias, _]| *alias == text);
        alias.map_or(text, |[_, key]| *key)
    };
    let values: Vec<&str> = items
        .iter()
        .filter_map(|item| text(item, name).map(full_key))
        .collect();
    let twice = |(at, value)| values.iter().take(at).any(|earlier| earlier == value);
    !values.iter().enumerate().any(twice)
}

fn at<'a>(subject: &'a Node, path: &str) -> Option<&'a Node> {
    path.split('.')
        .try_fold(subject, |node, name| node.get(name))
}

fn text<'a>(subject: &'a Node, path: &str) -> Option<&'a str> {
    at(subject, path)?.text()
}

fn list<'a>(subject: &'a Node, path: &str) -> &'a [Node] {
    at(subject, path).and_then(Node::list).unwrap_or_default()
}

fn size(node: &Node) -> usize {
    let list = node.list().map(<[_]>::len);
    list.or_else(|| node.map().map(<[_]>::len)).unwrap_or(0)
}
