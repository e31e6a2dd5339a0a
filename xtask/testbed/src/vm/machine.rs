//! One guest: a QEMU process with two serial ports. The first is the kernel's console and goes
//! to a file; the second belongs to the job and is read line by line (or is the person's
//! terminal). KVM is never used, so that a guest behaves the same on every machine.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, bail, ensure};

use super::command;
use super::image::{self, Addition};
use super::kernel::Kernel;
use super::store::{self, Store};
use super::tools::Tools;

/// Words in a kernel's console that are never all right, whatever the job says.
const ALARMS: [&str; 5] = [
    "BUG:",
    "Oops:",
    "Kernel panic",
    "general protection fault",
    "UBSAN:",
];

/// Lines of the console that are shown when something fails.
const TAIL: usize = 60;

/// A plain processor: what a richer one offers (`rep movsb` above all) is slower when emulated.
const CPU: &str = "qemu64,+rdrand";

/// Kernel arguments for an emulated machine, which change nothing that is tested.
///
/// Some save time: no self-tests of ciphers, no mitigations for a processor that is not there, no
/// sampling of memory accesses, which newer kernels do all the time.
///
/// `tsc=reliable` ends the kernel's comparing of its processors' clocks, which are one here. In
/// Linux 7.2 it hung one boot of a hundred on a busy machine: a processor waits for another's
/// reading with interrupts off, its patience measured by the jiffies that it counts itself, while
/// the other waits for the first in `stop_machine` (`watchdog_check_skew` in the kernel's
/// `kernel/time/clocksource.c`).
pub(crate) const EMULATED: &str = "mitigations=off cryptomgr.notests damon_stat.enabled=0 \
     tsc=reliable initcall_blacklist=crypto_kdf108_init,jent_mod_init";

/// What a guest's clock goes by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Pace {
    /// This machine's time: two processors, each as fast as this machine lets it be.
    Real,
    /// This machine's time beside other guests: one processor, because two of one guest would wait for each other's locks.
    #[value(skip)]
    Shared,
    /// Its own instructions: one processor, 4 ns for each, whatever else this machine does; idle time passes at once.
    Counted,
}

impl Pace {
    /// QEMU's words for it.
    pub(crate) fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::Real => &["-accel", "tcg,thread=multi", "-smp", "2"],
            Self::Shared => &["-accel", "tcg,thread=multi", "-smp", "1"],
            Self::Counted => &[
                "-accel",
                "tcg,thread=single",
                "-smp",
                "1",
                "-icount",
                "shift=2,sleep=off",
            ],
        }
    }
}

/// What a guest is to be.
pub struct Spec<'a> {
    /// The kernel it boots.
    pub kernel: &'a Kernel,
    /// What its image holds beside the base: the job above all, as `job`.
    pub additions: Vec<Addition>,
    /// Its memory in MiB.
    pub memory: u32,
    /// Whether it has a network card that reaches this host's loopback at 10.0.2.2.
    pub network: bool,
    /// How long it may take from power-on to power-off.
    pub limit: Duration,
    /// What its clock goes by.
    pub pace: Pace,
}

/// What this machine's processors did for a guest's since it was turned on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Processors {
    /// How long they ran them, in nanoseconds, all together.
    ran: u64,
    /// How long the guest's wanted to run and waited.
    waited: u64,
}

impl Processors {
    /// How much of the time in which the guest's processors wanted to run they did, since `earlier`.
    pub fn given_since(self, earlier: Self) -> f64 {
        let (ran, waited) = (self.ran - earlier.ran, self.waited - earlier.waited);
        #[expect(clippy::cast_precision_loss, reason = "a share of some minutes")]
        let share = ran as f64 / (ran + waited).max(1) as f64;
        share
    }

    /// Adds a thread's, from its `schedstat`: ns on a processor and ns waiting for one
    /// (Documentation/scheduler/sched-stats.rst).
    fn add(&mut self, schedstat: &str) -> anyhow::Result<()> {
        let mut numbers = schedstat.split_whitespace().map(str::parse::<u64>);
        let mut next = || numbers.next().context("too few fields in a schedstat");
        self.ran += next()??;
        self.waited += next()??;
        Ok(())
    }
}

/// A guest that is running.
pub struct Machine {
    child: Child,
    lines: Receiver<String>,
    run: RunFolder,
    deadline: Instant,
}

impl Machine {
    /// Packs the image and turns the guest on.
    pub(crate) fn start(store: &Store, tools: &Tools, spec: &Spec<'_>) -> anyhow::Result<Self> {
        let run = RunFolder::create(store)?;
        let mut qemu = run.qemu(store, tools, spec)?;
        qemu.args(["-chardev", "stdio,id=job,signal=off"])
            .args(["-serial", "chardev:job"]);
        let mut child = qemu
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(File::create(run.folder.join("qemu.log"))?)
            .spawn()
            .context("cannot start QEMU")?;
        let output = child.stdout.take().context("QEMU has no output")?;
        let (send, lines) = mpsc::channel();
        std::thread::spawn(move || {
            let mut reader = BufReader::new(output);
            let mut line = Vec::new();
            while reader
                .read_until(b'\n', &mut line)
                .is_ok_and(|read| read > 0)
            {
                let text = String::from_utf8_lossy(&line)
                    .trim_end_matches(['\r', '\n'])
                    .to_owned();
                line.clear();
                if send.send(text).is_err() {
                    break;
                }
            }
        });
        Ok(Self {
            child,
            lines,
            run,
            deadline: Instant::now() + spec.limit,
        })
    }

    /// The next line of the job, or `None` when the guest is gone. An error when its time is up,
    /// or when its kernel was in trouble.
    pub fn line(&mut self) -> anyhow::Result<Option<String>> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        match self.lines.recv_timeout(left) {
            Ok(line) => Ok(Some(line)),
            Err(RecvTimeoutError::Disconnected) => match self.alarm() {
                Some(word) => bail!(self.report(&format!("the kernel said `{word}`"))),
                None => Ok(None),
            },
            Err(RecvTimeoutError::Timeout) => bail!(self.report("the guest's time is up")),
        }
    }

    /// What this machine's processors have done for the guest's, each of which is a thread that QEMU names `CPU 0/TCG`.
    pub fn processors(&self) -> anyhow::Result<Processors> {
        let mut all = Processors::default();
        for thread in fs::read_dir(format!("/proc/{}/task", self.child.id()))? {
            let thread = thread?.path();
            let name = fs::read_to_string(thread.join("comm"));
            if name.is_ok_and(|name| name.starts_with("CPU ")) {
                all.add(&fs::read_to_string(thread.join("schedstat"))?)?;
            }
        }
        ensure!(all.ran > 0, "QEMU has no thread that runs a processor");
        Ok(all)
    }

    /// The first alarming word that the kernel said.
    fn alarm(&self) -> Option<&'static str> {
        let console = fs::read(self.run.console()).unwrap_or_default();
        let console = String::from_utf8_lossy(&console);
        ALARMS.into_iter().find(|word| console.contains(word))
    }

    /// What to tell a person when the guest failed: `what`, and the end of its console.
    pub fn report(&self, what: &str) -> String {
        let console = fs::read(self.run.console()).unwrap_or_default();
        let console = String::from_utf8_lossy(&console);
        let lines: Vec<&str> = console.lines().collect();
        let tail = lines
            .get(lines.len().saturating_sub(TAIL)..)
            .unwrap_or_default();
        let qemu = fs::read_to_string(self.run.folder.join("qemu.log")).unwrap_or_default();
        format!(
            "{what}; the end of its console ({}):\n{}\n{qemu}",
            self.run.console().display(),
            tail.join("\n")
        )
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // Gone already is as good as ended here.
        drop(self.child.kill());
        drop(self.child.wait());
        self.run.forget_image();
    }
}

/// Boots a guest with the person's terminal on its second serial port, until it powers off.
pub(crate) fn interact(
    store: &Store,
    tools: &Tools,
    spec: &Spec<'_>,
) -> anyhow::Result<ExitStatus> {
    let run = RunFolder::create(store)?;
    let mut qemu = run.qemu(store, tools, spec)?;
    qemu.args(["-chardev", "stdio,id=job,signal=off,mux=on"])
        .args(["-serial", "chardev:job", "-mon", "chardev=job"]);
    let status = qemu.status().context("cannot start QEMU");
    run.forget_image();
    status
}

/// How many guests this process has started.
static GUESTS: AtomicU32 = AtomicU32::new(0);

/// A folder for the files of one run. Old ones are removed when a new one is made.
struct RunFolder {
    folder: PathBuf,
}

impl RunFolder {
    fn create(store: &Store) -> anyhow::Result<Self> {
        let runs = store.folder("runs")?;
        store::remove_old(&runs, &runs)?;
        let number = GUESTS.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}-{}-{number}", clock(), std::process::id());
        let folder = runs.join(name);
        fs::create_dir_all(&folder)?;
        Ok(Self { folder })
    }

    /// Removes the image, which is large and made anew for every run; the logs stay.
    fn forget_image(&self) {
        drop(fs::remove_file(self.image()));
    }

    fn image(&self) -> PathBuf {
        self.folder.join("initramfs")
    }

    fn console(&self) -> PathBuf {
        self.folder.join("console.log")
    }

    /// QEMU with everything but the second serial port.
    fn qemu(&self, store: &Store, tools: &Tools, spec: &Spec<'_>) -> anyhow::Result<Command> {
        let base = image::base(store, spec.kernel, tools)?;
        image::extend(&base, &spec.additions, &self.image())?;
        let mut qemu = tools.host("setpriv")?;
        // Whatever ends this process ends the guest too.
        qemu.args(["--pdeathsig", "KILL"])
            .args(tools.invocation("qemu-system-x86_64")?)
            .args(["-name", "guest,debug-threads=on"])
            .args(spec.pace.arguments())
            .args(board(tools, spec.kernel, &self.image()))
            .args(["-m", &spec.memory.to_string()])
            .args(["-append", &kernel_arguments()])
            .arg("-chardev")
            .arg(file_device("console", &self.console()))
            .args(["-serial", "chardev:console"]);
        if spec.network {
            // Without a ROM: nobody boots from this card, and Debian keeps its ROMs elsewhere.
            qemu.args(["-netdev", "user,id=host"])
                .args(["-device", "virtio-net-pci,netdev=host,romfile="]);
        } else {
            qemu.args(["-nic", "none"]);
        }
        Ok(qemu)
    }
}

/// What is the same in every guest: a plain machine that boots `kernel` with `initramfs` and shows nothing.
pub(crate) fn board(tools: &Tools, kernel: &Kernel, initramfs: &Path) -> Vec<OsString> {
    let words = [
        "-cpu",
        CPU,
        "-machine",
        "pc",
        "-nodefaults",
        "-display",
        "none",
        "-no-reboot",
    ];
    let files = [
        ("-L", tools.file("usr/share/qemu")),
        ("-L", tools.file("usr/share/seabios")),
        ("-kernel", kernel.image.clone()),
        ("-initrd", initramfs.to_owned()),
    ];
    let files = files
        .into_iter()
        .flat_map(|(flag, file)| [flag.into(), file.into_os_string()]);
    words.into_iter().map(OsString::from).chain(files).collect()
}

fn file_device(id: &str, path: &Path) -> String {
    // A comma in a path is written twice in QEMU's options.
    format!(
        "file,id={id},path={}",
        path.display().to_string().replace(',', ",,")
    )
}

fn kernel_arguments() -> String {
    let (rows, columns) = terminal_size();
    format!(
        "console=ttyS0 panic=-1 oops=panic rdinit=/init {EMULATED} guest.name=n1 \
         guest.rows={rows} guest.columns={columns}"
    )
}

/// Rows and columns of the person's terminal, as `stty` tells them.
fn terminal_size() -> (u16, u16) {
    let size = command::output(Command::new("stty").arg("size").stdin(Stdio::inherit()));
    let mut words = size.iter().flat_map(|text| text.split_whitespace());
    let mut next = |default| {
        words
            .next()
            .and_then(|word| word.parse().ok())
            .unwrap_or(default)
    };
    (next(24), next(80))
}

fn clock() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_processor_was_given_is_a_share_of_what_it_wanted() {
        let (mut begin, mut end) = (Processors::default(), Processors::default());
        begin.add("1000 500 7").unwrap();
        end.add("1300 600 9").unwrap();
        end.add("300 100 2").unwrap();
        assert!((end.given_since(begin) - 0.75).abs() < 1e-9);
        assert!(end.add("1300").is_err());
    }
}
