//! What the API server's audit log tells of one account: what it asked for, and which of its rules that needed.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

use serde_json::{Value, json};

use crate::kubectl::{config, established, ok, repository, server, variable};

/// The namespace of our accounts in `manifests/base`; only they are in the log.
pub(crate) const NAMESPACE: &str = "ipvs-topo-system";

/// Applies `manifests/base`.
pub(crate) fn based() {
    ok(&["apply", "-k", &repository("manifests/base")]);
    established();
}

/// Writes a kubeconfig that is an account of `manifests/base` and nobody else, with a token that is `bound` so.
pub(crate) fn hired(account: &str, bound: &[&str], folder: &Path) -> String {
    let create = ["create", "token", account, "-n", NAMESPACE];
    let token = ok(&[&create[..], bound].concat());
    let path = folder.join("kubeconfig");
    let user = json!({"token": token.trim()});
    std::fs::write(&path, config(&server(), &user)).unwrap();
    path.to_str().unwrap().to_owned()
}

/// A request that ended, or a stream that began.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) verb: String,
    group: String,
    /// With its subresource: `topologydrains/status`.
    pub(crate) resource: String,
    name: String,
    pub(crate) code: u64,
}

/// The audit log from one moment on.
pub(crate) struct Audit {
    account: &'static str,
    from: usize,
}

impl Audit {
    /// Begins now, for an account of ours.
    pub(crate) fn of(account: &'static str) -> Self {
        let from = log().lines().count();
        Self { account, from }
    }

    /// What the account has asked for since, in the order in which it was answered.
    pub(crate) fn requests(&self) -> Vec<Request> {
        let user = format!("system:serviceaccount:{NAMESPACE}:{}", self.account);
        let log = log();
        let entries = log.lines().skip(self.from);
        let entries = entries.filter_map(|line| serde_json::from_str::<Value>(line).ok());
        entries
            .filter(|entry| entry["user"]["username"] == *user && !entry["objectRef"].is_null())
            .map(|entry| Request::read(&entry))
            .collect()
    }

    /// Fails on a request that no rule allows, and on a rule that no request needed. `excepted` are words of rules
    /// that stay unused here, each with a reason.
    #[track_caller]
    pub(crate) fn replay(&self, excepted: &[(&str, &str)]) {
        self.replay_role(self.account, excepted);
    }

    /// The same for the rules of one role that the account has.
    #[track_caller]
    pub(crate) fn replay_role(&self, role: &str, excepted: &[(&str, &str)]) {
        let requests = self.requests();
        let refused = requests.iter().filter(|request| request.code == 403);
        let refused: BTreeSet<String> = refused.map(ToString::to_string).collect();
        assert!(
            refused.is_empty(),
            "forbidden, for want of a rule: {refused:#?}"
        );
        let rules = rules(role);
        assert!(!rules.is_empty(), "{role} has no rules");
        let unused = rules
            .iter()
            .filter(|rule| !requests.iter().any(|request| rule.allows(request)));
        let mut unused: BTreeSet<String> = unused.map(ToString::to_string).collect();
        for (rule, reason) in excepted {
            assert!(
                unused.remove(*rule),
                "no exception any more: {rule}, {reason}"
            );
        }
        assert!(unused.is_empty(), "rules that nothing needed: {unused:#?}");
    }
}

impl Request {
    fn read(entry: &Value) -> Self {
        let text = |path: &str| {
            entry
                .pointer(path)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let part = text("/objectRef/subresource");
        let joint = if part.is_empty() { "" } else { "/" };
        Self {
            verb: text("/verb").to_owned(),
            group: text("/objectRef/apiGroup").to_owned(),
            resource: [text("/objectRef/resource"), joint, part].concat(),
            name: text("/objectRef/name").to_owned(),
            code: entry
                .pointer("/responseStatus/code")
                .and_then(Value::as_u64)
                .unwrap_or_default(),
        }
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} of \"{}\"", self.verb, self.resource, self.group)
    }
}

/// One verb on one resource, as a role allows it.
struct Rule {
    verb: String,
    group: String,
    resource: String,
    /// The only objects; any if there are none.
    names: Vec<String>,
}

impl Rule {
    fn allows(&self, request: &Request) -> bool {
        (&self.verb, &self.group, &self.resource)
            == (&request.verb, &request.group, &request.resource)
            && (self.names.is_empty() || self.names.contains(&request.name))
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} of \"{}\"", self.verb, self.resource, self.group)
    }
}

/// What the roles of a name allow; those of `manifests/base` are named after the account.
fn rules(name: &str) -> Vec<Rule> {
    let select = ["get", "clusterroles,roles", "-n", NAMESPACE, "-o", "json"];
    let listed: Value = serde_json::from_str(&ok(&select)).unwrap();
    let roles = listed["items"].as_array().unwrap();
    let own = roles
        .iter()
        .filter(|role| role["metadata"]["name"] == *name);
    let texts = |rule: &Value, field: &str| -> Vec<String> {
        let all = rule[field].as_array().into_iter().flatten();
        all.map(|text| text.as_str().unwrap().to_owned()).collect()
    };
    let mut found = Vec::new();
    for rule in own.flat_map(|role| role["rules"].as_array().unwrap()) {
        for group in texts(rule, "apiGroups") {
            for resource in texts(rule, "resources") {
                found.extend(texts(rule, "verbs").into_iter().map(|verb| Rule {
                    verb,
                    group: group.clone(),
                    resource: resource.clone(),
                    names: texts(rule, "resourceNames"),
                }));
            }
        }
    }
    found
}

fn log() -> String {
    let path = format!("{}/audit.log", variable("CONTROLPLANE_FOLDER"));
    std::fs::read_to_string(path).unwrap_or_default()
}
