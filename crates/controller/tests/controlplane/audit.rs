//! The requests of one account in the audit log of the API server, and the RBAC rules that they
//! need.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

use serde_json::{Value, json};

use crate::kubectl::{config, established, ok, repository, server, variable};

/// The namespace of the accounts in `manifests/base`; the audit log has only these accounts.
pub(crate) const NAMESPACE: &str = "ipvs-topo-system";

/// Applies `manifests/base`.
pub(crate) fn based() {
    ok(&["apply", "-k", &repository("manifests/base")]);
    established();
}

/// Writes a kubeconfig with a token of an account of `manifests/base`; `bound` are options that
/// bind the token.
pub(crate) fn hired(account: &str, bound: &[&str], folder: &Path) -> String {
    let create = ["create", "token", account, "-n", NAMESPACE];
    let token = ok(&[&create[..], bound].concat());
    let path = folder.join("kubeconfig");
    let user = json!({"token": token.trim()});
    std::fs::write(&path, config(&server(), &user)).unwrap();
    path.to_str().unwrap().to_owned()
}

/// A completed request, or a started stream.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) verb: String,
    group: String,
    /// With its subresource: `topologydrains/status`.
    pub(crate) resource: String,
    name: String,
    pub(crate) code: u64,
}

/// The part of the audit log after a start.
pub(crate) struct Audit {
    account: &'static str,
    from: usize,
}

impl Audit {
    /// Starts now, for an account of `manifests/base`.
    pub(crate) fn of(account: &'static str) -> Self {
        let from = log().lines().count();
        Self { account, from }
    }

    /// The requests of the account since the start, in the order of the answers.
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

    /// Fails on a request that no rule allows, and on a rule that no request needed.
    #[track_caller]
    pub(crate) fn replay(&self) {
        self.replay_role(self.account);
    }

    /// Does the same for the rules of one role of the account.
    #[track_caller]
    pub(crate) fn replay_role(&self, role: &str) {
        let requests = self.requests();
        let refused = requests.iter().filter(|request| request.code == 403);
        let refused: BTreeSet<String> = refused.map(ToString::to_string).collect();
        assert!(
            refused.is_empty(),
            "forbidden because a rule is missing: {refused:#?}"
        );
        let rules = rules(role);
        assert!(!rules.is_empty(), "{role} has no rules");
        let unused = rules
            .iter()
            .filter(|rule| !requests.iter().any(|request| rule.allows(request)));
        let unused: BTreeSet<String> = unused.map(ToString::to_string).collect();
        assert!(unused.is_empty(), "unused rules: {unused:#?}");
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
        let subresource = text("/objectRef/subresource");
        let slash = if subresource.is_empty() { "" } else { "/" };
        Self {
            verb: text("/verb").to_owned(),
            group: text("/objectRef/apiGroup").to_owned(),
            resource: [text("/objectRef/resource"), slash, subresource].concat(),
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
    /// Names of the objects; all objects if empty.
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

/// The rules of the roles with this name; roles of `manifests/base` have the name of their account.
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
