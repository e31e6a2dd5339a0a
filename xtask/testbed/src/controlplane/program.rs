//! The program that contains every part of the control plane, and the kubelet, of two versions of Kubernetes.

use std::path::PathBuf;

use crate::go::program::{GoProgram, KUBERNETES, Output};

/// A minor of Kubernetes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Version {
    /// The newest released one.
    Newest,
    /// The oldest that we support.
    Oldest,
}

impl Version {
    /// The name in folder names.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Newest => "newest",
            Self::Oldest => "oldest",
        }
    }

    /// Its module file.
    fn modules(self) -> &'static str {
        match self {
            Self::Newest => "go.mod",
            Self::Oldest => "oldest.mod",
        }
    }

    /// Reads its release, such as `v1.36.3`.
    pub fn release(self) -> anyhow::Result<String> {
        control_plane(self).release()
    }
}

/// Returns the path of the program with every part, and builds it if its sources have changed.
pub(crate) fn build(version: Version) -> anyhow::Result<PathBuf> {
    control_plane(version).build()
}

/// Returns the path of the kubelet in the same way.
pub(crate) fn build_kubelet(version: Version) -> anyhow::Result<PathBuf> {
    let kubelet = GoProgram {
        name: "kubelet",
        package: "./kubelet",
        sources: &["kubelet/main.go"],
        ..control_plane(version)
    };
    kubelet.build()
}

/// All parts of the control plane in one program.
fn control_plane(version: Version) -> GoProgram {
    GoProgram {
        name: "kubernetes",
        module: "controlplane",
        modules: version.modules(),
        variant: version.name(),
        package: ".",
        sources: &["main.go", "certify.go", "etcd.go", "fill.go", "pki.go"],
        output: Output::Program,
        release_of: KUBERNETES,
    }
}
