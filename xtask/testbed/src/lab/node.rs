//! Runs one node: a QEMU process in the lab's network, with a snapshot of the shared root file system.

use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context as _, ensure};

use super::folder::{Folder, Guest};
use super::network::Network;
use crate::controlplane::process::{Process, StopMode};
use crate::tail;
use crate::vm::Machines;
use crate::vm::image::{self, Addition};
use crate::vm::kernel::Kernel;
use crate::vm::machine::{EMULATED, GuestClock, common_arguments};

/// The names of the nodes.
pub const NODES: [&str; 3] = ["n1", "n2", "n3"];

/// Memory in MiB.
const MEMORY: &str = "768";

/// Process 1 until the root file system is mounted.
const BOOT: &str = include_str!("node/boot.sh");

/// Lines of a console that are printed when something fails.
const SHOWN_LINES: usize = 30;

/// What a kernel writes when it measured two frequencies of its clock. It then uses one of them, which may be the wrong
/// one (`pit_hpet_ptimer_calibrate_cpu` in the kernel's `arch/x86/kernel/tsc.c`).
///
/// The measurement needs some ms without interruption, which a busy host does not always grant. Once the clock of a node
/// ran nine times as fast.
const UNSURE_CLOCK: &str = "tsc: PIT calibration deviates from";

/// The disks that every node has.
pub(super) struct Disks<'a> {
    /// The root file system.
    pub(super) root: &'a Path,
    /// Keys, and images as containerd keeps them.
    pub(super) payload: &'a Path,
}

/// Stores the guest of the node with this number, turned off.
pub(super) fn make(
    folder: &Folder,
    machines: &Machines,
    kernel: &Kernel,
    disks: &Disks<'_>,
    number: usize,
) -> anyhow::Result<()> {
    let initramfs = initramfs(folder, machines, kernel)?;
    let name = format!("n{number}");
    let mut words = machines.tools.invocation("qemu-system-x86_64")?;
    words.extend(GuestClock::Shared.arguments().iter().map(OsString::from));
    words.extend(common_arguments(&machines.tools, kernel, &initramfs));
    let mut add = |flag: &str, value: &str| words.extend([flag.into(), value.into()]);
    add("-m", MEMORY);
    add("-append", &kernel_arguments(number));
    add(
        "-serial",
        &format!("file:{}", console(folder, &name).display()),
    );
    add("-drive", &drive(disks.root, "snapshot=on"));
    add("-drive", &drive(disks.payload, "snapshot=on"));
    add(
        "-netdev",
        &format!("tap,id=net,ifname=tap{number},script=no,downscript=no"),
    );
    add(
        "-device",
        &format!("virtio-net-pci,romfile=,netdev=net,mac=52:54:00:00:02:{number:02x}"),
    );
    let words = words.into_iter().map(OsString::into_string);
    let words = words.collect::<Result<_, _>>();
    let words = words.map_err(|word| anyhow::anyhow!("{} is not UTF-8", word.display()))?;
    let process = None;
    folder.set_guest(&name, Guest { words, process })
}

/// Turns the node `name` on.
pub(super) fn turn_on(folder: &Folder, name: &str) -> anyhow::Result<()> {
    let state = folder.state()?;
    let guest = known(state.nodes.get(name), name)?;
    let runs = guest.process.as_ref().is_some_and(Process::is_running);
    ensure!(!runs, "node {name} is on already");
    let mut words = guest.words.iter();
    let mut qemu = Network::of(&state.holder).command(words.next().context("no words")?);
    qemu.args(words)
        // The folder for the writes of a snapshot.
        .env("TMPDIR", folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(File::create(qemu_log(folder, name))?)
        .process_group(0);
    let child = qemu.spawn().context("cannot start QEMU")?;
    let process = Some(Process::new(child.id())?);
    let words = guest.words.clone();
    folder.set_guest(name, Guest { words, process })
}

/// Turns the node `name` off, as a power failure does.
pub(super) fn turn_off(folder: &Folder, name: &str) -> anyhow::Result<()> {
    let state = folder.state()?;
    let guest = known(state.nodes.get(name), name)?;
    let process = guest.process.as_ref();
    let process = process.with_context(|| format!("node {name} is off already"))?;
    process.end(StopMode::Kill)?;
    let words = guest.words.clone();
    folder.set_guest(
        name,
        Guest {
            words,
            process: None,
        },
    )
}

/// Turns the node `name` off and on again if its kernel measured two frequencies of its clock. Returns whether it did.
pub(super) fn restart_if_clock_is_unsure(folder: &Folder, name: &str) -> anyhow::Result<bool> {
    let console = console(folder, name);
    let clock_is_unsure = clock_is_unsure(&fs::read(&console).unwrap_or_default());
    if clock_is_unsure {
        turn_off(folder, name)?;
        fs::remove_file(&console)?;
        turn_on(folder, name)?;
    }
    Ok(clock_is_unsure)
}

fn clock_is_unsure(console: &[u8]) -> bool {
    String::from_utf8_lossy(console).contains(UNSURE_CLOCK)
}

/// Returns the end of the node's console, and the log of QEMU.
pub(super) fn last_words(folder: &Folder, name: &str) -> String {
    let read = |file: PathBuf| fs::read(file).unwrap_or_default();
    let console = read(console(folder, name));
    let console = String::from_utf8_lossy(&console);
    let qemu = read(qemu_log(folder, name));
    format!(
        "{}\n{}",
        tail(&console, SHOWN_LINES),
        String::from_utf8_lossy(&qemu)
    )
}

/// Returns the address of the node `name` in the lab's network.
pub(super) fn address_of(name: &str) -> anyhow::Result<String> {
    let number = NODES.iter().position(|known| *known == name);
    Ok(address(known(number, name)? + 1))
}

fn known<T>(found: Option<T>, name: &str) -> anyhow::Result<T> {
    found.with_context(|| format!("there is no node {name}; there are {}", NODES.join(", ")))
}

/// Returns the initramfs that mounts the root file system, and creates it once for each kernel.
fn initramfs(folder: &Folder, machines: &Machines, kernel: &Kernel) -> anyhow::Result<PathBuf> {
    let initramfs = folder.path().join(format!("initramfs-{}", kernel.line));
    if !initramfs.exists() {
        let base = image::base(&machines.store, kernel, &machines.tools)?;
        let from = folder.path().join("boot.sh");
        fs::write(&from, BOOT)?;
        let boot = Addition::Program {
            path: "boot.sh".to_owned(),
            from,
        };
        image::extend(&base, &[boot], &initramfs)?;
    }
    Ok(initramfs)
}

fn address(number: usize) -> String {
    format!("192.0.2.{}", 10 + number)
}

fn console(folder: &Folder, name: &str) -> PathBuf {
    folder.path().join(format!("{name}.console.log"))
}

fn qemu_log(folder: &Folder, name: &str) -> PathBuf {
    folder.path().join(format!("{name}.qemu.log"))
}

fn drive(file: &Path, option: &str) -> String {
    // QEMU's options escape a comma in a path by doubling it.
    let file = file.display().to_string().replace(',', ",,");
    format!("file={file},format=raw,if=virtio,{option}")
}

fn kernel_arguments(number: usize) -> String {
    format!(
        "console=ttyS0 panic=-1 oops=panic rdinit=/boot.sh {EMULATED} lab.node={number} lab.address={}",
        address(number)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_of_a_kernel_that_measured_two_frequencies_is_unsure() {
        let deviates = b"[    0.0] tsc: PIT calibration deviates from HPET: 282783 2596160\r\n";
        assert!(clock_is_unsure(deviates));
        let matches = b"[    0.0] tsc: PIT calibration matches HPET. 1 loops\r\n";
        assert!(!clock_is_unsure(matches));
    }
}
