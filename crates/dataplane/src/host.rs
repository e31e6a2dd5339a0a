//! The interface [`Host`] to a node's routes, nftables tables, connection tracking and records on disk.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::watch;
use topology_core::model::IpNetwork;
use topology_core::plan::Deadline;
use topology_core::snapshot::MarkedPort;
use topology_core::virtual_server::VirtualServerKey;

use crate::conntrack::{Conntrack, Flow, FlowDeletion};
use crate::crash_point::CrashPoint;
use crate::nftables::{DesiredTables, ElementDelta, Nft, NftError, TablesChange};
use crate::ownership::{Draining, MarkRecord, OwnershipRecord};
use crate::routes::addresses::Interface;
use crate::routes::{LinkReport, LocalRoute, RouteError, RouteReport, RouteTable};
use crate::sysctl::{self, SysctlReport};

/// The node without its IPVS table. A write is made only if something differs.
#[expect(
    async_fn_in_trait,
    reason = "the loop runs on one thread, so no future has to be Send"
)]
pub trait Host {
    /// Records that `keys` are about to be created. If this fails, they must not be created.
    fn claim(&mut self, keys: &[VirtualServerKey]) -> std::io::Result<()>;

    /// Records that `keys` are deleted. `held` has all our remaining keys, in case the record is
    /// rewritten.
    fn release(
        &mut self,
        keys: &[VirtualServerKey],
        held: &mut dyn Iterator<Item = VirtualServerKey>,
    ) -> std::io::Result<()>;

    /// Records deadlines of draining real servers that begin or end. `held` iterates over all deadlines, including
    /// these, in case the record is rewritten.
    fn save_deadlines(
        &mut self,
        changed: &[Deadline],
        held: &mut dyn Iterator<Item = Deadline>,
    ) -> std::io::Result<()>;

    /// Records firewall marks that are allocated (`Some`) or released. `held` iterates over all marks, including these,
    /// in case the record is rewritten.
    fn save_marks(
        &mut self,
        changed: &[(MarkedPort, Option<u32>)],
        held: &mut dyn Iterator<Item = (MarkedPort, u32)>,
    ) -> std::io::Result<()>;

    /// Reads the node's addresses except Service addresses, and the source addresses of its default routes.
    async fn addresses(&mut self) -> Result<(Vec<Interface>, Vec<IpAddr>), RouteError>;

    /// Reads our routes from the kernel.
    async fn read_routes(&mut self) -> Result<(), RouteError>;

    /// Applies the desired routes.
    async fn set_routes(
        &mut self,
        desired: &BTreeSet<LocalRoute>,
    ) -> Result<RouteReport, RouteError>;

    /// Starts to read our tables in the background, if another program may have changed them.
    async fn begin_observe_tables(&mut self);

    /// The result of a background read or write of the tables; `None` while it runs.
    async fn poll_tables(&mut self) -> Option<Result<(), NftError>>;

    /// Whether something in `desired` is not in the tables yet.
    fn tables_lack(&self, desired: &DesiredTables) -> bool;

    /// Applies the desired tables, in the background if that takes long.
    async fn apply_tables(&mut self, desired: &DesiredTables) -> Result<TablesChange, NftError>;

    /// Whether `delta` can be written as single elements: the tables hold what was set last, no interval changes, and no
    /// set or table is added or deleted.
    fn can_apply_elements(&self, delta: &ElementDelta) -> bool;

    /// Adds and removes single elements of sets, without a process. Returns whether anything was written: nothing is if
    /// [`Host::can_apply_elements`] is false.
    async fn apply_elements(&mut self, delta: &ElementDelta) -> Result<bool, NftError>;

    /// Starts to delete connection tracking entries in the background, one batch at a time.
    fn begin_flow_deletion(&mut self, flows: BTreeSet<Flow>);

    /// The result of the batch; `None` while it runs. Never waits.
    fn poll_flow_deletion(&mut self) -> Option<FlowDeletion>;

    /// Sets sysctls and creates `kube-ipvs0`. Returns changes and warnings, one line each.
    async fn prepare(&mut self) -> (Vec<String>, Vec<String>);

    /// Warnings about another proxy on this node; `None` if they are the same as in the last call. Never waits.
    fn other_proxy(&mut self) -> Option<Vec<String>>;

    /// Lists our routes, foreign routes inside `ranges`, and foreign tables.
    async fn list_objects(&mut self, ranges: &BTreeSet<IpNetwork>) -> HostObjects;
}

/// The result of [`Host::list_objects`], in the notation of `ip` and `nft`.
pub struct HostObjects {
    pub foreign_routes: Vec<String>,
    pub routes: Vec<String>,
    /// nftables tables of other programs, as `ip kube-proxy`.
    pub foreign_tables: Vec<String>,
}

/// The real node, in this process's network namespace.
#[derive(Debug)]
pub struct Machine {
    record: OwnershipRecord,
    draining: Draining,
    marks: MarkRecord,
    table: RouteTable,
    nft: Nft,
    conntrack: Conntrack,
    sysctl_dir: PathBuf,
    other_proxy: watch::Receiver<Vec<String>>,
    crash_point: Arc<CrashPoint>,
}

impl Machine {
    /// Opens every socket. Reads and writes nothing yet.
    pub fn open(
        record: OwnershipRecord,
        draining: Draining,
        marks: MarkRecord,
        sysctl_dir: PathBuf,
        other_proxy: watch::Receiver<Vec<String>>,
        crash_point: Arc<CrashPoint>,
    ) -> Result<Self, RouteError> {
        Ok(Self {
            record,
            draining,
            marks,
            sysctl_dir,
            other_proxy,
            table: RouteTable::open()?,
            nft: Nft::open()?,
            conntrack: Conntrack::open()?,
            crash_point,
        })
    }
}

impl Host for Machine {
    fn claim(&mut self, keys: &[VirtualServerKey]) -> std::io::Result<()> {
        self.record.claim(keys, &self.crash_point)
    }

    fn release(
        &mut self,
        keys: &[VirtualServerKey],
        held: &mut dyn Iterator<Item = VirtualServerKey>,
    ) -> std::io::Result<()> {
        self.record.release(keys, &self.crash_point)?;
        if self.record.needs_rewrite() {
            self.record.rewrite(held)?;
        }
        Ok(())
    }

    fn save_deadlines(
        &mut self,
        changed: &[Deadline],
        held: &mut dyn Iterator<Item = Deadline>,
    ) -> std::io::Result<()> {
        self.draining.save(changed, held, &self.crash_point)
    }

    fn save_marks(
        &mut self,
        changed: &[(MarkedPort, Option<u32>)],
        held: &mut dyn Iterator<Item = (MarkedPort, u32)>,
    ) -> std::io::Result<()> {
        self.marks.save(changed, held, &self.crash_point)
    }

    async fn addresses(&mut self) -> Result<(Vec<Interface>, Vec<IpAddr>), RouteError> {
        Ok((
            self.table.interfaces().await?,
            self.table.default_sources().await?,
        ))
    }

    async fn read_routes(&mut self) -> Result<(), RouteError> {
        self.table.read().await
    }

    async fn set_routes(
        &mut self,
        desired: &BTreeSet<LocalRoute>,
    ) -> Result<RouteReport, RouteError> {
        self.table.set(desired, &self.crash_point).await
    }

    async fn begin_observe_tables(&mut self) {
        self.nft.begin_observe().await;
    }

    async fn poll_tables(&mut self) -> Option<Result<(), NftError>> {
        self.nft.poll_job(&self.crash_point).await
    }

    fn tables_lack(&self, desired: &DesiredTables) -> bool {
        self.nft.lacks(desired)
    }

    async fn apply_tables(&mut self, desired: &DesiredTables) -> Result<TablesChange, NftError> {
        self.nft.set(desired, &self.crash_point).await
    }

    fn can_apply_elements(&self, delta: &ElementDelta) -> bool {
        self.nft.can_apply_elements(delta)
    }

    async fn apply_elements(&mut self, delta: &ElementDelta) -> Result<bool, NftError> {
        self.nft.apply_elements(delta, &self.crash_point).await
    }

    fn begin_flow_deletion(&mut self, flows: BTreeSet<Flow>) {
        self.conntrack.begin(flows);
    }

    fn poll_flow_deletion(&mut self) -> Option<FlowDeletion> {
        self.conntrack.result()
    }

    async fn prepare(&mut self) -> (Vec<String>, Vec<String>) {
        let release = rustix::system::uname()
            .release()
            .to_string_lossy()
            .into_owned();
        let release = sysctl::parse_release(&release).unwrap_or_default();
        let SysctlReport {
            mut changed,
            warnings,
        } = sysctl::ensure(&self.sysctl_dir, release, &self.crash_point);
        let mut warnings: Vec<String> = warnings.iter().map(ToString::to_string).collect();
        match self.table.ensure_link(&self.crash_point).await {
            Ok(LinkReport::Present) => {}
            Ok(LinkReport::Created) => changed.push("link kube-ipvs0 created".to_owned()),
            Ok(LinkReport::Refused(words)) => warnings.push(format!(
                "link kube-ipvs0 cannot be created ({words}): network plugins that look for it may not see that \
                 Services are served by IPVS; load the module with `modprobe dummy`"
            )),
            Err(error) => warnings.push(error.to_string()),
        }
        (changed, warnings)
    }

    fn other_proxy(&mut self) -> Option<Vec<String>> {
        let is_news = self.other_proxy.has_changed().unwrap_or(false);
        is_news.then(|| self.other_proxy.borrow_and_update().clone())
    }

    async fn list_objects(&mut self, ranges: &BTreeSet<IpNetwork>) -> HostObjects {
        let held = self.table.held().iter().map(ToString::to_string).collect();
        HostObjects {
            routes: held,
            foreign_routes: self.table.foreign(ranges).await.unwrap_or_default(),
            foreign_tables: self.nft.foreign_tables().await.unwrap_or_default(),
        }
    }
}
