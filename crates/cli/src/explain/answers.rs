//! `ipvs-topo explain --dns`: shows what a client is answered for the name of one Service, and why.

use agent_api::scope::Scope;
use topology_core::model::{ObjectName, Service};

use super::missing_port::{missing_port, port_text};
use crate::args::{ExplainArgs, TextFormat};
use crate::dns_answers::DnsCluster;
use crate::dns_answers::view::ExplainedAnswersView;
use crate::exit::{ExitStatus, Failure};
use crate::offline::note_settings_of_virtual_servers;
use crate::output::{answers, print};
use crate::services::full_name;

/// # Errors
/// The input cannot be read, the Service or port does not exist, or nothing says where the client is.
pub(super) fn run(args: &ExplainArgs) -> Result<ExitStatus, Failure> {
    let origin = args.origin.get();
    let name = full_name(
        &args.target.service,
        args.namespace.as_deref(),
        Some(&origin),
    )?;
    note_settings_of_virtual_servers(&args.service);
    let cluster = DnsCluster::read(&origin, &args.service.allow_lists, args.moment.get())?;
    let view = view(&cluster, cluster.service(&name)?, args)?;
    print::result(&match args.output {
        TextFormat::Json => print::json(&view)?,
        TextFormat::Text => answers::explained(&view, print::width()),
    })?;
    args.strict
        .end(view.warnings.len(), args.output.reader(), ExitStatus::Fine)
}

fn view(
    cluster: &DnsCluster,
    service: &Service,
    args: &ExplainArgs,
) -> Result<ExplainedAnswersView, Failure> {
    let ports = cluster.ports(service);
    let port = args.target.port.as_deref();
    let port = port.map(|wanted| find(&service.name, &ports, wanted));
    let port = port.transpose()?;
    let node = args.node.as_deref();
    if !service.is_headless() {
        let scope = Scope::Only([service.name.clone()].into());
        return Ok(ExplainedAnswersView {
            service: match port {
                Some(port) => cluster.port_answers(service, port),
                None => cluster.answers(service, &node.unwrap_or_default().into()),
            },
            client: None,
            warnings: scope.views(cluster.snapshot(), &mut cluster.loaded.warnings.iter()),
        });
    }
    let client = cluster.client(args.dns.client, node)?;
    let (service, warnings) = cluster.explain(service, port, &client.node.as_str().into());
    Ok(ExplainedAnswersView {
        service,
        client: Some(client),
        warnings,
    })
}

/// The name of the port with this name or number.
fn find<'p>(
    service: &ObjectName,
    ports: &[(&'p str, u16)],
    wanted: &str,
) -> Result<&'p str, Failure> {
    let fits = |(name, number): &&(&str, u16)| *name == wanted || number.to_string() == wanted;
    match ports.iter().find(fits) {
        Some(("", number)) => Err(Failure::input(format_args!(
            "port {number} of Service {service} has no name, so DNS has no name for it; leave the port out, or give it a \
             name in the Service"
        ))),
        Some((name, _)) => Ok(name),
        None => {
            let ports = ports.iter();
            let ports = ports.map(|(name, number)| port_text(name, Some(*number)));
            Err(missing_port(
                service,
                wanted,
                &ports.collect::<Vec<_>>(),
                "no port",
            ))
        }
    }
}
