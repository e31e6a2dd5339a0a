//! Builds [`Node`]s from parser events, one object at a time, within limits.

use std::borrow::Cow;
use std::rc::Rc;

use granit_parser::{Event, ScalarStyle, Tag};
use rustc_hash::FxHashMap;

use super::list::{self, ListKind};
use super::map;
use super::node::{Node, Text, Value};
use super::syntax_error::SyntaxError;

/// The nesting limit of an object. Kubernetes objects stay below 20 levels.
pub const MAX_DEPTH: u32 = 64;

/// The weight limit of one object. A value weighs 1, and 1 more for each 64 bytes of text. An alias
/// weighs as much as its value at each use, which stops a "billion laughs" text. An `EndpointSlice`
/// of 1,000 endpoints weighs about 25,000.
const MAX_WEIGHT: u64 = 1_000_000;

/// The weight limit of all aliases of an input, which is all documents of all files. A million
/// values take about half a second and 13 MB.
pub const MAX_ALIASED: u64 = 2_000_000;

pub(super) struct Builder {
    /// The weight that the aliases of the rest of the input may have.
    pub(super) budget: u64,
    document: Document,
}

/// The state of the document that is being read.
#[derive(Default)]
struct Document {
    stack: Vec<Frame>,
    /// Finished anchored values of the document, by the parser's anchor number.
    anchors: FxHashMap<usize, Built>,
    /// The weight of the aliases of the document.
    aliased: u64,
    /// The list whose items are being delivered one by one.
    list: Option<Rc<ListKind>>,
}

/// A collection that is not closed yet.
struct Frame {
    line: u32,
    anchor: usize,
    weight: u64,
    depth: u32,
    open: Open,
}

enum Open {
    List(Vec<Node>),
    Map {
        entries: Vec<(Text, Node)>,
        key: Option<Text>,
        merges: Vec<Node>,
    },
}

/// A finished value with its weight.
#[derive(Clone)]
struct Built {
    node: Node,
    weight: u64,
    depth: u32,
}

/// The merge key, before it gets its value.
const MERGE_KEY: &str = "<<";

impl Builder {
    /// A builder for a text. The aliases of the rest of the input may weigh `budget`.
    pub(super) fn new(budget: u64) -> Self {
        Self {
            budget,
            document: Document::default(),
        }
    }

    /// Handles the next event. `line` is its line in the file.
    pub(super) fn event(
        &mut self,
        event: Event<'_>,
        line: u32,
        sink: &mut impl FnMut(Node),
    ) -> Result<(), SyntaxError> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let built = scalar(text, style, tag.as_deref(), line);
                self.place(built, anchor, sink)
            }
            Event::SequenceStart(_, anchor, _) => {
                self.open(line, anchor, Open::List(Vec::new()));
                Ok(())
            }
            Event::MappingStart(_, anchor, _) => {
                self.open(
                    line,
                    anchor,
                    Open::Map {
                        entries: Vec::new(),
                        key: None,
                        merges: Vec::new(),
                    },
                );
                Ok(())
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(sink),
            Event::Alias(id) => {
                let built = self.alias(id, line)?;
                self.place(built, 0, sink)
            }
            Event::DocumentStart(..) | Event::DocumentEnd => {
                self.document = Document::default();
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn alias(&mut self, id: usize, line: u32) -> Result<Built, SyntaxError> {
        let built = self
            .document
            .anchors
            .get(&id)
            .cloned()
            .ok_or_else(|| SyntaxError::Broken {
                line,
                message: "an alias inside its own value".to_owned(),
            })?;
        self.document.aliased = self.document.aliased.saturating_add(built.weight);
        if self.document.aliased > MAX_WEIGHT {
            let message = format!("aliases expand to more than {MAX_WEIGHT} values");
            return Err(SyntaxError::TooMuch { line, message });
        }
        let Some(budget) = self.budget.checked_sub(built.weight) else {
            let message =
                format!("aliases of the whole input expand to more than {MAX_ALIASED} values");
            return Err(SyntaxError::TooMuch { line, message });
        };
        self.budget = budget;
        Ok(built)
    }

    fn open(&mut self, line: u32, anchor: usize, open: Open) {
        self.document.stack.push(Frame {
            line,
            anchor,
            weight: 1,
            depth: 0,
            open,
        });
    }

    fn close(&mut self, sink: &mut impl FnMut(Node)) -> Result<(), SyntaxError> {
        let Some(Frame {
            line,
            anchor,
            weight,
            depth,
            open,
        }) = self.document.stack.pop()
        else {
            return Ok(());
        };
        let value = match open {
            Open::List(items) => Value::List(items),
            Open::Map {
                entries, merges, ..
            } => Value::Map(map::finish(entries, &merges, line)?),
        };
        self.place(
            Built {
                node: Node::new(line, value),
                weight,
                depth: depth + 1,
            },
            anchor,
            sink,
        )
    }

    /// Moves a finished value into its collection, or to `sink`.
    fn place(
        &mut self,
        mut built: Built,
        anchor: usize,
        sink: &mut impl FnMut(Node),
    ) -> Result<(), SyntaxError> {
        if anchor != 0 {
            let line = built.node.line;
            built.node = Node::new(line, Value::Shared(Rc::new(built.node)));
            self.document.anchors.insert(anchor, built.clone());
        }
        if let Some(list) = self.streaming(&built.node) {
            list::deliver(list::inherit(built.node, &list), sink);
            return Ok(());
        }
        let level = u32::try_from(self.document.stack.len()).unwrap_or(u32::MAX);
        if let Some(frame) = self.document.stack.last_mut() {
            return frame.take(built, level);
        }
        list::deliver(built.node, sink);
        Ok(())
    }

    /// The list that `node` is an item of, if the item can be delivered at once: the innermost open
    /// collection is a top-level `items:`, and the kind of the item is known.
    fn streaming(&mut self, node: &Node) -> Option<Rc<ListKind>> {
        let [
            Frame {
                open: Open::Map { key, entries, .. },
                anchor: 0,
                ..
            },
            items,
        ] = &*self.document.stack
        else {
            return None;
        };
        let Frame {
            open: Open::List(_),
            anchor: 0,
            ..
        } = items
        else {
            return None;
        };
        if key.as_deref() != Some("items") || node.map().is_none() {
            return None;
        }
        let list = self
            .document
            .list
            .get_or_insert_with(|| Rc::new(ListKind::of(entries)));
        (node.get("kind").is_some() || list.kind.is_some()).then(|| Rc::clone(list))
    }
}

impl Frame {
    fn take(&mut self, built: Built, level: u32) -> Result<(), SyntaxError> {
        let Built {
            node,
            weight,
            depth,
        } = built;
        let line = node.line;
        self.weight = self.weight.saturating_add(weight);
        self.depth = self.depth.max(depth);
        if self.weight > MAX_WEIGHT {
            let message = format!("one object of more than {MAX_WEIGHT} values");
            return Err(SyntaxError::TooMuch { line, message });
        }
        if level.saturating_add(self.depth) > MAX_DEPTH {
            let message = format!("nested more than {MAX_DEPTH} levels deep, aliases counted");
            return Err(SyntaxError::TooMuch { line, message });
        }
        match &mut self.open {
            Open::List(items) => items.push(node),
            Open::Map {
                entries,
                key,
                merges,
            } => match key.take() {
                Some(name) if &*name == MERGE_KEY => merges.push(node),
                Some(name) => entries.push((name, node)),
                None => *key = Some(key_text(&node)?),
            },
        }
        Ok(())
    }
}

fn scalar(text: Cow<'_, str>, style: ScalarStyle, tag: Option<&Tag>, line: u32) -> Built {
    let weight = 1 + text.len() as u64 / 64;
    let plain = style == ScalarStyle::Plain && tag.is_none();
    let value = Value::Scalar {
        text: text.into_owned().into(),
        plain,
    };
    Built {
        node: Node::new(line, value),
        weight,
        depth: 0,
    }
}

fn key_text(node: &Node) -> Result<Text, SyntaxError> {
    node.text()
        .map(|text| text.to_owned().into())
        .ok_or_else(|| SyntaxError::Broken {
            line: node.line,
            message: "the key of a mapping must be text".to_owned(),
        })
}
