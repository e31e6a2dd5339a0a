//! Makes the `ValidatingAdmissionPolicy` objects, for rules that a CRD cannot express.
//!
//! | file | refuses |
//! | --- | --- |
//! | `service-annotations.yaml` | Services whose topology annotations the agents would not accept |
//! | `own-report.yaml` | a `TopologyAgent` written by the agent of another Node |
//!
//! The optional component `components/label-keys/policy.yaml` refuses labels in annotations.

mod annotations;
mod label_keys;
mod own_report;
mod policy;
mod values;

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
