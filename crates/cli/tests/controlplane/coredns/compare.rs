//! Compares the answers, and finds the differences that explain unequal ones.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use hickory_proto::op::Message;
use hickory_proto::rr::RecordType;

use super::cluster::{DnsCluster, LARGE};
use super::differences::{Difference, ROWS};
use super::questions::{Question, questions};
use super::reply::{Reply, weights};
use super::rules::Rules;
use super::servers::{Answers, Servers, USUAL_SIZE, usual};
use crate::client::{query, with_size};

/// Bytes that our encoder may need for two names.
const ROOM_FOR_NAMES: usize = 100;

/// Bytes of an A record whose name is a pointer.
const SHORTEST_RECORD: usize = 16;

/// The most failures to show.
const SHOWN: usize = 20;

pub(crate) struct Comparison<'s> {
    servers: &'s Servers,
    client: Ipv4Addr,
    pub(crate) questions: usize,
    pub(crate) seen: BTreeMap<Difference, usize>,
    unexplained: Vec<String>,
}

impl<'s> Comparison<'s> {
    pub(crate) fn new(servers: &'s Servers, client: Ipv4Addr) -> Self {
        Self {
            servers,
            client,
            questions: 0,
            seen: BTreeMap::new(),
            unexplained: Vec::new(),
        }
    }

    pub(crate) fn assert_explained(&self) {
        let count = self.unexplained.len();
        let shown = self.unexplained.iter().take(SHOWN).map(String::as_str);
        assert!(
            count == 0,
            "no reviewed difference explains these {count}:\n{}",
            shown.collect::<Vec<_>>().join("\n")
        );
    }

    /// Asks both servers for every name of the cluster.
    pub(crate) fn ask_about(&mut self, cluster: &DnsCluster) {
        let questions = questions(cluster);
        let messages = questions
            .iter()
            .map(|question| usual(&question.name, question.record_type));
        let messages: Vec<Message> = messages.collect();
        let all = self.servers.ask_all(self.client, &messages);
        self.questions += questions.len();
        for (question, answers) in questions.iter().zip(all) {
            self.compare(cluster, question, &answers);
        }
        for (name, _) in LARGE {
            if cluster.services.iter().any(|service| service.name == name) {
                self.compare_sizes(&format!("{name}.{}.svc.cluster.local.", cluster.namespace));
            }
        }
    }

    fn compare(&mut self, cluster: &DnsCluster, question: &Question, answers: &Answers) {
        let both = [&answers.theirs, &answers.ours];
        let is_cut = both.iter().any(|message| message.metadata.truncation);
        let [theirs, ours] = both.map(Reply::of);
        if !is_cut && (theirs.answers != ours.answers || theirs.additionals == ours.additionals) {
            self.compare_whole(cluster, question, answers);
            return;
        }
        let asked = query(&question.name, question.record_type);
        let over_tcp = self.servers.over_tcp(self.client, &asked);
        self.compare_whole(cluster, question, &over_tcp);
        let [theirs, ours] = [&over_tcp.theirs, &over_tcp.ours].map(Reply::of);
        if theirs.answers == ours.answers {
            self.compare_cut(&question.name, USUAL_SIZE, answers, &over_tcp);
        }
    }

    /// Compares answers that are not truncated.
    fn compare_whole(&mut self, cluster: &DnsCluster, question: &Question, answers: &Answers) {
        let weights = [&answers.theirs, &answers.ours].map(weights);
        if weights.iter().any(|weights| weights.len() > 1) {
            self.fail(format!("{question:?}: weights {weights:?}"));
        } else if weights[0] != weights[1] && !weights.contains(&BTreeSet::new()) {
            self.see(Difference::SrvWeight);
        }
        let [theirs, ours] = [&answers.theirs, &answers.ours].map(Reply::of);
        if theirs == ours {
            return;
        }
        let predict = |differences: &BTreeSet<Difference>| {
            let rules = Rules {
                cluster,
                differences: differences.clone(),
            };
            rules.predict(question)
        };
        let all = BTreeSet::from(ROWS.map(|row| row.difference));
        let predicted = [predict(&BTreeSet::new()), predict(&all)];
        if predicted != [theirs.clone(), ours.clone()] {
            self.fail(format!(
                "{question:?}\n  CoreDNS   {theirs:?}\n  predicted {:?}\n  ours      {ours:?}\n  predicted {:?}",
                predicted[0], predicted[1]
            ));
            return;
        }
        for difference in all.clone() {
            let mut others = all.clone();
            others.remove(&difference);
            if predict(&others) != ours {
                self.see(difference);
            }
        }
    }

    /// Compares the answers for a Service whose records do not fit, for clients that offer different sizes.
    fn compare_sizes(&mut self, name: &str) {
        for record_type in [RecordType::A, RecordType::SRV] {
            let plain = query(name, record_type);
            let whole = self.servers.over_tcp(self.client, &plain);
            for (size, question) in [
                (512, plain.clone()),
                (900, with_size(plain.clone(), 900)),
                (USUAL_SIZE, with_size(plain.clone(), USUAL_SIZE)),
                (4_096, with_size(plain.clone(), 4_096)),
            ] {
                let answers = self.servers.over_udp(self.client, &question);
                self.questions += 1;
                self.compare_cut(name, size, &answers, &whole);
            }
        }
    }

    /// Compares answers over UDP of which at least one is cut with the whole ones.
    fn compare_cut(&mut self, name: &str, size: u16, answers: &Answers, whole: &Answers) {
        let [theirs, ours] = [
            CutAnswer::of(&answers.theirs, &whole.theirs),
            CutAnswer::of(&answers.ours, &whole.ours),
        ];
        let is_allowed = ours.is_truncated == (ours.missing > 0)
            && theirs.is_truncated == (theirs.missing + theirs.missing_additionals > 0);
        let has_all = ours.missing == 0 && theirs.missing == 0;
        if !is_allowed {
            self.fail(format!("{name} in {size} bytes: {theirs:?} and {ours:?}"));
        } else if theirs == ours {
            // Both are cut at the same record.
        } else if size > USUAL_SIZE && theirs.missing < ours.missing {
            self.see(Difference::MessageSize);
        } else if theirs.missing != ours.missing
            && ours.has_no_additionals
            && (theirs.missing.abs_diff(ours.missing) - 1) * SHORTEST_RECORD < ROOM_FOR_NAMES
        {
            self.see(Difference::CutRecords);
        } else if has_all && ours.has_no_additionals && is_nearly_full(&answers.theirs, size) {
            self.see(Difference::Additionals);
        } else {
            self.fail(format!("{name} in {size} bytes: {theirs:?} and {ours:?}"));
        }
    }

    fn see(&mut self, difference: Difference) {
        *self.seen.entry(difference).or_insert(0) += 1;
    }

    fn fail(&mut self, text: String) {
        self.unexplained.push(text);
    }
}

fn is_nearly_full(message: &Message, size: u16) -> bool {
    let length = message.to_vec().unwrap().len();
    message.metadata.truncation || length + ROOM_FOR_NAMES > size.into()
}

/// What a message over UDP lacks of the whole answer.
#[derive(Debug, PartialEq, Eq)]
struct CutAnswer {
    is_truncated: bool,
    missing: usize,
    missing_additionals: usize,
    has_no_additionals: bool,
}

impl CutAnswer {
    fn of(message: &Message, whole: &Message) -> Self {
        let [part, all] = [message, whole].map(Reply::of);
        assert!(part.answers.is_subset(&all.answers), "{part:?} of {all:?}");
        assert!(
            part.additionals.is_subset(&all.additionals),
            "{part:?} of {all:?}"
        );
        Self {
            is_truncated: message.metadata.truncation,
            missing: all.answers.len() - part.answers.len(),
            missing_additionals: all.additionals.len() - part.additionals.len(),
            has_no_additionals: part.additionals.is_empty(),
        }
    }
}
