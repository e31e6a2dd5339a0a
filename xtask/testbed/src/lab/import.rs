//! Imports container images with a containerd on this machine: an emulated one needs half a minute for each node.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};

use crate::controlplane::process::{Process, StopMode};
use crate::controlplane::state_file::make_folder;
use crate::vm::command::output;
use crate::vm::progress::ProgressLine;
use crate::vm::tools::Tools;

/// Limit for containerd to answer.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Enables the plugins that import images, and none that run containers.
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

/// Runs a program with an empty /run: containerd creates a folder there with any configuration.
const WITH_OWN_RUN: &str = "mount -t tmpfs run /run && exec \"$@\"";

/// A containerd that only imports images.
struct Importer<'a> {
    packages: &'a Tools,
    /// The folder of its socket and log, removed afterwards.
    work: &'a Path,
}

/// Imports `images` into containerd's folder `root`; `work` is a temporary folder.
pub(super) fn import(
    packages: &Tools,
    images: &[PathBuf],
    root: &Path,
    work: &Path,
) -> anyhow::Result<()> {
    let step = ProgressLine::begin("importing the images");
    make_folder(work)?;
    let importer = Importer { packages, work };
    let mut containerd = importer.start(root)?;
    let result = importer.import_all(&mut containerd, images);
    if containerd.try_wait()?.is_none() {
        Process::new(containerd.id())?.end(StopMode::Terminate)?;
        containerd.wait()?;
    }
    result.with_context(|| fs::read_to_string(importer.log()).unwrap_or_default())?;
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

    fn import_all(&self, containerd: &mut Child, images: &[PathBuf]) -> anyhow::Result<()> {
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
            ensure!(ended.is_none(), "containerd exited");
            ensure!(began.elapsed() < TIMEOUT, "containerd does not answer");
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
