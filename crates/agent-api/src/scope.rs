//! Selects the Services that a question is about, and the warnings that concern them.

use std::collections::{BTreeMap, BTreeSet};

use cluster::object::{Ignored, Kind, ObjectKey};
use cluster::warning::{Subject, Warning};
use topology_core::model::ObjectName;
use topology_core::snapshot::Snapshot;

use crate::describe;
use crate::view::WarningView;

/// Some Services, or all that there are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// All of the input.
    All,
    /// These.
    Only(BTreeSet<ObjectName>),
}

impl Scope {
    /// Whether a Service is one of them.
    pub fn has(&self, service: &ObjectName) -> bool {
        match self {
            Self::All => true,
            Self::Only(services) => services.contains(service),
        }
    }

    /// Those of `snapshot`, by name.
    pub fn of(&self, snapshot: &Snapshot) -> Vec<ObjectName> {
        let services = snapshot.services().map(|service| &service.name);
        services.filter(|name| self.has(name)).cloned().collect()
    }

    /// Those of `warnings` that concern them, for people and programs.
    pub fn views(
        &self,
        snapshot: &Snapshot,
        warnings: &mut dyn Iterator<Item = &Warning>,
    ) -> Vec<WarningView> {
        let concerning = warnings.filter(|warning| self.concerns(snapshot, warning));
        concerning.map(describe::warning).collect()
    }

    /// Whether `warning` may be about what becomes of them: it is about one of them, one of their slices, a policy or a
    /// drain, or a file that may hold any of these.
    fn concerns(&self, snapshot: &Snapshot, warning: &Warning) -> bool {
        let Self::Only(services) = self else {
            return true;
        };
        let key = match &warning.subject {
            Subject::Object(key) => key,
            Subject::File => return true,
            Subject::Misnamed(..) | Subject::Other(..) => return false,
        };
        match key.kind {
            Kind::Service => services.contains(&key.name),
            Kind::EndpointSlice => {
                let mut slices = services.iter().flat_map(|name| snapshot.slices(name));
                slices.any(|slice| slice.name == key.name)
            }
            Kind::TopologyPolicy | Kind::ClusterTopologyPolicy | Kind::TopologyDrain => true,
            Kind::Node | Kind::ServiceCidr | Kind::Namespace => false,
        }
    }
}

/// Why nothing can be said of the Service `name`, which the snapshot has not; with what else is wrong with it.
pub fn missing(
    name: &ObjectName,
    ignored: &BTreeMap<ObjectKey, Ignored>,
    warnings: &mut dyn Iterator<Item = &Warning>,
) -> String {
    let key = ObjectKey {
        kind: Kind::Service,
        name: name.clone(),
    };
    let mut words = match ignored.get(&key) {
        Some(why) => format!("Service {name} is {why}, so it has no virtual server"),
        None => format!("the input has no Service {name} with a cluster IP"),
    };
    for warning in warnings.filter(|warning| warning.subject.key() == Some(&key)) {
        words.push_str("; ");
        words.push_str(&warning.to_string());
    }
    words
}
