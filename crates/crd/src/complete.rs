//! Completes an object as the API server would: removes nulls and fills in defaults. Prunes one.

use super::property::{Need, Object, Property, Shape};
use object_tree::{self as yaml, Node, Value};

/// Returns the object with its defaults, which get the line of the object around them.
///
/// A value that does not fit the description stays as it is, so that [`check`](super::check())
/// reports it.
pub fn complete(node: &Node, object: &Object) -> Node {
    let Some(entries) = node.map() else {
        return node.clone();
    };
    let mut whole: Vec<(yaml::Text, Node)> = Vec::with_capacity(entries.len());
    for (key, value) in entries {
        let property = object.properties().find(|one| *one.name == **key);
        match property {
            Some(_) if value.is_null() => {}
            Some(property) => whole.push((key.clone(), of_shape(value, &property.shape, complete))),
            None => whole.push((key.clone(), value.clone())),
        }
    }
    for property in object.properties() {
        if !whole.iter().any(|(key, _)| **key == *property.name) {
            let default = default(property, node.line);
            whole.extend(default.map(|default| (property.name.into(), default)));
        }
    }
    Node::new(node.line, Value::Map(whole))
}

/// Returns the object without the fields that the description does not have, as the API server stores it.
pub fn prune(node: &Node, object: &Object) -> Node {
    let Some(entries) = node.map() else {
        return node.clone();
    };
    let mut known: Vec<(yaml::Text, Node)> = Vec::with_capacity(entries.len());
    for (key, value) in entries {
        let property = object.properties().find(|one| *one.name == **key);
        known.extend(
            property.map(|property| (key.clone(), of_shape(value, &property.shape, prune))),
        );
    }
    Node::new(node.line, Value::Map(known))
}

/// Replaces the objects in a value of this shape.
fn of_shape(node: &Node, shape: &Shape, replace: fn(&Node, &Object) -> Node) -> Node {
    match (shape, node.list(), node.map()) {
        (Shape::Object(object), _, _) => replace(node, object),
        (Shape::List { of, .. }, Some(items), _) => {
            let items = items
                .iter()
                .map(|item| of_shape(item, of, replace))
                .collect();
            Node::new(node.line, Value::List(items))
        }
        (Shape::Map { of, .. }, _, Some(entries)) => {
            let entries = entries.iter();
            let entries = entries.map(|(key, value)| (key.clone(), of_shape(value, of, replace)));
            Node::new(node.line, Value::Map(entries.collect()))
        }
        _ => node.clone(),
    }
}

fn default(property: &Property, line: u32) -> Option<Node> {
    let scalar = |text: yaml::Text, plain| Value::Scalar { text, plain };
    let value = match property.need {
        Need::Required | Need::Optional => return None,
        Need::Text(text) => scalar(text.into(), false),
        Need::Number(number) => scalar(number.to_string().into(), true),
        Need::Flag(flag) => scalar(if flag { "true" } else { "false" }.into(), true),
        Need::EmptyList => Value::List(Vec::new()),
        Need::EmptyMap => Value::Map(Vec::new()),
    };
    Some(of_shape(&Node::new(line, value), &property.shape, complete))
}
