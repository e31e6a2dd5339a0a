//! How clients reach a Service, and which Services a node proxy serves.

use super::meta;
use super::policy;
use super::report::Report;
use crate::ServiceSelection;
use crate::object::Ignored;
use object_tree::Field;

/// Fails if a label leaves the Service to another proxy, or to none (KP-IN-01).
fn labelled_ours(root: &Field<'_>, report: &mut Report) -> Result<(), Ignored> {
    if meta::has_label(root, meta::LABEL_PROXY_NAME) {
        return Err(Ignored::OtherProxy);
    }
    if meta::has_label(root, meta::LABEL_HEADLESS) {
        policy::warn_not_served(root, Ignored::Headless, report);
        return Err(Ignored::Headless);
    }
    Ok(())
}

/// How clients reach a Service.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Reached {
    AtClusterIps,
    AtEndpoints,
    ByOtherName,
}

impl Reached {
    /// Fails if the consumer does not use the Service.
    pub(super) fn of(
        root: &Field<'_>,
        spec: &Field<'_>,
        services: ServiceSelection,
        report: &mut Report,
    ) -> Result<Self, Ignored> {
        match services {
            ServiceSelection::All => Self::of_spec(spec, report),
            ServiceSelection::ProxiedAndHeadless => Self::proxied_or_headless(root, spec, report),
            ServiceSelection::Proxied => {
                labelled_ours(root, report)?;
                let reached = Self::of_spec(spec, report)?;
                reached.served_by_proxies(root, report)?;
                Ok(reached)
            }
        }
    }

    /// Fails if neither a node proxy serves the Service, nor clients reach its endpoints by DNS.
    fn proxied_or_headless(
        root: &Field<'_>,
        spec: &Field<'_>,
        report: &mut Report,
    ) -> Result<Self, Ignored> {
        let reached = Self::of_spec(spec, report)?;
        if reached != Self::AtEndpoints {
            labelled_ours(root, report)?;
            reached.served_by_proxies(root, report)?;
        }
        Ok(reached)
    }

    /// Fails if the Service has no cluster IP yet.
    fn of_spec(spec: &Field<'_>, report: &mut Report) -> Result<Self, Ignored> {
        if spec.get("type").text(report) == Some("ExternalName") {
            return Ok(Self::ByOtherName);
        }
        let cluster_ip = spec.get("clusterIP").text(report).unwrap_or_default();
        let several = spec.get("clusterIPs");
        let first = several.items(report).next();
        let first = first.and_then(|first| first.text(report));
        if cluster_ip == "None" || first == Some("None") {
            return Ok(Self::AtEndpoints);
        }
        if cluster_ip.is_empty() && !several.is_present() {
            let field = spec.get("clusterIP");
            let message =
                "no cluster IP; in a file it is required, because no API server allocates it";
            report.warn(
                &field,
                message,
                "add `clusterIP: <address>`, or None for a headless Service",
            );
            return Err(Ignored::NoClusterIp);
        }
        Ok(Self::AtClusterIps)
    }

    /// Fails if no node proxy serves the Service (KP-IN-07).
    fn served_by_proxies(self, root: &Field<'_>, report: &mut Report) -> Result<(), Ignored> {
        let why = match self {
            Self::AtClusterIps => return Ok(()),
            Self::AtEndpoints => Ignored::Headless,
            Self::ByOtherName => Ignored::ExternalName,
        };
        policy::warn_not_served(root, why, report);
        Err(why)
    }
}
