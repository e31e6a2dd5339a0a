//! Where a report is left: the `TopologyAgent` of this node in the API server.

use std::sync::Arc;

use crd::{GROUP, VERSION};
use kube_io::{ApiError, Connection, Fault, Patch};
use serde_json::{Value, json};

use crd::topology_agent::AgentStatus;

/// The collection of reports.
const REPORTS: &str = "/apis/topology.ipvs-topo.io/v1alpha1/topologyagents";

/// The place of one node's report.
#[derive(Debug)]
pub struct StatusClient {
    connection: Connection,
    node: Arc<str>,
}

/// What became of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteResult {
    /// It is written.
    Written,
    /// The API server does not know the kind of object.
    NoKind,
    /// There is no Node of that name, whose end would be the end of the report.
    NoNode,
}

impl StatusClient {
    /// The place of the report of `node`.
    pub fn new(connection: Connection, node: Arc<str>) -> Self {
        Self { connection, node }
    }

    /// Whose report it is.
    pub(super) fn node(&self) -> &str {
        &self.node
    }

    /// The report as it was written last; none if there is none that can be read.
    ///
    /// # Errors
    /// The API server does not answer, or refuses.
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

    /// Writes it, into a new object if there is none; `known`: whether one was read or written before.
    ///
    /// # Errors
    /// The API server does not answer, or refuses.
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
            // Somebody made it meanwhile: it is there.
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

    /// This node's own Node as an owner. It is listed rather than got: that is what the summary may do anyway.
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
