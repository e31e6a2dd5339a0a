//! Writes a `ValidatingAdmissionPolicy` and its binding as YAML.

use crate::write::Yaml;

const HEADER: &str =
    "# Written by `cargo xtask codegen` from crates/crd/src/admission; do not edit.\n";

#[derive(Debug)]
pub(super) struct Policy {
    pub(super) name: &'static str,
    /// API group, version and resources that it checks.
    pub(super) group: &'static str,
    pub(super) version: &'static str,
    pub(super) resources: &'static [&'static str],
    /// The requests that it checks; name and condition.
    pub(super) only_if: Vec<(&'static str, String)>,
    /// Named parts of the conditions.
    pub(super) variables: Vec<(String, String)>,
    pub(super) checks: Vec<Check>,
}

/// A condition, and the message if it does not hold.
#[derive(Debug)]
pub(super) struct Check {
    pub(super) holds: String,
    pub(super) message: String,
}

impl Check {
    pub(super) fn new(holds: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            holds: holds.into(),
            message: message.into(),
        }
    }
}

impl Policy {
    pub(super) fn documents(&self) -> String {
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
            // The API server's default. Without it every `kubectl apply` would find a difference.
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
