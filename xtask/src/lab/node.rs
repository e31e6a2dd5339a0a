//! One node: a QEMU process in the lab's network, with the shared root file system and its own writes thrown away.

use std::fs::{self, File};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Context as _;

use super::NODES;
use super::folder::Folder;
use super::network::Network;
use super::root::Root;
use crate::controlplane::process::Process;
use crate::vm::Lab as Machines;
use crate::vm::image::{self, Addition};
use crate::vm::machine::{FASTER, Pace, board};

/// Memory in MiB.
const MEMORY: &str = "768";

/// Process 1 until the root file system is there.
const BOOT: &str = include_str!("node/boot.sh");

/// Lines of a console that are shown when something fails.
const SHOWN_LINES: usize = 30;

/// Boots the node with this number.
pub(super) fn start(
    folder: &Folder,
    network: &Network,
    machines: &Machines,
    root: &Root,
    payload: &Path,
    number: usize,
) -> anyhow::Result<Process> {
    let initramfs = folder.path().join("initramfs");
    if !initramfs.exists() {
        let base = image::base(&machines.store, &root.kernel, &machines.tools)?;
        let from = folder.path().join("boot.sh");
        fs::write(&from, BOOT)?;
        let boot = Addition::Program {
            path: "boot.sh".to_owned(),
            from,
        };
        image::extend(&base, &[boot], &initramfs)?;
    }
    let tools = &machines.tools;
    let mut words = tools.invocation("qemu-system-x86_64")?.into_iter();
    let mut qemu = network.command(words.next().unwrap_or_default());
    qemu.args(words)
        .args(Pace::Real.arguments())
        .args(board(tools, &root.kernel, &initramfs))
        .args(["-m", MEMORY])
        .args(["-append", &kernel_arguments(number)])
        .args([
            "-serial",
            &format!("file:{}", console(folder, &format!("n{number}")).display()),
        ])
        .args(["-drive", &drive(&root.image, "snapshot=on")])
        .args(["-drive", &drive(payload, "readonly=on")])
        .args([
            "-netdev",
            &format!("tap,id=net,ifname=tap{number},script=no,downscript=no"),
        ])
        .args([
            "-device",
            &format!("virtio-net-pci,romfile=,netdev=net,mac=52:54:00:00:02:{number:02x}"),
        ])
        // Where the writes of a snapshot go.
        .env("TMPDIR", folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(File::create(
            folder.path().join(format!("n{number}.qemu.log")),
        )?)
        .process_group(0);
    let child = qemu.spawn().context("cannot start QEMU")?;
    Process::new(child.id())
}

/// A shell on the node `name`, over the lab's network.
pub(super) fn shell(network: &Network, name: &str) -> anyhow::Result<Command> {
    let number = NODES.iter().position(|known| *known == name);
    let number = number
        .with_context(|| format!("there is no node {name}; there are {}", NODES.join(", ")))?;
    let machines = Machines::open()?;
    let mut telnet = network.command(machines.tools.program("busybox")?);
    telnet.args(["telnet", &address(number + 1)]);
    Ok(telnet)
}

/// What the node said last on its console, and QEMU.
pub(super) fn last_words(folder: &Folder, name: &str) -> String {
    let read = |file: PathBuf| fs::read(file).unwrap_or_default();
    let console = read(console(folder, name));
    let console = String::from_utf8_lossy(&console);
    let lines: Vec<&str> = console.lines().collect();
    let end = lines.get(lines.len().saturating_sub(SHOWN_LINES)..);
    let qemu = read(folder.path().join(format!("{name}.qemu.log")));
    format!(
        "{}\n{}",
        end.unwrap_or_default().join("\n"),
        String::from_utf8_lossy(&qemu)
    )
}

fn address(number: usize) -> String {
    format!("192.0.2.{}", 10 + number)
}

fn console(folder: &Folder, name: &str) -> PathBuf {
    folder.path().join(format!("{name}.console.log"))
}

fn drive(file: &Path, option: &str) -> String {
    // A comma in a path is written twice in QEMU's options.
    let file = file.display().to_string().replace(',', ",,");
    format!("file={file},format=raw,if=virtio,{option}")
}

fn kernel_arguments(number: usize) -> String {
    format!(
        "console=ttyS0 panic=-1 oops=panic rdinit=/boot.sh {FASTER} lab.node={number} lab.address={}",
        address(number)
    )
}
