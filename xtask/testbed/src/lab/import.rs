//! Container images, taken in by a containerd on this machine: an emulated one needs half a minute for each node.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};

use crate::controlplane::process::{Ending, Process};
use crate::controlplane::record::make_folder;
use crate::vm::command::output;
use crate::vm::progress::Step;
use crate::vm::tools::Tools;

/// How long containerd may take until it answers.
const PATIENCE: Duration = Duration::from_secs(60);

/// What takes images in, and nothing that looks after containers.
const CONFIG: &str = "\
version = 3
root = 'ROOT'
state = 'WORK/state'
disabled_plugins = [
  'io.containerd.cri.v1.images',
  'io.containerd.cri.v1.runtime',
  'io.containerd.grpc.v1.cri',
  'io.containerd.internal.v1.opt',
  'io.containerd.nri.v1.nri',
  'io.containerd.shim.v1.manager',
]
[grpc]
address = 'WORK/socket'
";

/// Starts a program that makes a folder below /run whatever its configuration says.
const WITH_OWN_RUN: &str = "mount -t tmpfs run /run && exec \"$@\"";

/// A containerd for images alone.
struct Importer<'a> {
    packages: &'a Tools,
    /// Its socket, its log; gone afterwards.
    work: &'a Path,
}

/// Fills the folder `root` with `images`, as containerd keeps them there; `work` is a folder for the time being.
pub(super) fn import(
    packages: &Tools,
    images: &[PathBuf],
    root: &Path,
    work: &Path,
) -> anyhow::Result<()> {
    let step = Step::begin("taking in the images");
    make_folder(work)?;
    let importer = Importer { packages, work };
    let mut containerd = importer.start(root)?;
    let taken = importer.take(&mut containerd, images);
    if containerd.try_wait()?.is_none() {
        Process::new(containerd.id())?.end(Ending::Asked)?;
        containerd.wait()?;
    }
    taken.with_context(|| fs::read_to_string(importer.log()).unwrap_or_default())?;
    fs::remove_dir_all(work)?;
    step.done("");
    Ok(())
}

impl Importer<'_> {
    fn start(&self, root: &Path) -> anyhow::Result<Child> {
        let config = self.work.join("config.toml");
        let text = CONFIG.replace("ROOT", &root.to_string_lossy());
        fs::write(&config, text.replace("WORK", &self.work.to_string_lossy()))?;
        let log = File::create(self.log())?;
        let mut unshare = Command::new("unshare");
        unshare
            .args(["--map-root-user", "--mount", "sh", "-c", WITH_OWN_RUN, "sh"])
            .args(self.packages.invocation("containerd")?)
            .arg("--config")
            .arg(config)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        let started = unshare.spawn();
        started.context("cannot start `unshare`: install the package util-linux")
    }

    fn take(&self, containerd: &mut Child, images: &[PathBuf]) -> anyhow::Result<()> {
        self.wait_for(containerd)?;
        for image in images {
            let mut ctr = self.packages.host("ctr")?;
            ctr.arg("--address").arg(self.socket());
            ctr.args(["--namespace", "k8s.io", "images", "import"]);
            output(ctr.arg(image))?;
        }
        Ok(())
    }

    fn wait_for(&self, containerd: &mut Child) -> anyhow::Result<()> {
        let began = Instant::now();
        while !self.socket().exists() {
            let ended = containerd.try_wait()?;
            ensure!(ended.is_none(), "containerd ended by itself");
            ensure!(began.elapsed() < PATIENCE, "containerd does not answer");
            sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    fn socket(&self) -> PathBuf {
        self.work.join("socket")
    }

    fn log(&self) -> PathBuf {
        self.work.join("log")
    }
}
