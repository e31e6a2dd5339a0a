//! The root file system that every node of the lab boots from: containerd, runc, CNI and the kubelet, no service manager.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;

use crate::controlplane::program::{self, Version};
use crate::vm::Lab as Machines;
use crate::vm::command::output;
use crate::vm::kernel::Kernel;
use crate::vm::modules;
use crate::vm::progress::Step;
use crate::vm::store::{fingerprint, remove_old};
use crate::vm::tools::{SUITE, Tools};

/// What a node holds; from sid, where containerd is 2.
const PACKAGES: [&str; 9] = [
    "containerd",
    "runc",
    "containernetworking-plugins",
    "nftables",
    "ipvsadm",
    "iproute2",
    "mount",
    "kmod",
    "netbase",
];

/// Changes with this file's ideas of what belongs into the root.
const RECIPE: u32 = 1;

/// The size of the disk; what is not written takes no space.
const SIZE: &str = "3G";

/// Files of our own: where they go, what they say, whether they are programs.
const FILES: [(&str, &str, u32); 4] = [
    ("usr/sbin/init", include_str!("node/init.sh"), 0o755),
    ("etc/kubelet.yaml", include_str!("node/kubelet.yaml"), 0o644),
    (
        "etc/containerd.toml",
        include_str!("node/containerd.toml"),
        0o644,
    ),
    ("etc/cni/template", include_str!("node/cni.json"), 0o644),
];

/// Makes it with the modules of `kernels`, if there is none of these parts.
pub(super) fn make(machines: &Machines, kernels: &[Kernel]) -> anyhow::Result<PathBuf> {
    let packages = Tools::of(&machines.store, "lab-node", "sid", &PACKAGES)?;
    let kubelet = program::build_kubelet(Version::Newest)?;
    let host = Tools::of(&machines.store, "lab-host", SUITE, &["e2fsprogs"])?;
    let identity = fingerprint((
        RECIPE,
        FILES,
        env!("CARGO_PKG_VERSION"),
        kernels
            .iter()
            .map(|kernel| &kernel.identity)
            .collect::<Vec<_>>(),
        &packages.identity,
        &machines.tools.identity,
        &kubelet,
    ));
    let folder = machines.store.folder("lab-root")?;
    let image = folder.join(format!("{identity}.ext4"));
    let _lock = machines.store.lock()?;
    if !image.exists() {
        let step = Step::begin("making the nodes' root file system");
        let work = folder.join("making");
        if work.exists() {
            fs::remove_dir_all(&work)?;
        }
        fill(&work, machines, &packages, &kubelet)?;
        for kernel in kernels {
            modules::unpack(kernel, &machines.tools, &work)?;
        }
        step.report("writing");
        write(&work, &host, &image)?;
        fs::remove_dir_all(&work)?;
        remove_old(&folder, &image)?;
        step.done("");
    }
    Ok(image)
}

/// Gathers everything in the folder `work`.
fn fill(work: &Path, machines: &Machines, packages: &Tools, kubelet: &Path) -> anyhow::Result<()> {
    output(
        Command::new("cp")
            .arg("--archive")
            .arg(packages.root())
            .arg(work),
    )?;
    for folder in [
        "dev",
        "proc",
        "sys",
        "run",
        "tmp",
        "root",
        "var/log",
        "etc/cni/net.d",
        "usr/local/bin",
    ] {
        fs::create_dir_all(work.join(folder))?;
    }
    for (path, target) in [
        ("bin", "usr/bin"),
        ("sbin", "usr/sbin"),
        ("lib", "usr/lib"),
        ("lib64", "usr/lib64"),
    ] {
        if !work.join(path).exists() {
            symlink(target, work.join(path))?;
        }
    }
    add_busybox(work, machines)?;
    fs::copy(kubelet, work.join("usr/local/bin/kubelet"))?;
    for (path, text, mode) in FILES {
        let text = text.replace("VERSION", env!("CARGO_PKG_VERSION"));
        let path = work.join(path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(&path, text)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(mode))?;
    }
    fs::write(work.join("etc/passwd"), "root:x:0:0:root:/root:/bin/sh\n")?;
    fs::write(work.join("etc/group"), "root:x:0:\n")?;
    Ok(fs::write(work.join("etc/resolv.conf"), "")?)
}

/// busybox, under every name that no real program has.
fn add_busybox(work: &Path, machines: &Machines) -> anyhow::Result<()> {
    let busybox = machines.tools.program("busybox")?;
    fs::copy(&busybox, work.join("usr/bin/busybox"))?;
    for name in output(Command::new(&busybox).arg("--list"))?.lines() {
        let taken = ["usr/bin", "usr/sbin"].map(|folder| work.join(folder).join(name));
        if taken.iter().all(|path| path.symlink_metadata().is_err()) {
            let [place, _] = taken;
            symlink("/usr/bin/busybox", &place)
                .with_context(|| format!("cannot link {}", place.display()))?;
        }
    }
    Ok(())
}

/// Writes the folder as a file system, without mounting anything.
fn write(work: &Path, tools: &Tools, image: &Path) -> anyhow::Result<()> {
    let half_done = image.with_extension("unfinished");
    // What an interrupted run left is not a file system to keep.
    drop(fs::remove_file(&half_done));
    let mut mke2fs = tools.host("mke2fs")?;
    mke2fs
        .args([
            "-q",
            "-F",
            "-t",
            "ext4",
            "-O",
            "^has_journal",
            "-E",
            "root_owner=0:0",
            "-d",
        ])
        .arg(work)
        .arg(&half_done)
        .arg(SIZE);
    output(&mut mke2fs)?;
    Ok(fs::rename(half_done, image)?)
}
