//! Label selectors.

use std::sync::Arc;

use super::Labels;

/// A `LabelSelector`: all requirements must be met, so an empty one selects everything.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Selector {
    /// `matchLabels`: key and value.
    pub labels: Vec<(Arc<str>, Arc<str>)>,
    /// `matchExpressions`.
    pub expressions: Vec<Expression>,
}

/// An element of `matchExpressions`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Expression {
    /// The label's key.
    pub key: Arc<str>,
    /// The requirement.
    pub operator: Operator,
    /// The values, for `In` and `NotIn`.
    pub values: Vec<Arc<str>>,
}

/// The requirement of an expression for a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operator {
    /// The label has one of the values.
    In,
    /// The label is absent or has none of the values.
    NotIn,
    /// The label exists.
    Exists,
    /// The label is absent.
    DoesNotExist,
}

impl Selector {
    /// Whether the selector has no requirements, and so selects everything.
    pub const fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.expressions.is_empty()
    }

    /// The keys of the required labels, with repetitions.
    pub fn keys(&self) -> impl Iterator<Item = &Arc<str>> {
        let labels = self.labels.iter().map(|(key, _)| key);
        labels.chain(self.expressions.iter().map(|expression| &expression.key))
    }

    /// Whether `labels` meet all requirements.
    pub fn matches(&self, labels: &Labels) -> bool {
        let equal = |(key, value): &(Arc<str>, Arc<str>)| {
            labels.get(key).is_some_and(|found| found == value)
        };
        self.labels.iter().all(equal)
            && self
                .expressions
                .iter()
                .all(|expression| expression.holds(labels))
    }
}

impl Expression {
    fn holds(&self, labels: &Labels) -> bool {
        let value = labels.get(&self.key);
        let listed = value.is_some_and(|value| self.values.contains(value));
        match self.operator {
            Operator::In => listed,
            Operator::NotIn => !listed,
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        let pairs = pairs.iter();
        pairs
            .map(|(key, value)| (Arc::from(*key), Arc::from(*value)))
            .collect()
    }

    fn expression(operator: Operator) -> Selector {
        let values = vec![Arc::from("a"), Arc::from("b")];
        let key = "zone".into();
        Selector {
            labels: Vec::new(),
            expressions: vec![Expression {
                key,
                operator,
                values,
            }],
        }
    }

    #[test]
    fn an_empty_selector_selects_all() {
        assert!(Selector::default().matches(&labels(&[])));
        assert!(Selector::default().matches(&labels(&[("a", "b")])));
    }

    #[test]
    fn every_label_must_be_equal() {
        let selector = Selector {
            labels: vec![("a".into(), "1".into()), ("b".into(), "2".into())],
            expressions: Vec::new(),
        };
        assert!(selector.matches(&labels(&[("a", "1"), ("b", "2"), ("c", "3")])));
        assert!(!selector.matches(&labels(&[("a", "1"), ("b", "3")])));
        assert!(!selector.matches(&labels(&[("a", "1")])));
    }

    #[test]
    fn expressions_have_the_meaning_of_kubernetes() {
        let cases = [
            (Operator::In, [true, false, false]),
            (Operator::NotIn, [false, true, true]),
            (Operator::Exists, [true, true, false]),
            (Operator::DoesNotExist, [false, false, true]),
        ];
        for (operator, expected) in cases {
            let of = |pairs: &[(&str, &str)]| expression(operator).matches(&labels(pairs));
            let found = [
                of(&[("zone", "b")]),
                of(&[("zone", "c")]),
                of(&[("x", "a")]),
            ];
            assert_eq!(found, expected, "{operator:?}");
        }
    }
}
