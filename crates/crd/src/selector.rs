//! Describes label selectors as in Kubernetes.

use super::property::{LABEL_KEY, LABEL_VALUE, Need, Object, Property, Shape, Word};
use super::rule::{Expr, Rule};

pub(crate) const SELECTOR: Object = Object {
    parts: &[&[
        Property {
            name: "matchLabels",
            shape: Shape::Map {
                of: &Shape::Text(LABEL_VALUE),
                most: 32,
                keys: "label key",
            },
            need: Need::Optional,
            about: "Labels that must have these values.",
        },
        Property {
            name: "matchExpressions",
            shape: Shape::List {
                of: &Shape::Object(&EXPRESSION),
                least: 0,
                most: 32,
                set: false,
            },
            need: Need::Optional,
            about: "Requirements that must all hold.",
        },
    ]],
    rules: &[],
    atomic: true,
};

const TAKES_VALUES: Expr =
    Expr::Either(&[Expr::Is("operator", "In"), Expr::Is("operator", "NotIn")]);

const EXPRESSION: Object = Object {
    parts: &[&[
        Property {
            name: "key",
            shape: Shape::Text(LABEL_KEY),
            need: Need::Required,
            about: "The label.",
        },
        Property {
            name: "operator",
            shape: Shape::Word(&[
                Word {
                    name: "In",
                    about: "the label has one of the values",
                },
                Word {
                    name: "NotIn",
                    about: "the label has none of the values, or is absent",
                },
                Word {
                    name: "Exists",
                    about: "the label exists",
                },
                Word {
                    name: "DoesNotExist",
                    about: "the label is absent",
                },
            ]),
            need: Need::Required,
            about: "How the label is compared.",
        },
        Property {
            name: "values",
            shape: Shape::List {
                of: &Shape::Text(LABEL_VALUE),
                least: 0,
                most: 64,
                set: false,
            },
            need: Need::EmptyList,
            about: "The values, for In and NotIn.",
        },
    ]],
    rules: &[&[Rule {
        at: "values",
        holds: Expr::Same(&TAKES_VALUES, &Expr::Not(&Expr::Empty("values"))),
        problem: "In and NotIn need values, Exists and DoesNotExist have none",
        remedy: "add or remove values",
    }]],
    atomic: false,
};
