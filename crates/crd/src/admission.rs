//! Makes the `ValidatingAdmissionPolicy` objects, for rules that a CRD cannot express.
//!
//! | file | refuses |
//! | --- | --- |
//! | `service-annotations.yaml` | Services whose topology annotations the agents would not accept |
//! | `own-report.yaml` | a `TopologyAgent` written by the agent of another Node |
//!
//! The policies of optional components:
//!
//! | file | refuses |
//! | --- | --- |
//! | `components/hints/policy.yaml` | a change of the controller to more than the hints of an `EndpointSlice` |
//! | `components/label-keys/policy.yaml` | labels in annotations |

mod annotations;
mod hints;
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

/// The policies of components: the name of the component, and the text.
pub(super) fn of_components() -> Vec<(&'static str, String)> {
    vec![
        ("hints", hints::policy().documents()),
        ("label-keys", label_keys::policy().documents()),
    ]
}
