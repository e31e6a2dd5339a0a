//! Creates the root file system of the lab's nodes: containerd, runc, CNI and kubelet, without a service manager.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;

use super::disk;
use crate::controlplane::program::{self, Version};
use crate::vm::Machines;
use crate::vm::command::output;
use crate::vm::kernel::Kernel;
use crate::vm::modules;
use crate::vm::progress::ProgressLine;
use crate::vm::store::{fingerprint, remove_old};
use crate::vm::tools::Tools;

/// The Debian packages of a node; from sid, which has containerd 2.
const PACKAGES: [&str; 12] = [
    "containerd",
    "runc",
    "containernetworking-plugins",
    "nftables",
    // busybox's shell prefers its own `ip`, which flushes routes of every protocol.
    "dash",
    "ipvsadm",
    "iptables",
    "ipset",
    "iproute2",
    "mount",
    "kmod",
    "netbase",
];

/// Links that the installation of a package creates, and their targets.
const LINKS: [(&str, &str); 7] = [
    ("bin/sh", "dash"),
    ("sbin/iptables", "xtables-nft-multi"),
    ("sbin/iptables-restore", "xtables-nft-multi"),
    ("sbin/iptables-save", "xtables-nft-multi"),
    ("sbin/ip6tables", "xtables-nft-multi"),
    ("sbin/ip6tables-restore", "xtables-nft-multi"),
    ("sbin/ip6tables-save", "xtables-nft-multi"),
];

/// Increase it when this file changes the contents of the root.
const FORMAT_VERSION: u32 = 2;

/// The size of the disk.
const SIZE: &str = "3G";

/// Our own files: path, text and mode.
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

/// Programs of Kubernetes on a node.
struct Programs {
    kubelet: PathBuf,
    /// Runs kube-proxy under this name; pods of tests with kube-proxy use the node's file.
    kube_proxy: PathBuf,
}

pub(super) fn packages(machines: &Machines) -> anyhow::Result<Tools> {
    // Work trees with different packages do not replace each other's.
    let name = format!("lab-node-{}", fingerprint(PACKAGES));
    Tools::of(&machines.store, &name, "sid", &PACKAGES)
}

/// Creates the image from `packages` and the modules of `kernels`, unless one with the same contents exists.
pub(super) fn make(
    machines: &Machines,
    version: Version,
    packages: &Tools,
    tools: &Tools,
    kernels: &[Kernel],
) -> anyhow::Result<PathBuf> {
    let programs = Programs {
        kubelet: program::build_kubelet(version)?,
        kube_proxy: program::build(version)?,
    };
    let identity = fingerprint((
        FORMAT_VERSION,
        FILES,
        env!("CARGO_PKG_VERSION"),
        kernels
            .iter()
            .map(|kernel| &kernel.identity)
            .collect::<Vec<_>>(),
        &packages.identity,
        &machines.tools.identity,
        (&programs.kubelet, &programs.kube_proxy),
    ));
    let folder = machines.store.folder("lab-root")?;
    let image = folder.join(format!("{identity}.ext4"));
    let _lock = machines.store.lock()?;
    if !image.exists() {
        let step = ProgressLine::begin("making the nodes' root file system");
        let work = folder.join("making");
        if work.exists() {
            fs::remove_dir_all(&work)?;
        }
        fill(&work, machines, packages, &programs)?;
        for kernel in kernels {
            modules::unpack(kernel, &machines.tools, &work)?;
        }
        step.report("writing");
        disk::write(&work, tools, &image, SIZE)?;
        fs::remove_dir_all(&work)?;
        remove_old(&folder, &image)?;
        step.done("");
    }
    Ok(image)
}

/// Copies everything into the folder `work`.
fn fill(
    work: &Path,
    machines: &Machines,
    packages: &Tools,
    programs: &Programs,
) -> anyhow::Result<()> {
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
    link(work)?;
    add_busybox(work, machines)?;
    fs::copy(&programs.kubelet, work.join("usr/local/bin/kubelet"))?;
    fs::copy(&programs.kube_proxy, work.join("usr/local/bin/kube-proxy"))?;
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

/// Creates the missing links.
fn link(work: &Path) -> anyhow::Result<()> {
    for (name, target) in LINKS {
        let link = work.join("usr").join(name);
        if link.symlink_metadata().is_err() {
            symlink(target, link)?;
        }
    }
    Ok(())
}

/// Adds busybox with a link for every program name that is not taken.
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
