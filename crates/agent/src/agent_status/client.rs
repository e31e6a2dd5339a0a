//! Reads and writes the `TopologyAgent` of this node in the API server.

use std::sync::Arc;

use crd::{GROUP, VERSION};
use kube_io::{ApiError, Connection, Fault, Patch};
use serde_json::{Value, json};

use crd::topology_agent::AgentStatus;

/// The resource of the reports.
const REPORTS: &str = "/apis/topology.ipvs-topo.io/v1alpha1/topologyagents";

/// The report object of one node.
#[derive(Debug)]
pub struct StatusClient {
    connection: Connection,
    node: Arc<str>,
}

/// The result of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteResult {
    /// It was written.
    Written,
    /// The API server does not have this kind.
    NoKind,
    /// There is no Node of that name, which the report would need as its owner.
    NoNode,
}

impl StatusClient {
    /// The report object of `node`.
    pub fn new(connection: Connection, node: Arc<str>) -> Self {
        Self { connection, node }
    }

    /// The name of the node.
    pub(super) fn node(&self) -> &str {
        &self.node
    }

    /// Reads the last report; `None` if there is none that can be parsed.
    ///
    /// # Errors
    /// The API server does not respond, or refuses.
    pub async fn read(&self) -> Result<Option<AgentStatus>, ApiError> {
        match self.connection.get(&self.path()).await {
            Ok(mut object) => {
                let status = object.get_mut("status").map(Value::take);
                Ok(status.and_then(|status| serde_json::from_value(status).ok()))
            }
            Err(error) if error.fault == Fault::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes the report, and creates the object if needed; `known`: whether it was read or written before.
    ///
    /// # Errors
    /// The API server does not respond, or refuses.
    pub async fn write(&self, report: &AgentStatus, known: bool) -> Result<WriteResult, ApiError> {
        if known {
            match self.patch(report).await {
                Err(error) if error.fault == Fault::NotFound => {}
                done => return done.map(|_| WriteResult::Written),
            }
        }
        let Some(owner) = self.owner().await? else {
            return Ok(WriteResult::NoNode);
        };
        let object = json!({
            "apiVersion": format!("{GROUP}/{VERSION}"),
            "kind": "TopologyAgent",
            "metadata": { "name": &*self.node, "ownerReferences": [owner] },
        });
        match self.connection.create(REPORTS, &object).await {
            Err(error) if error.fault == Fault::NotFound => return Ok(WriteResult::NoKind),
            // Another client created it meanwhile.
            Err(error) if error.fault != Fault::AlreadyExists => return Err(error),
            _ => {}
        }
        self.patch(report).await.map(|_| WriteResult::Written)
    }

    async fn patch(&self, report: &AgentStatus) -> Result<Value, ApiError> {
        let path = format!("{}/status", self.path());
        let status = json!({ "status": report });
        self.connection.patch(&path, Patch::Merge, &status).await
    }

    /// Reads this node's Node as an owner. A list request has the permission that the agent has anyway.
    async fn owner(&self) -> Result<Option<Value>, ApiError> {
        let path = format!("/api/v1/nodes?fieldSelector=metadata.name%3D{}", self.node);
        let nodes = self.connection.list(&path).await?;
        let uid = nodes.pointer("/items/0/metadata/uid");
        Ok(uid.map(
            |uid| json!({ "apiVersion": "v1", "kind": "Node", "name": &*self.node, "uid": uid }),
        ))
    }

    fn path(&self) -> String {
        format!("{REPORTS}/{}", self.node)
    }
}
