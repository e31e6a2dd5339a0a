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
use crate::nftables::{DesiredTables, ElementDelta, Nft, NftError, SetElement, TablesChange};
use crate::ownership::{Draining, MarkRecord, OwnershipRecord, SettingChange, SettingsRecord};
use crate::routes::addresses::Interface;
use crate::routes::{LinkReport, LocalRoute, RouteDelta, RouteError, RouteReport, RouteTable};
use crate::sysctl::{self, ConntrackSettings, ConntrackTimeouts, Needs, SysctlReport};

/// The node without its IPVS table. A write is made only if something differs.
#[expect(
    async_fn_in_trait,
    reason = "the loop runs on one thread, so no future has to be Send"
)]
pub trait Host {
    /// Records that `keys` are about to be created. If this fails, they must not be created. `held` has all our other
    /// keys, in case the record is rewritten: after a failed write the next one does that.
    fn claim(
        &mut self,
        keys: &[VirtualServerKey],
        held: &mut dyn Iterator<Item = VirtualServerKey>,
    ) -> std::io::Result<()>;

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

    /// Adds and removes single routes.
    async fn change_routes(&mut self, delta: &RouteDelta) -> Result<RouteReport, RouteError>;

    /// Adds the desired routes that were not added before, because another program had one for the same addresses.
    async fn add_taken_routes(&mut self) -> Result<RouteReport, RouteError>;

    /// Starts to read our tables in the background, if another program may have changed them.
    async fn begin_observe_tables(&mut self);

    /// The result of a background read or write of the tables; `None` while it runs.
    async fn poll_tables(&mut self) -> Option<Result<(), NftError>>;

    /// Whether something in `desired` is not in the tables yet.
    fn tables_lack(&mut self, desired: &DesiredTables) -> bool;

    /// Whether the tables are known to have all these elements.
    fn tables_hold(&self, elements: &[SetElement]) -> bool;

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

    /// Sets sysctls and creates `kube-ipvs0`.
    async fn prepare(&mut self, needs: NodeNeeds) -> Prepared;

    /// Records a setting that is about to be changed.
    fn record_setting(&mut self, change: &SettingChange) -> std::io::Result<()>;

    /// Warnings about another proxy on this node; `None` if they are the same as in the last call. Never waits.
    fn other_proxy(&mut self) -> Option<Vec<String>>;

    /// Warnings about chains that drop forwarded packets; `None` if they are the same as in the last call. Never waits.
    fn forwarding(&mut self) -> Option<Vec<String>>;

    /// Lists our routes, foreign routes inside `ranges`, and foreign tables.
    async fn list_objects(&mut self, ranges: &BTreeSet<IpNetwork>) -> HostObjects;
}

/// What decides about the settings of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeNeeds {
    /// Whether a virtual server has a scheduler that hashes the client's address.
    pub hashes: bool,
    /// Whether there are Services of IPv6.
    pub serves_v6: bool,
    /// Whether the node's own ARP requests must have an address of their link as the sender.
    pub announces_own: bool,
    /// Whether the kernel must add up counters and rates of virtual and real servers; `None` leaves it as it is. Kernels
    /// before 5.15 always do.
    pub estimation: Option<bool>,
}

/// The result of [`Host::prepare`].
#[derive(Debug, Default)]
pub struct Prepared {
    /// Changes, one line each.
    pub changed: Vec<String>,
    /// Warnings, one line each.
    pub warnings: Vec<String>,
    /// Timeouts of connection tracking.
    pub conntrack: ConntrackTimeouts,
    /// Whether counters and rates of virtual and real servers stand still, because estimation is off.
    pub counters_stopped: bool,
}

/// The files of the state folder.
#[derive(Debug)]
pub struct Records {
    pub owned: OwnershipRecord,
    pub draining: Draining,
    pub marks: MarkRecord,
    pub settings: SettingsRecord,
}

/// The configuration of a node's settings.
#[derive(Debug)]
pub struct SettingsConfig {
    /// `/proc/sys`.
    pub sysctl_dir: PathBuf,
    pub conntrack: ConntrackSettings,
}

/// The result of [`Host::list_objects`], in the notation of `ip` and `nft`.
#[derive(Debug, Default, Clone)]
pub struct HostObjects {
    pub foreign_routes: Vec<String>,
    pub routes: Vec<String>,
    /// nftables tables of other programs, as `ip kube-proxy`.
    pub foreign_tables: Vec<String>,
    /// Lists that could not be read and are empty for that reason, one warning each.
    pub failures: Vec<String>,
}

impl HostObjects {
    /// The list, or an empty one and a warning.
    fn list<E: std::fmt::Display>(
        &mut self,
        what: &str,
        listed: Result<Vec<String>, E>,
    ) -> Vec<String> {
        listed.unwrap_or_else(|error| {
            self.failures.push(format!(
                "{what} cannot be read ({error}), so none is listed"
            ));
            Vec::new()
        })
    }
}

/// The real node, in this process's network namespace.
#[derive(Debug)]
pub struct Machine {
    records: Records,
    table: RouteTable,
    nft: Nft,
    conntrack: Conntrack,
    settings: SettingsConfig,
    warnings: WarningReceivers,
    crash_point: Arc<CrashPoint>,
}

/// Warnings that tasks of their own find, one line each.
#[derive(Debug)]
pub struct WarningReceivers {
    pub other_proxy: watch::Receiver<Vec<String>>,
    pub forwarding: watch::Receiver<Vec<String>>,
}

impl Machine {
    /// Opens every socket. Reads and writes nothing yet.
    pub fn open(
        records: Records,
        settings: SettingsConfig,
        warnings: WarningReceivers,
        crash_point: Arc<CrashPoint>,
    ) -> Result<Self, RouteError> {
        Ok(Self {
            records,
            settings,
            warnings,
            table: RouteTable::open()?,
            nft: Nft::open()?,
            conntrack: Conntrack::open()?,
            crash_point,
        })
    }
}

impl Machine {
    fn set_sysctls(&mut self, needs: NodeNeeds) -> Prepared {
        let release = rustix::system::uname();
        let release = sysctl::parse_release(&release.release().to_string_lossy());
        let NodeNeeds {
            hashes,
            serves_v6,
            announces_own,
            estimation,
        } = needs;
        let SettingsConfig {
            sysctl_dir,
            conntrack,
        } = &self.settings;
        let needs = Needs {
            release: release.unwrap_or_default(),
            hashes,
            announces_own,
            estimation: estimation.filter(|_| sysctl::estimates(sysctl_dir).is_some()),
        };
        let mut writer = sysctl::SysctlWriter {
            root: sysctl_dir,
            record: &mut self.records.settings,
            crash_point: &self.crash_point,
        };
        let SysctlReport {
            changed,
            warnings,
            unrecorded,
        } = sysctl::ensure(&mut writer, &needs, conntrack);
        let mut warnings: Vec<String> = warnings.iter().map(ToString::to_string).collect();
        warnings.extend(unrecorded.map(|error| unrecorded_text(&error)));
        let forwards = sysctl::forwards_v6(sysctl_dir);
        warnings.extend(
            forwards
                .err()
                .filter(|_| serves_v6)
                .map(|text| text.to_string()),
        );
        Prepared {
            changed,
            warnings,
            conntrack: ConntrackTimeouts::read(sysctl_dir),
            counters_stopped: sysctl::estimates(sysctl_dir) == Some(false),
        }
    }
}

/// The lines, if they changed.
fn updated(warnings: &mut watch::Receiver<Vec<String>>) -> Option<Vec<String>> {
    let is_changed = warnings.has_changed().unwrap_or(false);
    is_changed.then(|| warnings.borrow_and_update().clone())
}

/// The warning about a setting that is changed without a record.
pub fn unrecorded_text(error: &std::io::Error) -> String {
    format!(
        "the old values of changed settings cannot be recorded ({error}): nothing can restore them later; see the \
         log for them, and make --state-dir writable"
    )
}

impl Host for Machine {
    fn claim(
        &mut self,
        keys: &[VirtualServerKey],
        held: &mut dyn Iterator<Item = VirtualServerKey>,
    ) -> std::io::Result<()> {
        self.records.owned.claim(keys, held, &self.crash_point)
    }

    fn release(
        &mut self,
        keys: &[VirtualServerKey],
        held: &mut dyn Iterator<Item = VirtualServerKey>,
    ) -> std::io::Result<()> {
        self.records.owned.release(keys, held, &self.crash_point)
    }

    fn save_deadlines(
        &mut self,
        changed: &[Deadline],
        held: &mut dyn Iterator<Item = Deadline>,
    ) -> std::io::Result<()> {
        let record = &mut self.records.draining;
        record.save(changed, held, &self.crash_point)
    }

    fn save_marks(
        &mut self,
        changed: &[(MarkedPort, Option<u32>)],
        held: &mut dyn Iterator<Item = (MarkedPort, u32)>,
    ) -> std::io::Result<()> {
        let record = &mut self.records.marks;
        record.save(changed, held, &self.crash_point)
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

    async fn change_routes(&mut self, delta: &RouteDelta) -> Result<RouteReport, RouteError> {
        self.table.change(delta, &self.crash_point).await
    }

    async fn add_taken_routes(&mut self) -> Result<RouteReport, RouteError> {
        self.table.add_taken(&self.crash_point).await
    }

    async fn begin_observe_tables(&mut self) {
        self.nft.begin_observe().await;
    }

    async fn poll_tables(&mut self) -> Option<Result<(), NftError>> {
        self.nft.poll_job(&self.crash_point).await
    }

    fn tables_lack(&mut self, desired: &DesiredTables) -> bool {
        self.nft.lacks(desired)
    }

    fn tables_hold(&self, elements: &[SetElement]) -> bool {
        self.nft.holds(elements)
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

    async fn prepare(&mut self, needs: NodeNeeds) -> Prepared {
        let mut prepared = self.set_sysctls(needs);
        match self.table.ensure_link(&self.crash_point).await {
            Ok(LinkReport::Present) => {}
            Ok(LinkReport::Created) => {
                prepared.changed.push("link kube-ipvs0 created".to_owned());
            }
            Ok(LinkReport::Refused(words)) => prepared.warnings.push(format!(
                "link kube-ipvs0 cannot be created ({words}): network plugins that look for it may not see that \
                 Services are served by IPVS; load the module with `modprobe dummy`"
            )),
            Err(error) => prepared.warnings.push(error.to_string()),
        }
        prepared
    }

    fn record_setting(&mut self, change: &SettingChange) -> std::io::Result<()> {
        self.records.settings.save(change, &self.crash_point)
    }

    fn other_proxy(&mut self) -> Option<Vec<String>> {
        updated(&mut self.warnings.other_proxy)
    }

    fn forwarding(&mut self) -> Option<Vec<String>> {
        updated(&mut self.warnings.forwarding)
    }

    async fn list_objects(&mut self, ranges: &BTreeSet<IpNetwork>) -> HostObjects {
        let mut objects = HostObjects {
            routes: self.table.held().iter().map(ToString::to_string).collect(),
            ..HostObjects::default()
        };
        let routes = self.table.foreign(ranges).await;
        objects.foreign_routes = objects.list("foreign routes", routes);
        let tables = self.nft.foreign_tables().await;
        objects.foreign_tables = objects.list("foreign nftables tables", tables);
        objects
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_that_cannot_be_read_is_a_warning_and_not_an_empty_list() {
        let mut objects = HostObjects::default();
        let tables = objects.list("tables", Ok::<_, RouteError>(vec!["ip nat".to_owned()]));
        assert_eq!(
            (tables, objects.failures.len()),
            (vec!["ip nat".to_owned()], 0)
        );
        let busy = std::io::Error::from_raw_os_error(16);
        assert_eq!(objects.list("tables", Err(busy)), [""; 0]);
        assert_eq!(
            objects.failures,
            ["tables cannot be read (Device or resource busy (os error 16)), so none is listed"]
        );
    }
}
