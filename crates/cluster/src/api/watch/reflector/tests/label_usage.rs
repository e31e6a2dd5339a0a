//! Whatever happens, in whichever order: nothing decides by a label that is not known of every Node.

use super::labels::{labelled, policy};
use super::*;

/// What may happen to Nodes and to what goes by their labels; labels are numbers.
#[derive(Debug, Clone, Copy)]
enum ListPhase {
    Node(u8, [u8; 3]),
    NoNode(u8),
    Policy(u8, u8),
    NoPolicy(u8),
    /// The list that is being read goes on, or one that is wanted begins.
    List,
    /// Somebody else wants a list, as after a history that was compacted.
    Anew,
}

fn turn() -> impl Strategy<Value = ListPhase> {
    prop_oneof![
        4 => (2..6_u8, prop::array::uniform3(0..3_u8)).prop_map(|(name, labels)| ListPhase::Node(name, labels)),
        1 => (2..6_u8).prop_map(ListPhase::NoNode),
        3 => (0..3_u8, 0..4_u8).prop_map(|(name, key)| ListPhase::Policy(name, key)),
        1 => (0..3_u8).prop_map(ListPhase::NoPolicy),
        8 => Just(ListPhase::List),
        1 => Just(ListPhase::Anew),
    ]
}

fn key(number: u8) -> String {
    match number {
        3 => "topology.kubernetes.io/zone".to_owned(),
        number => format!("example.com/k{number}"),
    }
}

/// A list that is being read.
struct List {
    /// What it has not named yet.
    left: Vec<Node>,
    /// What has happened since it began: whether a Node exists.
    later: Vec<(bool, Node)>,
}

/// A server and who follows it.
struct World {
    bench: Bench,
    nodes: BTreeMap<String, Node>,
    policies: BTreeMap<String, String>,
    list: Option<List>,
    /// The Nodes as they were told last, with all their labels.
    told: BTreeMap<String, Node>,
}

impl World {
    fn turn(&mut self, turn: ListPhase) {
        match turn {
            ListPhase::Node(name, labels) => {
                let name = format!("n{name}");
                let keys = [key(0), key(1), key(3)];
                let values = labels.map(|value| format!("v{value}"));
                let pairs = keys
                    .iter()
                    .zip(&values)
                    .map(|(key, value)| (&**key, &**value));
                let node = labelled(&name, &pairs.collect::<Vec<_>>());
                self.nodes.insert(name, node.clone());
                self.happens(true, node);
            }
            ListPhase::NoNode(name) => {
                if let Some(node) = self.nodes.remove(&format!("n{name}")) {
                    self.happens(false, node);
                }
            }
            ListPhase::Policy(name, number) => {
                let name = format!("p{name}");
                self.bench
                    .reflector
                    .exists(POLICIES, &policy(&name, &key(number), None));
                self.policies.insert(name, key(number));
            }
            ListPhase::NoPolicy(name) => {
                let name = format!("p{name}");
                self.bench
                    .reflector
                    .gone(POLICIES, &policy(&name, &key(0), None));
                self.policies.remove(&name);
            }
            ListPhase::List
                if self.list.is_some() || self.bench.reflector.label_owner_waiting().is_some() =>
            {
                self.list();
            }
            ListPhase::List => {}
            ListPhase::Anew => self.begin(),
        }
    }

    /// Something happens to a Node: it is told of at once, or after the list.
    fn happens(&mut self, exists: bool, node: Node) {
        match &mut self.list {
            Some(list) => list.later.push((exists, node)),
            None => self.hears(exists, &node),
        }
    }

    fn hears(&mut self, exists: bool, node: &Node) {
        let name = node
            .get("metadata")
            .unwrap()
            .get("name")
            .unwrap()
            .text()
            .unwrap()
            .to_owned();
        if exists {
            self.bench.reflector.exists(NODES, node);
            self.told.insert(name, node.clone());
        } else {
            self.bench.reflector.gone(NODES, node);
            self.told.remove(&name);
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
                self.bench.reflector.ask_for_nodes();
                self.begin();
            }
            Some(list) => match list.left.pop() {
                Some(node) => self.hears(true, &node),
                None => self.end(),
            },
        }
    }

    fn end(&mut self) {
        self.bench.reflector.listed(NODES, Duration::ZERO);
        let known: Vec<String> = self.told.keys().cloned().collect();
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
            self.told.remove(&name);
        }
        for (exists, node) in self.list.take().unwrap().later {
            self.hears(exists, &node);
        }
    }

    /// Whatever decides knows its label of every Node.
    fn check(&mut self) {
        self.bench.tell();
        let keys = self.bench.going_by();
        for (name, node) in &self.told {
            let all = node.get("metadata").unwrap().get("labels").unwrap();
            let known = self.bench.index.snapshot().node(name).unwrap();
            for key in &keys {
                let told = all.get(key).and_then(Node::text);
                assert_eq!(
                    known.labels.get(key).map(|value| &**value),
                    told,
                    "{key} of {name}"
                );
            }
        }
    }
}

proptest! {
    #[test]
    fn no_policy_ever_decides_by_a_label_that_is_not_known_of_every_node(turns in prop::collection::vec(turn(), 0..120)) {
        let mut world = World {
            bench: Bench::listed(&[]),
            nodes: BTreeMap::new(),
            policies: BTreeMap::new(),
            list: None,
            told: BTreeMap::new(),
        };
        for turn in turns {
            world.turn(turn);
            world.check();
        }
        // In the end everything is known, after the list that is being read and one more.
        while world.list.is_some() || world.bench.reflector.label_owner_waiting().is_some() {
            world.list();
            world.check();
        }
        let keys: Vec<String> = world.policies.values().cloned().collect();
        prop_assert_eq!(world.bench.going_by(), keys);
    }
}
