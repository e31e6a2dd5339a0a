//! Reads a cluster once from its API server, as [`source::read`](crate::source::read) reads files.

use std::time::Duration;

use tokio::time::{Instant, timeout};
use topology_core::model::ObjectName;

use super::watch::{Phase, SyncStatus, WatchOptions, watch};
use crate::claims;
use crate::event::Completeness;
use crate::index::Index;
use crate::source::{Loaded, Options, Watch};
use crate::unused_policies::{self, NodeLabels};
use crate::warning::Warning;
use kube_io::{Access, AccessError, Address, ApiError, Connection, Fault};

/// How often the state of the resources is checked while no batch comes.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// A read that takes longer calls `waiting`.
const WAITING_AFTER: Duration = Duration::from_secs(2);

/// How long the API server may send nothing before the read fails.
const DATA_TIMEOUT: Duration = Duration::from_secs(20);

/// Why the cluster could not be read.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// No address or no credentials of an API server can be used.
    #[error(transparent)]
    Access(#[from] AccessError),
    #[error("{server}: {error}")]
    Api {
        server: String,
        error: Box<ApiError>,
    },
    /// The server sent nothing for `seconds`, or the watch ended.
    #[error(
        "{server}: no data for {seconds} s before all resources were listed; try again, or \
         check the load of the API server"
    )]
    Late { server: String, seconds: u64 },
}

/// Reads the whole cluster once.
///
/// Blocks, and must not be called in a task of a runtime. If the read takes more than two seconds,
/// calls `waiting` once with the server's address.
///
/// # Errors
/// Fails if a resource may not be read: decisions from a part of the cluster would be wrong.
pub fn read(
    access: &Access,
    options: &Options,
    waiting: impl FnOnce(&str),
) -> Result<Loaded, FetchError> {
    let watch = watch(
        access,
        WatchOptions {
            allowed: options.allowed.clone(),
            services: options.services,
            ..WatchOptions::default()
        },
    )?;
    let runtime = runtime()?;
    let index = runtime.block_on(read_all(watch, options, waiting))?;
    let mut warnings: Vec<Warning> = index.warnings().cloned().collect();
    warnings.extend(unused_policies::warnings(
        index.snapshot(),
        options.now,
        NodeLabels::All,
        |_| None,
    ));
    warnings.extend(claims::warnings(index.snapshot(), |_| None));
    Ok(Loaded {
        warnings,
        skipped: index.skipped(),
        ignored: index.ignored().clone(),
        completeness: Completeness::Whole,
        snapshot: index.into_snapshot(),
    })
}

/// Reads the annotations of the Service `name` whose keys begin with `prefix`; none if the Service
/// does not exist. Blocks, as [`read`].
pub fn annotations(
    access: &Access,
    name: &ObjectName,
    prefix: &str,
) -> Result<Vec<(String, String)>, FetchError> {
    let path = format!(
        "/api/v1/namespaces/{}/services/{}",
        name.namespace, name.name
    );
    let (server, answer) = runtime()?.block_on(async {
        let connection = Connection::open(access).await?;
        let answer = connection.get(&path).await;
        Ok::<_, AccessError>((connection.server().to_owned(), answer))
    })?;
    let service = match answer {
        Err(error) if error.fault == Fault::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(server, error)),
        Ok(service) => service,
    };
    let annotations = service.pointer("/metadata/annotations");
    let entries = annotations.and_then(serde_json::Value::as_object);
    let texts = entries
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())));
    Ok(texts.filter(|(key, _)| key.starts_with(prefix)).collect())
}

/// Finds the server's address and its kubeconfig context. Blocks, as [`read`]; sends no request.
pub fn address(access: &Access) -> Result<Address, AccessError> {
    runtime()?.block_on(access.address())
}

/// Finds the namespace that kubectl uses for a name without one. Blocks, as [`read`]; sends no
/// request.
pub fn namespace(access: &Access) -> Result<String, AccessError> {
    runtime()?.block_on(access.namespace())
}

fn runtime() -> Result<tokio::runtime::Runtime, AccessError> {
    let built = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    built.map_err(|error| AccessError::Thread(error.to_string()))
}

/// Applies batches until everything was read.
async fn read_all(
    mut watch: Watch,
    options: &Options,
    waiting: impl FnOnce(&str),
) -> Result<Index, FetchError> {
    let sync_status = watch.sync_status().cloned();
    let server = sync_status
        .as_ref()
        .map_or_else(String::new, |sync_status| sync_status.server().to_owned());
    let mut index = options.index();
    let began = Instant::now();
    let mut waiting = Some(waiting);
    let mut deadline = began + DATA_TIMEOUT;
    while index.completeness() != Some(Completeness::Whole) {
        if let Some(waiting) = waiting.take_if(|_| began.elapsed() > WAITING_AFTER) {
            waiting(&server);
        }
        if let Ok(batch) = timeout(POLL_INTERVAL, watch.next()).await {
            let Some(batch) = batch else { break };
            drop(index.apply(batch));
            // A large cluster may take longer, as long as data comes.
            deadline = Instant::now() + DATA_TIMEOUT;
            continue;
        }
        let late = Instant::now() > deadline;
        if let Some(error) = sync_status
            .as_ref()
            .and_then(|sync_status| lasting_error(sync_status, late))
        {
            return Err(failed(server, error));
        }
        if late {
            break;
        }
    }
    if index.completeness() == Some(Completeness::Whole) {
        return Ok(index);
    }
    Err(FetchError::Late {
        server,
        seconds: DATA_TIMEOUT.as_secs(),
    })
}

fn failed(server: String, error: ApiError) -> FetchError {
    let error = Box::new(error);
    FetchError::Api { server, error }
}

/// Returns an error that will not pass by itself; if `late`, any error. A list whose continue token has expired begins
/// again.
fn lasting_error(sync_status: &SyncStatus, late: bool) -> Option<ApiError> {
    let resources = sync_status.resources().into_iter();
    let mut waiting = resources.filter(|resource| resource.phase == Phase::Listing);
    waiting.find_map(|resource| {
        resource
            .error
            .filter(|error| late || !(error.fault.is_passing() || error.fault == Fault::Gone))
    })
}
