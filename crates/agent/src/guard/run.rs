//! Talks to the `nft` program: lists our tables, sends one transaction.

use std::future::poll_fn;
use std::pin::Pin;
use std::process::{Output, Stdio};
use std::task::Poll;
use std::{fmt, io, mem};

use ipvs_netlink::transport::{self, AsyncConnection, NetlinkProtocol, Options};
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

use super::generation::Generation;
use super::observed::Table;
use super::{Change, Guard, PodMoves, TABLE, TableFamily, render};
use crate::fuse::Fuse;

/// Why the guard is not in place. Virtual servers work without it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum GuardError {
    /// The program is not on the `PATH`.
    #[error(
        "nft: not found: Service addresses are not guarded (unknown ports reach the host, a pod cannot call \
         its own Service, ARP requests for Service addresses are answered); install the nftables package"
    )]
    Missing,
    /// The program could not be run.
    #[error("nft: cannot be run: {0}")]
    NotRun(#[source] io::Error),
    /// The kernel or nft refused the transaction.
    #[error(
        "nft: refused the table {TABLE}: {0}; load the nf_tables module, and see that nft is 1.0 or newer"
    )]
    Refused(String),
    /// The kernel did not take elements of a set.
    #[error("table {TABLE}: elements of a set: {0}")]
    Elements(#[from] transport::Error),
}

/// What the guard's tables hold as far as we know, and the way to change that.
#[derive(Debug)]
pub(crate) struct Nft {
    program: &'static str,
    connection: AsyncConnection,
    held: Held,
    /// The ruleset that `held` is true of, if that is known.
    generation: Option<Generation>,
    /// Given up by every write, which may not be in it.
    look: Option<Look>,
}

/// A reading of the kernel's tables that goes on beside everything else.
struct Look {
    /// The ruleset in which it began.
    began: Option<Generation>,
    tables: Pin<Box<dyn Future<Output = Result<Tables, GuardError>>>>,
}

impl fmt::Debug for Look {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Look since {:?}", self.began)
    }
}

/// The kernel's tables, in the order of [`TableFamily::ALL`].
type Tables = Vec<Option<Table>>;

/// How much is known of the kernel's tables.
#[derive(Debug)]
enum Held {
    /// Nothing: before the first look, and after a failure.
    Unknown,
    /// What the kernel was seen to hold.
    Seen(Tables),
    /// What we made it hold.
    Made(Guard),
}

impl Nft {
    /// Opens a socket in the current network namespace; nothing is known of the tables yet.
    pub(crate) fn open() -> Result<Self, transport::Error> {
        Ok(Self {
            program: "nft",
            connection: AsyncConnection::open(NetlinkProtocol::NETFILTER, &Options::default())?,
            held: Held::Unknown,
            generation: None,
            look: None,
        })
    }

    /// Reads the kernel's tables; afterwards [`Nft::set`] writes only if they differ.
    pub(crate) async fn read(&mut self) -> Result<(), GuardError> {
        let began = self.ask().await;
        let seen = tables(self.program).await;
        self.saw(began, seen).await
    }

    /// Begins to read the kernel's tables, if that does not go on already and somebody may have changed them.
    pub(crate) async fn begin_look(&mut self) {
        if self.look.is_some() {
            return;
        }
        let began = self.ask().await;
        if began.is_some() && began == self.generation {
            return;
        }
        self.look = Some(Look {
            began,
            tables: Box::pin(tables(self.program)),
        });
    }

    /// Goes on with that without waiting. Once it is done takes in what was read, as [`Nft::read`] does; `None` before.
    /// Nothing is taken in if something was written meanwhile.
    pub(crate) async fn end_look(&mut self) -> Option<Result<(), GuardError>> {
        let Some(Look { began, tables }) = &mut self.look else {
            return Some(Ok(()));
        };
        let began = *began;
        let seen = poll_fn(|context| Poll::Ready(tables.as_mut().poll(context))).await;
        let Poll::Ready(seen) = seen else {
            return None;
        };
        self.look = None;
        Some(self.saw(began, seen).await)
    }

    /// Takes in what was read from `began` until now.
    async fn saw(
        &mut self,
        began: Option<Generation>,
        seen: Result<Tables, GuardError>,
    ) -> Result<(), GuardError> {
        self.forget();
        self.held = Held::Seen(seen?);
        let ended = self.ask().await;
        self.generation = ended.filter(|_| ended == began);
        Ok(())
    }

    /// The present ruleset. A kernel that does not say has its tables read.
    async fn ask(&mut self) -> Option<Generation> {
        let answer = Generation::ask(&mut self.connection).await;
        answer.ok().flatten()
    }

    /// Nothing is known until the kernel has answered, whatever comes between. Returns what was.
    fn forget(&mut self) -> (Held, Option<Generation>) {
        (
            mem::replace(&mut self.held, Held::Unknown),
            self.generation.take(),
        )
    }

    /// Whether something in `wanted` is, or may be, not in the kernel yet.
    pub(crate) fn lacks(&self, wanted: &Guard) -> bool {
        match &self.held {
            Held::Unknown => true,
            Held::Seen(seen) => !is_as_wanted(seen, wanted),
            Held::Made(held) => held.lacks_something_of(wanted),
        }
    }

    /// Makes the kernel's tables equal to `wanted`. Returns whether anything was written.
    pub(crate) async fn set(&mut self, wanted: &Guard, fuse: &Fuse) -> Result<bool, GuardError> {
        let change = match &self.held {
            Held::Made(held) => held.change_to(wanted),
            Held::Seen(seen) if is_as_wanted(seen, wanted) => Change::None,
            Held::Seen(_) | Held::Unknown => Change::Replace(render::tables(wanted)),
        };
        let script = match change {
            Change::Elements(script) | Change::Replace(script) => script,
            Change::None => {
                self.held = Held::Made(wanted.clone());
                return Ok(false);
            }
        };
        self.look = None;
        let (_, before) = self.forget();
        self.load(&script).await?;
        self.held = Held::Made(wanted.clone());
        self.generation = before.map(Generation::next);
        fuse.burn(1);
        Ok(true)
    }

    /// Whether the tables are as we made them, so that single elements can be changed.
    pub(crate) fn is_known(&self) -> bool {
        matches!(self.held, Held::Made(_))
    }

    /// Changes elements of the set of this node's endpoints. Returns whether anything was written: nothing is while the
    /// tables are not known to be as we made them, see [`Nft::is_known`].
    pub(crate) async fn move_pods(
        &mut self,
        moves: &PodMoves,
        fuse: &Fuse,
    ) -> Result<bool, GuardError> {
        let (held, mut generation) = self.forget();
        let Held::Made(mut guard) = held else {
            (self.held, self.generation) = (held, generation);
            return Ok(false);
        };
        let moves = guard.lacks_of(moves);
        let mut guarded = moves.clone();
        guarded.retain(|pod| guard.has_table_for(*pod));
        if !guarded.is_empty() {
            self.look = None;
            for transaction in guarded.transactions() {
                let mut transaction = transaction.map_err(transport::Error::from)?;
                self.connection.converse(&mut transaction).await?;
                generation = generation.map(Generation::next);
                fuse.burn(1);
            }
        }
        guard.apply(&moves);
        (self.held, self.generation) = (Held::Made(guard), generation);
        Ok(!guarded.is_empty())
    }

    /// Tables of others, as `ip kube-proxy`.
    pub(crate) async fn foreign(&self) -> Result<Vec<String>, GuardError> {
        let output = run(self.program, &["list", "tables"], None).await?;
        let text = String::from_utf8_lossy(&output.stdout);
        let tables = text
            .lines()
            .filter_map(|line| line.trim().strip_prefix("table "));
        let ours = |table: &&str| table.split(' ').nth(1) == Some(TABLE);
        Ok(tables
            .filter(|table| !ours(table))
            .map(str::to_owned)
            .collect())
    }

    /// One transaction: all of it or nothing.
    async fn load(&self, script: &str) -> Result<(), GuardError> {
        let output = run(self.program, &["-f", "-"], Some(script)).await?;
        if output.status.success() {
            return Ok(());
        }
        Err(GuardError::Refused(first_lines(&output.stderr)))
    }
}

/// The kernel's tables, as `program` lists them.
async fn tables(program: &'static str) -> Result<Tables, GuardError> {
    let mut seen = Vec::new();
    for family in TableFamily::ALL {
        seen.push(table(program, family).await?);
    }
    Ok(seen)
}

/// `None` if there is no such table.
async fn table(program: &str, family: TableFamily) -> Result<Option<Table>, GuardError> {
    let list = ["-j", "list", "table", family.word(), TABLE];
    let output = run(program, &list, None).await?;
    if !output.status.success() {
        return Ok(None);
    }
    let text = String::from_utf8_lossy(&output.stdout);
    // Output that is no JSON counts as a table unlike any that is wanted.
    Ok(Some(Table::parse(&text).unwrap_or_default()))
}

async fn run(program: &str, arguments: &[&str], input: Option<&str>) -> Result<Output, GuardError> {
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(if input.is_some() {
            Stdio::piped()
        } else {
            Stdio::null()
        })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(not_run)?;
    if let (Some(mut stdin), Some(input)) = (child.stdin.take(), input) {
        // nft reads everything before it writes anything, so this cannot block for ever;
        // if it ends early, its exit status says why.
        drop(stdin.write_all(input.as_bytes()).await);
    }
    child.wait_with_output().await.map_err(not_run)
}

fn is_as_wanted(seen: &[Option<Table>], wanted: &Guard) -> bool {
    let mut families = TableFamily::ALL.into_iter().zip(seen);
    families.all(|(family, table)| *table == Table::wanted(wanted, family))
}

fn not_run(error: io::Error) -> GuardError {
    match error.kind() {
        io::ErrorKind::NotFound => GuardError::Missing,
        _ => GuardError::NotRun(error),
    }
}

fn first_lines(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    text.lines()
        .take(2)
        .collect::<Vec<_>>()
        .join(" ")
        .trim()
        .to_owned()
}
