//! Tests, with events in any order, that no policy uses a label that is not known of every Node.

use super::labels::{labelled, policy};
use super::*;

/// An event of Nodes, or of policies that use their labels; labels are numbers.
#[derive(Debug, Clone, Copy)]
enum Action {
    Node(u8, [u8; 3]),
    NoNode(u8),
    Policy(u8, u8),
    NoPolicy(u8),
    /// The current list continues, or a requested list begins.
    List,
    /// A list begins for another reason, such as a compacted history.
    Relist,
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        4 => (2..6_u8, prop::array::uniform3(0..3_u8)).prop_map(|(name, labels)| Action::Node(name, labels)),
        1 => (2..6_u8).prop_map(Action::NoNode),
        3 => (0..3_u8, 0..4_u8).prop_map(|(name, key)| Action::Policy(name, key)),
        1 => (0..3_u8).prop_map(Action::NoPolicy),
        8 => Just(Action::List),
        1 => Just(Action::Relist),
    ]
}

fn key(number: u8) -> String {
    match number {
        3 => "topology.kubernetes.io/zone".to_owned(),
        number => format!("example.com/k{number}"),
    }
}

struct List {
    /// The Nodes that it has not named yet.
    left: Vec<Node>,
    /// The changes since it began, and whether the Node exists.
    later: Vec<(bool, Node)>,
}

/// A server, and a client that watches it.
struct World {
    bench: Bench,
    nodes: BTreeMap<String, Node>,
    policies: BTreeMap<String, String>,
    list: Option<List>,
    /// The Nodes as the client received them last, with all labels.
    received: BTreeMap<String, Node>,
}

impl World {
    fn act(&mut self, action: Action) {
        match action {
            Action::Node(name, labels) => {
                let name = format!("n{name}");
                let keys = [key(0), key(1), key(3)];
                let values = labels.map(|value| format!("v{value}"));
                let pairs = keys
                    .iter()
                    .zip(&values)
                    .map(|(key, value)| (&**key, &**value));
                let node = labelled(&name, &pairs.collect::<Vec<_>>());
                self.nodes.insert(name, node.clone());
                self.change(true, node);
            }
            Action::NoNode(name) => {
                if let Some(node) = self.nodes.remove(&format!("n{name}")) {
                    self.change(false, node);
                }
            }
            Action::Policy(name, number) => {
                let name = format!("p{name}");
                self.bench
                    .reflector
                    .apply_object(POLICIES, &policy(&name, &key(number), None));
                self.policies.insert(name, key(number));
            }
            Action::NoPolicy(name) => {
                let name = format!("p{name}");
                self.bench
                    .reflector
                    .delete_object(POLICIES, &policy(&name, &key(0), None));
                self.policies.remove(&name);
            }
            Action::List
                if self.list.is_some() || self.bench.reflector.label_owner_waiting().is_some() =>
            {
                self.list();
            }
            Action::List => {}
            Action::Relist => self.begin(),
        }
    }

    /// Sends a change of a Node at once, or after the list.
    fn change(&mut self, exists: bool, node: Node) {
        match &mut self.list {
            Some(list) => list.later.push((exists, node)),
            None => self.receive(exists, &node),
        }
    }

    fn receive(&mut self, exists: bool, node: &Node) {
        let name = node
            .get("metadata")
            .unwrap()
            .get("name")
            .unwrap()
            .text()
            .unwrap()
            .to_owned();
        if exists {
            self.bench.reflector.apply_object(NODES, node);
            self.received.insert(name, node.clone());
        } else {
            self.bench.reflector.delete_object(NODES, node);
            self.received.remove(&name);
        }
    }

    fn begin(&mut self) {
        self.bench.reflector.begin(NODES);
        self.list = Some(List {
            left: self.nodes.values().cloned().collect(),
            later: Vec::new(),
        });
    }

    fn list(&mut self) {
        match &mut self.list {
            None => {
                self.bench.reflector.request_nodes();
                self.begin();
            }
            Some(list) => match list.left.pop() {
                Some(node) => self.receive(true, &node),
                None => self.end(),
            },
        }
    }

    fn end(&mut self) {
        self.bench.reflector.listed(NODES, Duration::ZERO);
        let known: Vec<String> = self.received.keys().cloned().collect();
        for name in known {
            if self
                .bench
                .reflector
                .known(NODES)
                .unwrap()
                .has(&ObjectName::new("", &*name))
            {
                continue;
            }
            self.received.remove(&name);
        }
        for (exists, node) in self.list.take().unwrap().later {
            self.receive(exists, &node);
        }
    }

    /// The label of every policy in use is known of every Node.
    fn check(&mut self) {
        self.bench.deliver();
        let keys = self.bench.labels_in_use();
        for (name, node) in &self.received {
            let all = node.get("metadata").unwrap().get("labels").unwrap();
            let known = self.bench.index.snapshot().node(name).unwrap();
            for key in &keys {
                let sent = all.get(key).and_then(Node::text);
                assert_eq!(
                    known.labels.get(key).map(|value| &**value),
                    sent,
                    "{key} of {name}"
                );
            }
        }
    }
}

proptest! {
    #[test]
    fn no_policy_ever_uses_a_label_that_is_not_known_of_every_node(actions in prop::collection::vec(action(), 0..120)) {
        let mut world = World {
            bench: Bench::listed(&[]),
            nodes: BTreeMap::new(),
            policies: BTreeMap::new(),
            list: None,
            received: BTreeMap::new(),
        };
        for action in actions {
            world.act(action);
            world.check();
        }
        // All labels are known after the current list and another one.
        while world.list.is_some() || world.bench.reflector.label_owner_waiting().is_some() {
            world.list();
            world.check();
        }
        let keys: Vec<String> = world.policies.values().cloned().collect();
        prop_assert_eq!(world.bench.labels_in_use(), keys);
    }
}
