//! Reads our tables over netlink, and changes them: elements over netlink, whole tables with the program `nft`.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;
use std::{collections::BTreeSet, fmt, mem};

use netlink_pipeline::{AsyncConnection, Error, NetlinkProtocol, Options};
use subprocess::ChildError;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::delta::ElementDelta;
use super::desired::{DesiredTables, PrefixLength};
use super::diff::{diff, replace};
use super::elements::transactions;
use super::error::NftError;
use super::family::TableFamily;
use super::foreign::foreign;
use super::generation::Generation;
use super::load::Load;
use super::observe::ObservedTable;
use super::sets::SetElement;
use super::table::TABLE;
use crate::crash_point::CrashPoint;

/// The program.
const NFT: &str = "nft";

/// How long a pass waits for a table that must be in place before its virtual servers. After a process took longer, no
/// pass waits until a process has finished in time again.
const GRACE: Duration = Duration::from_secs(5);

/// Our tables as far as they are known, and the means to change them.
#[derive(Debug)]
pub struct Nft {
    program: &'static str,
    connection: AsyncConnection,
    held: Held,
    /// The ruleset generation for which `held` is valid, if known.
    generation: Option<Generation>,
    /// The read or write in the background.
    job: Option<Job>,
    /// How long the next write may be waited for.
    patience: Duration,
    /// The prefix lengths of all source ranges so far. Their sets stay when they have no elements: a tenant who adds and
    /// removes one range would have every node run `nft` each time.
    lengths: BTreeSet<PrefixLength>,
}

/// The result of a request to set the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TablesChange {
    /// The tables are as desired; nothing was written.
    Same,
    /// The tables were written.
    Written,
    /// A read or write is still running; poll for its end.
    Pending,
}

/// A read or write in the background.
enum Job {
    /// Reads the kernel's tables.
    Read {
        /// The ruleset generation when it started.
        began: Option<Generation>,
        tables: Running<Tables>,
    },
    /// Writes tables.
    Load {
        /// Contents of the tables if it succeeds.
        desired: DesiredTables,
        /// The ruleset generation before it.
        before: Option<Generation>,
        /// Its end is the number of transactions.
        loaded: Running<usize>,
    },
}

type Running<T> = Pin<Box<dyn Future<Output = Result<T, NftError>>>>;

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read { began, .. } => write!(f, "Read since {began:?}"),
            Self::Load { before, .. } => write!(f, "Load after {before:?}"),
        }
    }
}

/// The kernel's tables, in the order of [`TableFamily::ALL`].
type Tables = Vec<Option<ObservedTable>>;

/// How much is known about the kernel's tables.
#[derive(Debug)]
enum Held {
    /// Nothing: before the first read, and after a failure.
    Unknown,
    /// What was read from the kernel.
    Seen(Tables),
    /// What we wrote, or read and found as desired.
    Made(DesiredTables),
}

impl Nft {
    /// Opens a socket in the current network namespace. Nothing is known about the tables yet.
    pub fn open() -> Result<Self, Error> {
        Ok(Self {
            program: NFT,
            connection: AsyncConnection::open(NetlinkProtocol::NETFILTER, &Options::default())?,
            held: Held::Unknown,
            generation: None,
            job: None,
            patience: GRACE,
            lengths: BTreeSet::new(),
        })
    }

    /// Starts to read the kernel's tables, unless a job is running or they are known to be unchanged.
    pub async fn begin_observe(&mut self) {
        if self.job.is_some() {
            return;
        }
        let began = self.read_generation().await;
        if began.is_some() && began == self.generation {
            return;
        }
        self.job = Some(Job::Read {
            began,
            tables: Box::pin(tables()),
        });
    }

    /// Commits the result of the running job without waiting for it; `None` while it runs.
    pub async fn poll_job(&mut self, crash_point: &CrashPoint) -> Option<Result<(), NftError>> {
        self.end_job(Duration::ZERO, crash_point).await
    }

    /// Waits for the running job for the rest of this pass's patience; `None` while it runs.
    pub async fn wait_job(&mut self, crash_point: &CrashPoint) -> Option<Result<(), NftError>> {
        self.end_job(self.patience, crash_point).await
    }

    /// Waits at most `limit` for the running job, and commits its result.
    async fn end_job(
        &mut self,
        limit: Duration,
        crash_point: &CrashPoint,
    ) -> Option<Result<(), NftError>> {
        let ended = match &mut self.job {
            None => return Some(Ok(())),
            Some(Job::Read { tables, .. }) => within(limit, tables).await.map(Ended::Read),
            Some(Job::Load { loaded, .. }) => within(limit, loaded).await.map(Ended::Load),
        };
        let Some(ended) = ended else {
            // A poll says nothing about how long the job takes.
            if !limit.is_zero() {
                self.patience = Duration::ZERO;
            }
            return None;
        };
        if !ended.is_hung() {
            self.patience = GRACE;
        }
        Some(match (self.job.take()?, ended) {
            (Job::Read { began, .. }, Ended::Read(seen)) => self.saw(began, seen).await,
            (
                Job::Load {
                    desired, before, ..
                },
                Ended::Load(Ok(transactions)),
            ) => {
                self.held = Held::Made(desired);
                self.generation = before.map(|before| before.after(transactions));
                crash_point.record_writes(transactions);
                Ok(())
            }
            (_, Ended::Load(loaded)) => loaded.map(drop),
            (Job::Load { .. }, Ended::Read(seen)) => seen.map(drop),
        })
    }

    /// Stores what was read since generation `began`.
    async fn saw(
        &mut self,
        began: Option<Generation>,
        seen: Result<Tables, NftError>,
    ) -> Result<(), NftError> {
        self.forget();
        self.held = Held::Seen(seen?);
        let ended = self.read_generation().await;
        self.generation = ended.filter(|_| ended == began);
        Ok(())
    }

    /// Reads the current generation. Without one the tables are read.
    async fn read_generation(&mut self) -> Option<Generation> {
        let answer = Generation::read(&mut self.connection).await;
        answer.ok().flatten()
    }

    /// Resets to unknown until the kernel has replied. Returns the previous state.
    fn forget(&mut self) -> (Held, Option<Generation>) {
        (
            mem::replace(&mut self.held, Held::Unknown),
            self.generation.take(),
        )
    }

    /// Whether something in `desired` is, or may be, missing from the kernel.
    pub fn lacks(&mut self, desired: &DesiredTables) -> bool {
        self.adopt(desired);
        match &self.held {
            Held::Unknown | Held::Seen(_) => true,
            Held::Made(held) => held.lacks_any_of(desired),
        }
    }

    /// If the kernel was read and has what is desired, that is known from now on and not compared again.
    fn adopt(&mut self, desired: &DesiredTables) {
        if let Held::Seen(seen) = &self.held
            && let Some(tables) = as_desired(seen, desired)
        {
            self.held = Held::Made(tables);
        }
    }

    /// Whether the kernel is known to have all these elements.
    pub fn holds(&self, elements: &[SetElement]) -> bool {
        let Held::Made(held) = &self.held else {
            return elements.is_empty();
        };
        elements
            .iter()
            .all(|(set, element)| held.contains(*set, element))
    }

    /// Starts to write `desired` to the kernel, and waits for at most `GRACE`.
    pub async fn set(
        &mut self,
        desired: &DesiredTables,
        crash_point: &CrashPoint,
    ) -> Result<TablesChange, NftError> {
        // A running write, or an unknown state, determines what must be written next.
        let is_unknown = matches!(self.held, Held::Unknown);
        if self.job.is_some() && is_unknown {
            match self.wait_job(crash_point).await {
                None => return Ok(TablesChange::Pending),
                Some(ended) => ended?,
            }
        }
        self.adopt(desired);
        self.lengths.extend(desired.used_lengths());
        let desired = desired.clone().keeping(self.lengths.clone());
        let load = match &self.held {
            Held::Made(held) => diff(held, &desired).map(|change| Load::whole(&change)),
            Held::Seen(tables) if tables.iter().all(Option::is_none) => {
                Some(Load::new_tables(&desired))
            }
            Held::Seen(_) | Held::Unknown => Some(Load::whole(&replace(&desired))),
        };
        let Some(load) = load else {
            self.held = Held::Made(desired);
            return Ok(TablesChange::Same);
        };
        let (_, before) = self.forget();
        self.job = Some(Job::Load {
            desired,
            before,
            loaded: Box::pin(load.run(self.program)),
        });
        match self.wait_job(crash_point).await {
            None => Ok(TablesChange::Pending),
            Some(ended) => ended.map(|()| TablesChange::Written),
        }
    }

    /// Lists tables of other programs, as `ip kube-proxy`.
    pub async fn foreign_tables(&mut self) -> Result<Vec<String>, Error> {
        foreign(&mut self.connection).await
    }

    /// Whether `delta` can be written as single elements: the tables are as we wrote them, no interval changes, and no
    /// set or table is added or deleted. The set for a prefix length of source ranges stays once it is there. Nothing
    /// can always be written.
    pub fn can_apply_elements(&self, delta: &ElementDelta) -> bool {
        match &self.held {
            Held::Made(made) => made.can_apply(delta),
            Held::Seen(_) | Held::Unknown => delta.is_empty(),
        }
    }

    /// Changes single elements of sets. Returns whether anything was written: nothing is if
    /// [`Nft::can_apply_elements`] is false.
    pub async fn apply_elements(
        &mut self,
        delta: &ElementDelta,
        crash_point: &CrashPoint,
    ) -> Result<bool, NftError> {
        let (held, mut generation) = self.forget();
        let mut made = match held {
            Held::Made(made) if made.can_apply(delta) => made,
            held => {
                (self.held, self.generation) = (held, generation);
                return Ok(false);
            }
        };
        let delta = made.missing_of(delta);
        let mut changed = delta.clone();
        changed.retain(|(_, element)| made.has_table(element.family()));
        let changed = changed.with_followers();
        if !changed.is_empty() {
            self.job = None;
            for transaction in transactions(&made, &changed) {
                let mut transaction = transaction.map_err(Error::from)?;
                self.connection.converse(&mut transaction).await?;
                generation = generation.map(Generation::next);
                crash_point.record_writes(1);
            }
        }
        made.apply(&delta);
        (self.held, self.generation) = (Held::Made(made), generation);
        Ok(!changed.is_empty())
    }
}

/// How a job ended.
enum Ended {
    Read(Result<Tables, NftError>),
    Load(Result<usize, NftError>),
}

impl Ended {
    /// Whether it took longer than a pass waits.
    fn is_hung(&self) -> bool {
        let error = match self {
            Self::Read(seen) => seen.as_ref().err(),
            Self::Load(loaded) => loaded.as_ref().err(),
        };
        matches!(error, Some(NftError::NotRun(ChildError::Hung(_))))
    }
}

/// The result of a job if it ends within `limit`; a limit of zero polls once.
async fn within<T>(limit: Duration, running: &mut Running<T>) -> Option<Result<T, NftError>> {
    if limit.is_zero() {
        let polled = poll_fn(|context| Poll::Ready(running.as_mut().poll(context))).await;
        return match polled {
            Poll::Ready(ended) => Some(ended),
            Poll::Pending => None,
        };
    }
    timeout(limit, running).await.ok()
}

/// Reads our tables in the kernel. Many elements take a while; the agent's other work goes on.
async fn tables() -> Result<Tables, NftError> {
    let read = spawn_blocking(|| TableFamily::ALL.into_iter().map(observe).collect());
    read.await
        .map_err(|error| NftError::NotRun(ChildError::NotRun(error.into())))?
}

/// Reads a table. What cannot be decoded, or was deleted meanwhile, counts as a table that differs from every desired one.
fn observe(family: TableFamily) -> Result<Option<ObservedTable>, NftError> {
    match ObservedTable::read(family) {
        Err(error @ (Error::Malformed(_) | Error::Refused(_))) => {
            tracing::debug!("nft: table {} {TABLE}: {error}", family.as_str());
            Ok(Some(ObservedTable::default()))
        }
        read => Ok(read?),
    }
}

/// The tables that were read, if they are as desired. They may have more sets for source ranges without elements, which
/// stay in the result.
pub(super) fn as_desired(
    seen: &[Option<ObservedTable>],
    desired: &DesiredTables,
) -> Option<DesiredTables> {
    let families = || TableFamily::ALL.into_iter().zip(seen);
    let lengths = families().flat_map(|(family, table)| {
        let lengths = table.iter().flat_map(ObservedTable::lengths);
        lengths.map(move |length| (family.addresses(), length))
    });
    let tables = desired.clone().keeping(lengths.collect());
    families()
        .all(|(family, table)| *table == tables.table(family).as_ref().map(ObservedTable::from))
        .then_some(tables)
}

#[cfg(test)]
mod tests {
    use topology_core::model::{Protocol, parse_range};

    use super::*;
    use crate::nftables::{Element, SetId};

    /// A program that accepts every transaction.
    const ACCEPT: &str = "true";

    fn source_range(range: &str) -> SetElement {
        let (ip, range) = ("203.0.113.7".parse().unwrap(), parse_range(range).unwrap());
        let element = Element::SourceRange(ip, Protocol::Tcp, 80, range);
        (SetId::SourceRanges, element)
    }

    fn tables(ranges: &[&str]) -> DesiredTables {
        let cidr = Element::Range(parse_range("10.96.0.0/12").unwrap());
        let tables = DesiredTables::default().with(SetId::Cidrs, [cidr]);
        let ranges = ranges.iter().map(|range| source_range(range).1);
        tables.with(SetId::SourceRanges, ranges)
    }

    fn agent() -> Nft {
        Nft {
            program: ACCEPT,
            ..Nft::open().unwrap()
        }
    }

    async fn set(nft: &mut Nft, tables: &DesiredTables) -> TablesChange {
        nft.set(tables, &CrashPoint::new(None)).await.unwrap()
    }

    /// The kernel's tables, if they are those that `nft` last wrote.
    fn kernel(nft: &Nft) -> Tables {
        let Held::Made(made) = &nft.held else {
            panic!("{nft:?}");
        };
        let table = |family| made.table(family).as_ref().map(ObservedTable::from);
        TableFamily::ALL.into_iter().map(table).collect()
    }

    #[tokio::test]
    async fn d13_a_prefix_length_that_comes_and_goes_starts_one_process() {
        let (one, two) = (
            tables(&["10.0.0.0/8"]),
            tables(&["10.0.0.0/8", "10.0.0.0/31"]),
        );
        let delta = ElementDelta {
            added: vec![source_range("10.0.0.0/31")],
            ..ElementDelta::default()
        };
        let mut nft = agent();
        assert_eq!(set(&mut nft, &one).await, TablesChange::Written);
        assert!(!nft.can_apply_elements(&delta));
        assert_eq!(set(&mut nft, &two).await, TablesChange::Written);
        let back = ElementDelta {
            removed: delta.added.clone(),
            ..ElementDelta::default()
        };
        assert!(nft.can_apply_elements(&back));
        assert_eq!(set(&mut nft, &one).await, TablesChange::Written);
        assert!(nft.can_apply_elements(&delta));
        assert_eq!(set(&mut nft, &one).await, TablesChange::Same);
        // The periodic comparison reads the tables again.
        nft.held = Held::Seen(kernel(&nft));
        assert!(!nft.lacks(&one));
        assert_eq!(set(&mut nft, &one).await, TablesChange::Same);
        assert!(nft.can_apply_elements(&delta));
    }

    #[tokio::test]
    async fn the_next_agent_deletes_the_sets_for_prefix_lengths_that_are_not_in_use() {
        let (one, two) = (
            tables(&["10.0.0.0/8"]),
            tables(&["10.0.0.0/8", "10.0.0.0/31"]),
        );
        let mut nft = agent();
        set(&mut nft, &two).await;
        set(&mut nft, &one).await;
        let mut next = agent();
        next.held = Held::Seen(kernel(&nft));
        assert!(!next.lacks(&one), "virtual servers need not wait for it");
        assert_eq!(set(&mut next, &one).await, TablesChange::Written);
        let mut new = agent();
        set(&mut new, &one).await;
        assert_eq!(kernel(&next), kernel(&new));
    }
}
