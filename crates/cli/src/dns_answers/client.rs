//! The client of a question, and its Node.

use std::net::IpAddr;
use std::sync::Arc;

use dns::{ClientPlace, PlacementRule};
use topology_core::address_index::AddressIndex;

use super::DnsCluster;
use super::view::ClientView;
use crate::exit::Failure;

impl DnsCluster {
    /// The Node of the client of a server on `server_node`; without an address any client of that node.
    ///
    /// # Errors
    /// Neither is given, or only the server's node can say where the client is.
    pub(crate) fn client(
        &self,
        address: Option<IpAddr>,
        server_node: Option<&str>,
    ) -> Result<ClientView, Failure> {
        match (address, server_node) {
            (None, None) => Err(Failure::input(
                "the answers depend on the client; add --client IP, or --node NAME for a client of that node",
            )),
            (None, Some(node)) => Ok(ClientView {
                address: None,
                node: node.to_owned(),
                rule: None,
                words: format!("any client of node {node}"),
            }),
            (Some(address), server_node) => self.placed(address, server_node),
        }
    }

    fn placed(&self, address: IpAddr, server_node: Option<&str>) -> Result<ClientView, Failure> {
        let own: Arc<str> = server_node.unwrap_or_default().into();
        let addresses = AddressIndex::of(self.snapshot());
        let ClientPlace { node, rule } =
            ClientPlace::find(self.snapshot(), &addresses, &own, address);
        if rule == PlacementRule::Unknown && server_node.is_none() {
            return Err(Failure::input(format_args!(
                "--client {address}: no Node has the address or a pod range around it, and no PodMap and no endpoint has it, so it \
                 counts as a client of the server's node; add --node NAME, the node of the server that it asks"
            )));
        }
        Ok(ClientView {
            address: Some(address),
            words: format!("{address}: {} (rule {})", words(rule, &node), rule.number()),
            node: node.to_string(),
            rule: Some(rule.number()),
        })
    }
}

fn words(rule: PlacementRule, node: &str) -> String {
    match rule {
        PlacementRule::ServerNode => {
            format!("node {node}, on which the server runs, has it, or a pod range around it")
        }
        PlacementRule::PodRange => format!("node {node} has the smallest pod range around it"),
        PlacementRule::PodMap => format!("the PodMap of node {node} has it"),
        PlacementRule::NodeAddress => format!("it is an address of node {node}"),
        PlacementRule::Endpoint => format!("an endpoint with this address is on node {node}"),
        PlacementRule::Unknown => {
            format!(
                "no node, no PodMap and no endpoint has it, so it counts for the server's node, {node}"
            )
        }
    }
}
