//! The `ValidatingAdmissionPolicy` objects: what the API server itself refuses besides what CRDs can say.
//!
//! | file | refuses |
//! | --- | --- |
//! | `service-annotations.yaml` | Services whose topology annotations no agent would accept |
//! | `own-report.yaml` | a `TopologyAgent` written by the agent of another Node |
//!
//! And for those who want it, as a component: `components/label-keys/policy.yaml` refuses labels in annotations.

mod annotations;
mod label_keys;
mod own_report;
mod values;

use super::write::Yaml;

const HEADER: &str =
    "# Written by `cargo xtask codegen` from crates/cluster/src/schema/admission; do not edit.\n";

/// Every file: its name in `manifests/admission`, and its text.
pub(super) fn all() -> Vec<(&'static str, String)> {
    vec![
        (
            "service-annotations.yaml",
            annotations::policy().documents(),
        ),
        ("own-report.yaml", own_report::policy().documents()),
    ]
}

/// The policy of the component `label-keys`.
pub(super) fn label_keys() -> String {
    label_keys::policy().documents()
}

/// A policy and its binding.
#[derive(Debug)]
struct Policy {
    name: &'static str,
    /// API group, version and resources that it looks at.
    group: &'static str,
    version: &'static str,
    resources: &'static [&'static str],
    /// Requests for which it has nothing to say; name and condition.
    only_if: Vec<(&'static str, String)>,
    /// Parts of the conditions that have a name.
    variables: Vec<(String, String)>,
    checks: Vec<Check>,
}

/// What must hold, and what is told if it does not.
#[derive(Debug)]
struct Check {
    holds: String,
    message: String,
}

impl Check {
    fn new(holds: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            holds: holds.into(),
            message: message.into(),
        }
    }
}

impl Policy {
    fn documents(&self) -> String {
        let (policy, binding) = (self.policy().document(), self.binding().document());
        format!("{HEADER}{policy}---\n{binding}")
    }

    fn policy(&self) -> Yaml {
        let mut spec = vec![
            ("failurePolicy", Yaml::text("Fail")),
            ("matchConstraints", self.constraints()),
        ];
        if !self.only_if.is_empty() {
            let conditions = self.only_if.iter();
            let conditions = conditions.map(|(name, holds)| named(name, holds)).collect();
            spec.push(("matchConditions", Yaml::List(conditions)));
        }
        if !self.variables.is_empty() {
            let variables = self.variables.iter();
            let variables = variables.map(|(name, is)| named(name, is)).collect();
            spec.push(("variables", Yaml::List(variables)));
        }
        let checks = self.checks.iter().map(check).collect();
        spec.push(("validations", Yaml::List(checks)));
        object("ValidatingAdmissionPolicy", self.name, spec)
    }

    fn binding(&self) -> Yaml {
        let deny = Yaml::List(vec![Yaml::text("Deny")]);
        let spec = vec![
            ("policyName", Yaml::text(self.name)),
            ("validationActions", deny),
        ];
        object("ValidatingAdmissionPolicyBinding", self.name, spec)
    }

    fn constraints(&self) -> Yaml {
        let texts = |texts: &[&str]| Yaml::List(texts.iter().map(|one| Yaml::text(*one)).collect());
        let rule = Yaml::Map(vec![
            ("apiGroups", texts(&[self.group])),
            ("apiVersions", texts(&[self.version])),
            ("operations", texts(&["CREATE", "UPDATE"])),
            ("resources", texts(self.resources)),
            // What the API server would fill in: without it every `kubectl apply` would find a difference.
            ("scope", Yaml::text("*")),
        ]);
        Yaml::Map(vec![("resourceRules", Yaml::List(vec![rule]))])
    }
}

fn object(kind: &str, name: &str, spec: Vec<(&'static str, Yaml)>) -> Yaml {
    Yaml::Map(vec![
        ("apiVersion", Yaml::text("admissionregistration.k8s.io/v1")),
        ("kind", Yaml::text(kind)),
        ("metadata", Yaml::Map(vec![("name", Yaml::text(name))])),
        ("spec", Yaml::Map(spec)),
    ])
}

fn named(name: &str, expression: &str) -> Yaml {
    Yaml::Map(vec![
        ("name", Yaml::text(name)),
        ("expression", Yaml::text(expression)),
    ])
}

fn check(check: &Check) -> Yaml {
    Yaml::Map(vec![
        ("expression", Yaml::text(&check.holds)),
        ("message", Yaml::text(&check.message)),
    ])
}
