//! Selects the Services of a query, and the warnings about them.

use std::collections::{BTreeMap, BTreeSet};

use cluster::object::{Ignored, Kind, ObjectKey};
use cluster::warning::{Subject, Warning};
use topology_core::model::ObjectName;
use topology_core::snapshot::Snapshot;

use crate::describe;
use crate::view::WarningView;

/// Some Services, or all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// All Services of the input.
    All,
    /// Only these.
    Only(BTreeSet<ObjectName>),
}

impl Scope {
    /// Whether the scope contains a Service.
    pub fn has(&self, service: &ObjectName) -> bool {
        match self {
            Self::All => true,
            Self::Only(services) => services.contains(service),
        }
    }

    /// The Services of `snapshot` in the scope, by name.
    pub fn of(&self, snapshot: &Snapshot) -> Vec<ObjectName> {
        let services = snapshot.services().map(|service| &service.name);
        services.filter(|name| self.has(name)).cloned().collect()
    }

    /// The warnings in the scope, as views and as text.
    pub fn views(
        &self,
        snapshot: &Snapshot,
        warnings: &mut dyn Iterator<Item = &Warning>,
    ) -> Vec<WarningView> {
        let concerning = warnings.filter(|warning| self.concerns(snapshot, warning));
        concerning.map(describe::warning).collect()
    }

    /// Whether `warning` may affect a Service in the scope: it is about the Service, one of its slices, a policy or a
    /// drain, or about a file that may contain any of these.
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
            Kind::Node | Kind::ServiceCidr | Kind::Namespace | Kind::PodMap => false,
        }
    }
}

/// Explains why the snapshot does not have the Service `name`, and lists the other warnings about it.
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
        Some(why) => {
            let for_dns = match why {
                Ignored::Headless | Ignored::ExternalName | Ignored::OtherProxy => {
                    "; `ipvs-topo explain --dns` shows what DNS answers"
                }
                Ignored::NoClusterIp | Ignored::Fqdn | Ignored::NoService => "",
            };
            format!("Service {name} is {why}, so it has no virtual server{for_dns}")
        }
        None => format!("the input has no Service {name}"),
    };
    for warning in warnings.filter(|warning| warning.subject.key() == Some(&key)) {
        words.push_str("; ");
        words.push_str(&warning.to_string());
    }
    words
}
