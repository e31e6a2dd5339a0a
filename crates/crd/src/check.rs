//! Checks objects against their description.

use super::property::{Need, Object, Property, Shape, Text, Word};
use object_tree::{Field, Node, Problems};

/// Whether the object in `field`, its defaults filled in, fits the description. Reports every
/// fault.
pub fn check(
    field: &Field<'_>,
    object: &'static Object,
    noun: &str,
    report: &mut dyn Problems,
) -> bool {
    let mut checker = Checker {
        report,
        noun,
        faults: 0,
    };
    checker.object(field, object);
    checker.faults == 0
}

struct Checker<'a> {
    report: &'a mut dyn Problems,
    noun: &'a str,
    faults: usize,
}

impl Checker<'_> {
    fn fault(&mut self, field: &Field<'_>, problem: &str, remedy: &str) {
        let message = format!("{problem}; the {} cannot be used as it is", self.noun);
        self.report.warn(field, message, remedy.to_owned());
        self.faults += 1;
    }

    fn object(&mut self, field: &Field<'_>, object: &'static Object) {
        let before = self.faults;
        if !self.is_map(field) {
            return;
        }
        self.unknown(field, object);
        for property in object.properties() {
            let value = field.get(property.name);
            if value.is_present() {
                self.shape(&value, &property.shape);
            } else if property.need == Need::Required {
                let remedy = format!("add `{}: {}`", property.name, sample(property));
                self.fault(&value, "missing", &remedy);
            }
        }
        if self.faults == before {
            self.rules(field, object);
        }
    }

    fn unknown(&mut self, field: &Field<'_>, object: &Object) {
        for key in field.keys() {
            if object.properties().any(|property| property.name == key) {
                continue;
            }
            let known: Vec<&str> = object.properties().map(|property| property.name).collect();
            let remedy = if key == "namespaceSelector" {
                "only a ClusterTopologyPolicy selects namespaces; remove it".to_owned()
            } else {
                format!("known are {}", known.join(", "))
            };
            self.fault(&field.get(key), "unknown field", &remedy);
        }
    }

    /// Reports the first broken rule of each property.
    fn rules(&mut self, field: &Field<'_>, object: &Object) {
        let Some(node) = field.node() else { return };
        let mut reported = Vec::new();
        for rule in object.rules() {
            if reported.contains(&rule.at) || rule.holds.holds(node) {
                continue;
            }
            reported.push(rule.at);
            let (first, second) = rule.at.split_once('.').unwrap_or((rule.at, ""));
            let outer = field.get(first);
            match (first, second) {
                ("", _) => self.fault(field, rule.problem, rule.remedy),
                (_, "") => self.fault(&outer, rule.problem, rule.remedy),
                _ => self.fault(&outer.get(second), rule.problem, rule.remedy),
            }
        }
    }

    fn shape(&mut self, field: &Field<'_>, shape: &Shape) {
        match shape {
            Shape::Word(words) => self.word(field, words),
            Shape::Text(text) => self.text(field, text),
            Shape::Number { least, most } => self.number(field, *least, *most),
            Shape::Flag => {
                if field
                    .node()
                    .is_some_and(|node| !node.is_plain() || node.boolean().is_none())
                {
                    self.odd(
                        field,
                        "true or false",
                        "write true or false, without quotes",
                    );
                }
            }
            Shape::Time => {
                if self.scalar(field).is_some_and(|text| !is_time(text)) {
                    self.odd(field, "a time", "write it as 2026-11-22T10:00:00Z");
                }
            }
            Shape::List {
                of,
                least,
                most,
                set,
            } => self.list(field, of, *least..=*most, *set),
            Shape::Map { of, most, .. } => self.entries(field, of, *most),
            Shape::Object(object) => self.object(field, object),
        }
    }

    fn word(&mut self, field: &Field<'_>, words: &[Word]) {
        let Some(text) = self.scalar(field) else {
            return;
        };
        if words.iter().any(|word| word.name == text) {
            return;
        }
        let mut names: Vec<&str> = words.iter().map(|word| word.name).collect();
        let last = names.pop().unwrap_or_default();
        let remedy = format!("use {} or {last}", names.join(", "));
        self.odd(field, "known here", &remedy);
    }

    fn text(&mut self, field: &Field<'_>, text: &Text) {
        let Some(found) = self.scalar(field) else {
            return;
        };
        let length = found.chars().count();
        if (text.fits)(found) && (text.least..=text.most).contains(&length) {
            return;
        }
        let remedy = format!(
            "{}, {} to {} characters",
            text.remedy, text.least, text.most
        );
        self.odd(field, &format!("a {}", text.what), &remedy);
    }

    fn number(&mut self, field: &Field<'_>, least: i64, most: i64) {
        let Some(text) = self.scalar(field) else {
            return;
        };
        let is_plain = field.node().is_some_and(Node::is_plain);
        let number = text.parse::<i64>().ok().filter(|_| is_plain);
        let remedy = format!("use {least} to {most}");
        match number {
            Some(number) if (least..=most).contains(&number) => {}
            Some(number) => self.fault(field, &format!("{number} is out of range"), &remedy),
            None => self.odd(
                field,
                "a whole number",
                &format!("{remedy}, without quotes"),
            ),
        }
    }

    fn list(
        &mut self,
        field: &Field<'_>,
        of: &Shape,
        lengths: std::ops::RangeInclusive<usize>,
        set: bool,
    ) {
        let Some(items) = field.node().and_then(Node::list) else {
            return self.odd(field, "a list", "write the elements as a list");
        };
        if !lengths.contains(&items.len()) {
            let problem = format!("{} elements", items.len());
            let remedy = format!("write {} to {}", lengths.start(), lengths.end());
            self.fault(field, &problem, &remedy);
        }
        // Elements beyond the limit are not checked: one fault is reported, not thousands.
        for index in 0..items.len().min(*lengths.end()) {
            let item = field.element(Some(index));
            if !item.is_present() {
                self.fault(&item, "an empty element", "remove it");
                continue;
            }
            self.shape(&item, of);
            let earlier = items.iter().take(index);
            let text = items.get(index).and_then(Node::text);
            if set && text.is_some() && earlier.into_iter().any(|one| one.text() == text) {
                self.fault(&item, "is listed twice", "keep the first");
            }
        }
    }

    fn entries(&mut self, field: &Field<'_>, of: &Shape, most: usize) {
        if !self.is_map(field) {
            return;
        }
        let count = field.keys().count();
        if count > most {
            self.fault(
                field,
                &format!("{count} entries"),
                &format!("write at most {most}"),
            );
        }
        for key in field.keys().take(most) {
            let value = field.entry(key);
            if value.is_present() {
                self.shape(&value, of);
            } else {
                self.fault(&value, "no value", "write one, in quotes if it is empty");
            }
        }
    }

    fn is_map(&mut self, field: &Field<'_>) -> bool {
        let is_map = field.node().is_some_and(|node| node.map().is_some());
        if !is_map {
            self.odd(field, "a mapping", "write `key: value` lines under it");
        }
        is_map
    }

    fn scalar<'f>(&mut self, field: &Field<'f>) -> Option<&'f str> {
        let text = field.node().and_then(Node::text);
        if text.is_none() {
            self.odd(field, "text", "write one value");
        }
        text
    }

    fn odd(&mut self, field: &Field<'_>, wanted: &str, remedy: &str) {
        let found = field.node().map(Node::describe);
        let found = found.unwrap_or_else(|| "nothing".to_owned());
        self.fault(field, &format!("{found} is not {wanted}"), remedy);
    }
}

/// Whether it is an RFC 3339 time, as everywhere in Kubernetes.
fn is_time(text: &str) -> bool {
    let is_rfc_3339 = text.as_bytes().get(10) == Some(&b'T') && !text.contains('[');
    is_rfc_3339 && text.parse::<jiff::Timestamp>().is_ok()
}

/// An example value for a missing property.
fn sample(property: &Property) -> &'static str {
    match &property.shape {
        Shape::Word(words) => words.first().map_or("", |word| word.name),
        Shape::Time => "2026-11-22T10:00:00Z",
        Shape::Text(_) => "zone",
        Shape::Number { .. }
        | Shape::Flag
        | Shape::List { .. }
        | Shape::Map { .. }
        | Shape::Object(_) => "...",
    }
}
