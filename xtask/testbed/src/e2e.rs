//! Kubernetes' own end-to-end tests of the network: the program, and the images of its Pods.
//!
//! Everything is built from Go modules (`xtask/conformance`) and Debian packages, so nothing comes from an image
//! registry.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::ensure;

use crate::go::program::{GoProgram, KUBERNETES, Output};
use crate::image::{self, DnsServer, TestImages};
use crate::vm::Machines;
use crate::vm::command::output;

/// The module's programs; the tests are one of them.
const TESTS: GoProgram = GoProgram {
    name: "e2e.test",
    module: "conformance",
    modules: "go.mod",
    variant: "newest",
    package: "./e2e",
    sources: &["e2e/e2e_test.go", "e2e/report_test.go"],
    output: Output::Tests,
    release_of: KUBERNETES,
};

/// Client and server of most tests.
const AGNHOST: GoProgram = GoProgram {
    name: "agnhost",
    package: "k8s.io/kubernetes/test/images/agnhost",
    sources: &[],
    output: Output::Program,
    ..TESTS
};

/// The part of agnhost that serves HTTPS.
const PORTER: &str = "k8s.io/kubernetes/test/images/agnhost/porter";

/// The server of one test, which answers with invalid TCP segments.
const REGRESSION: GoProgram = GoProgram {
    name: "regression-issue-74839",
    package: "k8s.io/kubernetes/test/images/regression-issue-74839",
    ..AGNHOST
};

const COREDNS: GoProgram = GoProgram {
    name: "coredns",
    package: "./coredns",
    sources: &["coredns/main.go"],
    ..AGNHOST
};

/// The name of the image with `CoreDNS`.
pub const DNS_IMAGE: &str = "registry.k8s.io/coredns/coredns:lab";

/// The built tests.
pub struct Suite {
    /// The program.
    pub program: PathBuf,
}

impl Suite {
    /// Builds the program if its sources have changed.
    pub fn build() -> anyhow::Result<Self> {
        Ok(Self {
            program: TESTS.build()?,
        })
    }

    /// Reads the version of Kubernetes that it tests.
    pub fn release() -> anyhow::Result<String> {
        TESTS.release()
    }

    /// Lists the names of all tests.
    pub fn names(&self) -> anyhow::Result<Vec<String>> {
        let listed = self.ask("--list-tests")?;
        let names = names(&listed);
        ensure!(!names.is_empty(), "e2e.test lists no test:\n{listed}");
        Ok(names)
    }

    /// Writes the images of its Pods and of the cluster's DNS server into `folder`, and returns the archives.
    pub fn write_images(&self, folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
        let listed = self.ask("--list-images")?;
        let images = TestImages {
            agnhost: AGNHOST.build()?,
            porter: AGNHOST.folder_of(PORTER)?,
            regression: REGRESSION.build()?,
            dns: DnsServer {
                program: COREDNS.build()?,
                name: DNS_IMAGE,
            },
            names: listed.lines().map(str::to_owned).collect(),
        };
        image::write_test_images(&images, folder, &Machines::open()?)
    }

    fn ask(&self, flag: &str) -> anyhow::Result<String> {
        output(Command::new(&self.program).arg(flag))
    }
}

/// Parses the lines of `--list-tests`: an indented place in the source, then the name.
fn names(listed: &str) -> Vec<String> {
    let lines = listed.lines().filter(|line| line.starts_with("    "));
    let mut names: Vec<String> = lines
        .filter_map(|line| Some(line.split_once(".go:")?.1.split_once(": ")?.1.to_owned()))
        .collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controlplane::Version;

    #[test]
    fn names_of_tests_are_read_without_their_places() {
        let listed = "The following spec names can be used with 'ginkgo run --focus/skip':\n    \
             k8s.io/kubernetes@v1.37.2/test/e2e/network/service.go:99: [sig-network] Services should: serve\n    \
             ../network/dns.go:12: [sig-network] DNS should provide DNS for the cluster  [Conformance]\n\n";
        let expected = [
            "[sig-network] DNS should provide DNS for the cluster  [Conformance]",
            "[sig-network] Services should: serve",
        ];
        assert_eq!(names(listed), expected);
    }

    #[test]
    fn the_tests_are_those_of_the_newest_control_plane() {
        let ours = Suite::release().unwrap();
        assert_eq!(ours, Version::Newest.release().unwrap());
    }
}
