//! The rest of the machine, as the loop needs it: routes, tables, connection tracking, the record.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::watch;
use topology_core::model::IpNetwork;
use topology_core::plan::Deadline;
use topology_core::virtual_server::VirtualServerKey;

use crate::conntrack::{Cleaned, Conntrack, Flow};
use crate::crash_point::CrashPoint;
use crate::nftables::{DesiredTables, EndpointDelta, Nft, NftError, TablesChange};
use crate::ownership::Record;
use crate::ownership::draining::Draining;
use crate::routes::addresses::Interface;
use crate::routes::{LinkReport, LocalRoute, RouteError, RouteReport, RouteTable};
use crate::sysctl::{self, SysctlReport};

/// What the loop needs of the machine beside IPVS. Every write is made only where something differs.
#[expect(
    async_fn_in_trait,
    reason = "the loop runs on one thread, so no future has to be Send"
)]
pub trait Host {
    /// Writes down that `keys` are about to be created; they must not be created if this fails.
    fn claim(&mut self, keys: &[VirtualServerKey]) -> std::io::Result<()>;

    /// Writes down that `keys` are gone. `held` is everything that is still ours, for the case that
    /// the record is rewritten.
    fn release(
        &mut self,
        keys: &[VirtualServerKey],
        held: &mut dyn Iterator<Item = VirtualServerKey>,
    ) -> std::io::Result<()>;

    /// Writes down deadlines of draining real servers that begin or end. `held` is every deadline that is held, these
    /// included, for the case that the record is rewritten.
    fn save_deadlines(
        &mut self,
        changed: &[Deadline],
        held: &mut dyn Iterator<Item = Deadline>,
    ) -> std::io::Result<()>;

    /// Every address of the machine but Service addresses, and those that it would send from.
    async fn addresses(&mut self) -> Result<(Vec<Interface>, Vec<IpAddr>), RouteError>;

    /// Reads which routes of ours there are.
    async fn read_routes(&mut self) -> Result<(), RouteError>;

    /// Brings our routes to `desired`.
    async fn set_routes(
        &mut self,
        desired: &BTreeSet<LocalRoute>,
    ) -> Result<RouteReport, RouteError>;

    /// Begins to read what the tables hold, beside everything else, if another program may have changed it.
    async fn begin_observe_tables(&mut self);

    /// Takes in what was read or written beside everything else; `None` while that goes on.
    async fn poll_tables(&mut self) -> Option<Result<(), NftError>>;

    /// Whether something in `desired` is not in the tables yet.
    fn tables_lack(&self, desired: &DesiredTables) -> bool;

    /// Brings the tables to `desired`, or begins to.
    async fn apply_tables(&mut self, desired: &DesiredTables) -> Result<TablesChange, NftError>;

    /// Whether single elements of the tables can be changed: they hold what was last set.
    fn tables_are_known(&self) -> bool;

    /// Takes endpoints of this node into the tables, or out of them. Returns whether anything was written.
    async fn apply_endpoints(&mut self, delta: &EndpointDelta) -> Result<bool, NftError>;

    /// Begins to delete connection tracking entries, beside everything else; one batch at a time.
    fn begin_forgetting(&mut self, flows: BTreeSet<Flow>);

    /// How the batch ended; `None` while that goes on. Never waits.
    fn poll_forgetting(&mut self) -> Option<Cleaned>;

    /// Brings sysctls and `kube-ipvs0` to what they should be. Returns the changes made and the
    /// warnings, one line each.
    async fn prepare(&mut self) -> (Vec<String>, Vec<String>);

    /// Warnings about another proxy on this node; `None` if they are as they were when last asked. Never waits.
    fn other_proxy(&mut self) -> Option<Vec<String>>;

    /// Routes of others (inside `ranges`), and routes of ours, in the words of `ip`; and tables of others.
    async fn survey(&mut self, ranges: &BTreeSet<IpNetwork>) -> Survey;
}

/// What [`Host::survey`] found.
pub struct Survey {
    pub foreign_routes: Vec<String>,
    pub routes: Vec<String>,
    /// nftables tables of others, as `ip kube-proxy`.
    pub foreign_tables: Vec<String>,
}

/// The machine this process runs on, in its network namespace.
#[derive(Debug)]
pub struct Machine {
    record: Record,
    draining: Draining,
    table: RouteTable,
    nft: Nft,
    conntrack: Conntrack,
    sysctl_dir: PathBuf,
    other_proxy: watch::Receiver<Vec<String>>,
    crash_point: Arc<CrashPoint>,
}

impl Machine {
    /// Opens every socket; nothing is read or written yet.
    pub fn open(
        record: Record,
        draining: Draining,
        sysctl_dir: PathBuf,
        other_proxy: watch::Receiver<Vec<String>>,
        crash_point: Arc<CrashPoint>,
    ) -> Result<Self, RouteError> {
        Ok(Self {
            record,
            draining,
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
        if self.record.wants_rewrite() {
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

    fn tables_are_known(&self) -> bool {
        self.nft.is_known()
    }

    async fn apply_endpoints(&mut self, delta: &EndpointDelta) -> Result<bool, NftError> {
        self.nft.apply_endpoints(delta, &self.crash_point).await
    }

    fn begin_forgetting(&mut self, flows: BTreeSet<Flow>) {
        self.conntrack.begin(flows);
    }

    fn poll_forgetting(&mut self) -> Option<Cleaned> {
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

    async fn survey(&mut self, ranges: &BTreeSet<IpNetwork>) -> Survey {
        let held = self.table.held().iter().map(ToString::to_string).collect();
        Survey {
            routes: held,
            foreign_routes: self.table.foreign(ranges).await.unwrap_or_default(),
            foreign_tables: self.nft.foreign_tables().await.unwrap_or_default(),
        }
    }
}
