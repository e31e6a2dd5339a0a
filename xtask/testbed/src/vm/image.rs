//! Writes the image that a guest boots: a base for each kernel (tools and modules, kept between runs), and the files of
//! the run.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::Context;

use super::initramfs::Initramfs;
use super::kernel::Kernel;
use super::modules;
use super::progress::ProgressLine;
use super::store::{self, Store, fingerprint};
use super::tools::Tools;

/// Process 1 of every guest.
const INIT: &str = include_str!("init.sh");

/// Increase it when this file changes the contents of a base image.
const FORMAT_VERSION: u32 = 5;

/// Programs of the tools' packages in every guest, beside busybox. The shells are here because busybox's shell prefers
/// its own `ip` and others to the real programs.
const PROGRAMS: [&str; 14] = [
    "bash",
    "dash",
    "bridge",
    "conntrack",
    "curl",
    "ip",
    "ipset",
    "ipvsadm",
    "kmod",
    "nft",
    "setpriv",
    "ss",
    "strace",
    "tcpdump",
];

/// Shell scripts of the package `ipvsadm`.
const SCRIPTS: [&str; 2] = ["ipvsadm-restore", "ipvsadm-save"];

/// Names of kmod in guests.
const KMOD_NAMES: [&str; 5] = ["depmod", "insmod", "lsmod", "modprobe", "rmmod"];

/// Programs that start others. busybox has all of them, but its versions would start busybox's `ip` instead of the real
/// one.
const STARTERS: [&str; 12] = [
    "chroot", "chrt", "env", "find", "nice", "nohup", "nsenter", "setsid", "taskset", "timeout",
    "unshare", "xargs",
];

/// Files that a run adds to the image.
#[derive(Debug, Clone)]
pub enum Addition {
    /// An executable file of the host.
    Program {
        /// The path in the guest, without the leading slash.
        path: String,
        from: PathBuf,
    },
    /// A folder of the host with files that are not executable.
    Tree {
        /// The path in the guest, without the leading slash.
        path: String,
        from: PathBuf,
    },
    /// A text file.
    Text {
        /// The path in the guest, without the leading slash.
        path: String,
        content: String,
    },
}

/// Returns the base image for `kernel`, and builds it if it is not in the store.
pub(crate) fn base(store: &Store, kernel: &Kernel, tools: &Tools) -> anyhow::Result<PathBuf> {
    let identity = fingerprint((INIT, FORMAT_VERSION, &kernel.identity, &tools.identity));
    let folder = store.folder(&format!("image-{}", kernel.line))?;
    let image = folder.join(format!("{identity}.cpio"));
    let _lock = store.lock()?;
    if image.exists() {
        return Ok(image);
    }
    let step = ProgressLine::begin(format!("packing the image of {}", kernel.release));
    let work = folder.join("packing");
    if work.exists() {
        fs::remove_dir_all(&work)?;
    }
    modules::unpack(kernel, tools, &work)?;
    let half_done = folder.join("packing.cpio");
    write_base(&half_done, tools, &work)?;
    fs::remove_dir_all(&work)?;
    fs::rename(&half_done, &image)?;
    store::remove_old(&folder, &image)?;
    let bytes = fs::metadata(&image)?.len();
    step.done(&format!("({} MB)", bytes / 1_000_000));
    Ok(image)
}

/// Writes the image of one run: the base, then `additions`.
pub(crate) fn extend(base: &Path, additions: &[Addition], to: &Path) -> anyhow::Result<()> {
    fs::copy(base, to).with_context(|| format!("cannot copy the image to {}", to.display()))?;
    let file = File::options().append(true).open(to)?;
    let mut image = Initramfs::append(file);
    for addition in additions {
        match addition {
            Addition::Program { path, from } => image.program(path, &read(from)?)?,
            Addition::Tree { path, from } => image.tree(path, from)?,
            Addition::Text { path, content } => image.text(path, content.as_bytes())?,
        }
    }
    image.finish().map(drop)
}

fn read(file: &Path) -> anyhow::Result<Vec<u8>> {
    fs::read(file).with_context(|| format!("cannot read {}", file.display()))
}

fn write_base(file: &Path, tools: &Tools, modules: &Path) -> anyhow::Result<()> {
    let mut image = Initramfs::create(file)?;
    for folder in [
        "dev", "proc", "sys", "run", "tmp", "root", "usr/bin", "usr/lib",
    ] {
        image.folder(folder)?;
    }
    // One folder for programs, one for libraries; links from every usual path.
    for (path, target) in [
        ("bin", "usr/bin"),
        ("sbin", "usr/bin"),
        ("usr/sbin", "bin"),
        ("lib", "usr/lib"),
        ("lib64", "usr/lib"),
        ("usr/lib/x86_64-linux-gnu", "."),
        ("usr/bin/sh", "dash"),
    ] {
        image.link(path, target)?;
    }
    image.program("init", INIT.as_bytes())?;
    for path in ["etc/protocols", "etc/services"] {
        image.text(path, &read(&tools.file(path))?)?;
    }
    image.text("etc/passwd", b"root:x:0:0:root:/root:/bin/sh\n")?;
    image.text("etc/group", b"root:x:0:\n")?;
    image.text("etc/hosts", b"127.0.0.1 localhost\n::1 localhost\n")?;
    // The terminal database for `vm shell`.
    image.tree("usr/lib/terminfo", &tools.file("lib/terminfo"))?;
    add_busybox(&mut image, tools)?;
    add_programs(&mut image, tools)?;
    image.tree("usr/lib/modules", &modules.join("lib/modules"))?;
    image.finish().map(drop)
}

/// Adds busybox with a link for every program name that is not taken.
fn add_busybox(image: &mut Initramfs, tools: &Tools) -> anyhow::Result<()> {
    let busybox = tools.program("busybox")?;
    image.program("usr/bin/busybox", &read(&busybox)?)?;
    let names = super::command::output(std::process::Command::new(&busybox).arg("--list"))?;
    let taken = |name: &&str| {
        *name == "sh"
            || PROGRAMS.contains(name)
            || KMOD_NAMES.contains(name)
            || STARTERS.contains(name)
    };
    for name in names
        .lines()
        .filter(|name| *name != "busybox" && !taken(name))
    {
        image.link(&format!("usr/bin/{name}"), "busybox")?;
    }
    Ok(())
}

/// Adds the other programs with every library that they are linked with.
fn add_programs(image: &mut Initramfs, tools: &Tools) -> anyhow::Result<()> {
    let mut libraries = vec![tools.loader()?];
    for name in PROGRAMS.into_iter().chain(STARTERS) {
        let program = tools.program(name)?;
        image.program(&format!("usr/bin/{name}"), &read(&program)?)?;
        libraries.extend(tools.libraries(&program)?);
    }
    for name in SCRIPTS {
        let script = read(&tools.program(name)?)?;
        image.program(&format!("usr/bin/{name}"), &script)?;
    }
    for name in KMOD_NAMES {
        image.link(&format!("usr/bin/{name}"), "kmod")?;
    }
    libraries.sort_by(|a, b| a.file_name().cmp(&b.file_name()));
    libraries.dedup_by(|a, b| a.file_name() == b.file_name());
    for library in libraries {
        let name = library.file_name().unwrap_or_default().to_string_lossy();
        image.program(&format!("usr/lib/{name}"), &read(&library)?)?;
    }
    Ok(())
}
