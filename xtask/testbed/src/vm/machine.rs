//! Runs one guest: a QEMU process with two serial ports. The first is the kernel's console and is written to a file. The
//! second belongs to the job, and is read line by line or is the terminal. KVM is never used, so that a guest behaves
//! the same on every machine.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};

use super::command;
use super::image::{self, Addition};
use super::kernel::Kernel;
use super::store::{self, Store};
use super::tools::Tools;
use crate::tail;

/// Words in a kernel's console that fail every job.
const KERNEL_FAILURES: [&str; 5] = [
    "BUG:",
    "Oops:",
    "Kernel panic",
    "general protection fault",
    "UBSAN:",
];

/// Lines of the console that are printed when something fails.
const SHOWN_LINES: usize = 60;

/// A simple processor: further instructions (mainly `rep movsb`) are slower when emulated.
const CPU: &str = "qemu64,+rdrand";

/// Kernel arguments for an emulated machine. They change nothing that is tested.
///
/// Most save time: no self-tests of ciphers, no mitigations, no sampling of memory accesses, which newer kernels do
/// continuously.
///
/// `tsc=reliable` turns off the comparison of the processors' clocks, which are the same clock here. In Linux 7.2 it
/// hung one boot of a hundred on a busy machine: a processor waits for the clock of another with interrupts off, and
/// measures its timeout by jiffies that it counts itself, while the other waits for the first in `stop_machine`
/// (`watchdog_check_skew` in the kernel's `kernel/time/clocksource.c`).
pub(crate) const EMULATED: &str = "mitigations=off cryptomgr.notests damon_stat.enabled=0 \
     tsc=reliable initcall_blacklist=crypto_kdf108_init,jent_mod_init";

/// The time base of a guest's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum GuestClock {
    /// The host's time: two processors, as fast as the host permits.
    Real,
    /// The host's time, beside other guests: one processor, because two would wait for each other's locks.
    #[value(skip)]
    Shared,
    /// The guest's instructions: one processor, 4 ns for each instruction, independent of the host's load. Idle time is
    /// skipped.
    Counted,
    /// The same, but idle time is the host's time, because the guest waits for answers of the host.
    #[value(skip)]
    CountedUnlessIdle,
}

impl GuestClock {
    /// Its QEMU arguments.
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
            Self::CountedUnlessIdle => &[
                "-accel",
                "tcg,thread=single",
                "-smp",
                "1",
                "-icount",
                "shift=2,sleep=on",
            ],
        }
    }
}

/// Describes a guest.
pub struct GuestSpec<'a> {
    pub kernel: &'a Kernel,
    /// Its files beside the base image. The shell script `job` is what it runs.
    pub additions: Vec<Addition>,
    /// Its memory in MiB.
    pub memory: u32,
    /// Whether it has a network card that reaches the host's loopback at 10.0.2.2.
    pub network: bool,
    /// Time limit from power-on to power-off.
    pub limit: Duration,
    pub clock: GuestClock,
}

/// The host's CPU time for a guest's processors since it was turned on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuTime {
    /// Time for which they ran, in nanoseconds, summed.
    ran: u64,
    /// Time for which they were runnable and waited.
    waited: u64,
}

impl CpuTime {
    /// Returns the share of the runnable time since `earlier` in which the guest's processors ran.
    pub fn share_since(self, earlier: Self) -> f64 {
        let (ran, waited) = (self.ran - earlier.ran, self.waited - earlier.waited);
        #[expect(clippy::cast_precision_loss, reason = "a share of some minutes")]
        let share = ran as f64 / (ran + waited).max(1) as f64;
        share
    }

    /// Adds the times of a thread from its `schedstat`: ns on a processor and ns waiting for one
    /// (Documentation/scheduler/sched-stats.rst).
    fn add(&mut self, schedstat: &str) -> anyhow::Result<()> {
        let mut numbers = schedstat.split_whitespace().map(str::parse::<u64>);
        let mut next = || numbers.next().context("too few fields in a schedstat");
        self.ran += next()??;
        self.waited += next()??;
        Ok(())
    }
}

/// A running guest.
pub struct Machine {
    child: Child,
    lines: Receiver<String>,
    run: RunFolder,
    deadline: Instant,
}

impl Machine {
    /// Writes the image and turns the guest on.
    pub(crate) fn start(
        store: &Store,
        tools: &Tools,
        spec: &GuestSpec<'_>,
    ) -> anyhow::Result<Self> {
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

    /// Returns the next line of the job, or `None` when the guest has powered off. An error when its time limit is exceeded
    /// or its console contains a kernel failure.
    pub fn line(&mut self) -> anyhow::Result<Option<String>> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        match self.lines.recv_timeout(left) {
            Ok(line) => Ok(Some(line)),
            Err(RecvTimeoutError::Disconnected) => match self.kernel_failure() {
                Some(word) => bail!(self.report(&format!("the kernel said `{word}`"))),
                None => Ok(None),
            },
            Err(RecvTimeoutError::Timeout) => bail!(self.report("the guest's time is up")),
        }
    }

    /// Reads the CPU time of the guest's processors; each is a thread that QEMU names `CPU 0/TCG`.
    pub fn cpu_time(&self) -> anyhow::Result<CpuTime> {
        let mut all = CpuTime::default();
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

    /// Returns the first kernel failure in the console.
    fn kernel_failure(&self) -> Option<&'static str> {
        let console = fs::read(self.run.console()).unwrap_or_default();
        let console = String::from_utf8_lossy(&console);
        KERNEL_FAILURES
            .into_iter()
            .find(|word| console.contains(word))
    }

    /// Formats an error: `what`, and the end of the console.
    pub fn report(&self, what: &str) -> String {
        let console = fs::read(self.run.console()).unwrap_or_default();
        let console = String::from_utf8_lossy(&console);
        let qemu = fs::read_to_string(self.run.folder.join("qemu.log")).unwrap_or_default();
        format!(
            "{what}; the end of its console ({}):\n{}\n{qemu}",
            self.run.console().display(),
            tail(&console, SHOWN_LINES)
        )
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // It may have exited already.
        drop(self.child.kill());
        drop(self.child.wait());
        self.run.remove_image();
    }
}

/// Boots a guest with this terminal as its second serial port, and waits until it powers off.
pub(crate) fn interact(
    store: &Store,
    tools: &Tools,
    spec: &GuestSpec<'_>,
) -> anyhow::Result<ExitStatus> {
    let run = RunFolder::create(store)?;
    let mut qemu = run.qemu(store, tools, spec)?;
    qemu.args(["-chardev", "stdio,id=job,signal=off,mux=on"])
        .args(["-serial", "chardev:job", "-mon", "chardev=job"]);
    let status = qemu.status().context("cannot start QEMU");
    run.remove_image();
    status
}

/// Number of guests that this process has started.
static GUESTS: AtomicU32 = AtomicU32::new(0);

/// The folder of one run. Creating one removes old ones.
struct RunFolder {
    folder: PathBuf,
}

impl RunFolder {
    fn create(store: &Store) -> anyhow::Result<Self> {
        let runs = store.folder("runs")?;
        store::remove_old(&runs, &runs)?;
        let number = GUESTS.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}-{}-{number}", store::unix_time(), std::process::id());
        let folder = runs.join(name);
        fs::create_dir_all(&folder)?;
        Ok(Self { folder })
    }

    /// Removes the image, which is large and written for every run; keeps the logs.
    fn remove_image(&self) {
        drop(fs::remove_file(self.image()));
    }

    fn image(&self) -> PathBuf {
        self.folder.join("initramfs")
    }

    fn console(&self) -> PathBuf {
        self.folder.join("console.log")
    }

    /// Returns QEMU with all arguments except those of the second serial port.
    fn qemu(&self, store: &Store, tools: &Tools, spec: &GuestSpec<'_>) -> anyhow::Result<Command> {
        let base = image::base(store, spec.kernel, tools)?;
        image::extend(&base, &spec.additions, &self.image())?;
        let mut qemu = tools.host("setpriv")?;
        // The guest exits with this process.
        qemu.args(["--pdeathsig", "KILL"])
            .args(tools.invocation("qemu-system-x86_64")?)
            .args(["-name", "guest,debug-threads=on"])
            .args(spec.clock.arguments())
            .args(common_arguments(tools, spec.kernel, &self.image()))
            .args(["-m", &spec.memory.to_string()])
            .args(["-append", &kernel_arguments()])
            .arg("-chardev")
            .arg(file_device("console", &self.console()))
            .args(["-serial", "chardev:console"]);
        if spec.network {
            // Without a ROM: the guest does not boot from this card, and Debian's ROMs are in another package.
            qemu.args(["-netdev", "user,id=host"])
                .args(["-device", "virtio-net-pci,netdev=host,romfile="]);
        } else {
            qemu.args(["-nic", "none"]);
        }
        Ok(qemu)
    }
}

/// Returns the arguments of every guest: a machine without display that boots `kernel` with `initramfs`.
pub(crate) fn common_arguments(tools: &Tools, kernel: &Kernel, initramfs: &Path) -> Vec<OsString> {
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
    // QEMU's options escape a comma in a path by doubling it.
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

/// Returns rows and columns of the terminal, as `stty` prints them.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_granted_processor_time_is_a_share_of_the_requested_time() {
        let (mut begin, mut end) = (CpuTime::default(), CpuTime::default());
        begin.add("1000 500 7").unwrap();
        end.add("1300 600 9").unwrap();
        end.add("300 100 2").unwrap();
        assert!((end.share_since(begin) - 0.75).abs() < 1e-9);
        assert!(end.add("1300").is_err());
    }
}
