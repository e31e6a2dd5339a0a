//! Writes the images of Kubernetes' end-to-end tests under their upstream names.
//!
//! They have the programs that the tests call, from Debian: `sh` must not be busybox, because its shell prefers its own
//! `nc`, which has no `-t` and no `-W`.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::ensure;

use super::contents::Contents;
use super::{archive, debian};
use crate::vm::Machines;
use crate::vm::command::output;
use crate::vm::progress::ProgressLine;
use crate::vm::tools::Tools;

/// The suite of the packages.
const SUITE: &str = "sid";

/// The packages of the programs that the tests call in Pods.
const PACKAGES: [&str; 8] = [
    "dash",
    // Not the static one, whose `wget` crashes when it resolves a name.
    "busybox",
    "netcat-openbsd",
    "curl",
    "iproute2",
    "conntrack",
    "bind9-dnsutils",
    // `getent`
    "libc-bin",
];

/// Programs of these packages, under their names in the packages.
const PROGRAMS: [&str; 9] = [
    "dash",
    "busybox",
    "nc.openbsd",
    "curl",
    "ip",
    "ss",
    "conntrack",
    "dig",
    "getent",
];

/// Links that the installation of the packages creates, and the folders that programs expect.
const LINKS: [(&str, &str); 5] = [
    ("bin", "usr/bin"),
    ("sbin", "usr/bin"),
    ("usr/sbin", "bin"),
    ("usr/bin/sh", "dash"),
    ("usr/bin/nc", "nc.openbsd"),
];

/// Names of programs that busybox must not provide.
const NOT_OF_BUSYBOX: [&str; 8] = ["busybox", "sh", "ash", "nc", "netcat", "ip", "ss", "getent"];

/// Text files: path and content.
const FILES: [(&str, &str); 3] = [
    (
        "etc/passwd",
        "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n",
    ),
    ("etc/group", "root:x:0:\nnogroup:x:65534:\n"),
    ("etc/nsswitch.conf", "hosts: files dns\n"),
];

/// The repositories whose images are the image with agnhost, which has every program that tests call in them.
const AS_AGNHOST: [&str; 6] = [
    "e2e-test-images/agnhost",
    // Its Pods only wait, as agnhost without arguments does.
    "pause",
    "e2e-test-images/busybox",
    // Pods call `dig` and `getent` in it.
    "e2e-test-images/glibc-dns-testing",
    // Its Pods serve nothing; the tests only look at their endpoints.
    "e2e-test-images/nginx",
    // Pods call `conntrack` in it.
    "build-image/distroless-iptables",
];

const REGRESSION: &str = "e2e-test-images/regression-issue-74839";

/// The programs for the images, and the images' names.
pub(crate) struct TestImages {
    pub(crate) agnhost: PathBuf,
    /// The folder with the certificate of agnhost's HTTPS server.
    pub(crate) porter: PathBuf,
    pub(crate) regression: PathBuf,
    pub(crate) dns: DnsServer,
    /// The full names of the images that the tests use.
    pub(crate) names: Vec<String>,
}

/// The cluster's DNS server.
pub(crate) struct DnsServer {
    pub(crate) program: PathBuf,
    /// The full name of its image.
    pub(crate) name: &'static str,
}

/// Writes the images into `folder`, and returns the archives.
pub(crate) fn write_test_images(
    images: &TestImages,
    folder: &Path,
    machines: &Machines,
) -> anyhow::Result<Vec<PathBuf>> {
    let step = ProgressLine::begin("writing the images of the tests");
    fs::create_dir_all(folder)?;
    let all = [
        agnhost(images, machines)?,
        regression(images)?,
        dns(images)?,
    ];
    let written = all
        .iter()
        .map(|contents| archive::write_image(contents, folder));
    let written = written.collect::<anyhow::Result<_>>()?;
    step.done("");
    Ok(written)
}

fn agnhost(images: &TestImages, machines: &Machines) -> anyhow::Result<Contents> {
    let mut contents = Contents::new("agnhost", "/agnhost", &["pause"]);
    contents.references = named(&images.names, &AS_AGNHOST)?;
    contents.program("agnhost", fs::read(&images.agnhost)?);
    for name in ["localhost.crt", "localhost.key"] {
        contents.text(name, fs::read(images.porter.join(name))?);
    }
    // The DNS server of tests with DNS servers of their own.
    contents.program("coredns", fs::read(&images.dns.program)?);
    let tools = Tools::of(&machines.store, "image-e2e", SUITE, &PACKAGES)?;
    debian::add(&mut contents, &tools, &PROGRAMS)?;
    for (path, target) in LINKS {
        contents.link(path, target);
    }
    for name in output(tools.host("busybox")?.arg("--list"))?.lines() {
        let path = format!("usr/bin/{name}");
        if !NOT_OF_BUSYBOX.contains(&name) && !contents.files.contains_key(&path) {
            contents.link(&path, "busybox");
        }
    }
    for (path, text) in FILES {
        contents.text(path, text.into());
    }
    Ok(contents)
}

fn regression(images: &TestImages) -> anyhow::Result<Contents> {
    let references = named(&images.names, &[REGRESSION])?;
    Contents::of_program("regression-issue-74839", &images.regression, references)
}

fn dns(images: &TestImages) -> anyhow::Result<Contents> {
    let references = vec![images.dns.name.to_owned()];
    Contents::of_program("coredns", &images.dns.program, references)
}

/// Returns the images of `all` in one of `repositories`; each must have at least one.
fn named(all: &[String], repositories: &[&str]) -> anyhow::Result<Vec<String>> {
    let mut found = Vec::new();
    for repository in repositories {
        let suffix = format!("/{repository}:");
        let before = found.len();
        found.extend(all.iter().filter(|name| name.contains(&suffix)).cloned());
        ensure!(found.len() > before, "the tests use no image {repository}");
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tag_of_a_repository_is_a_name_of_its_image() {
        let all = [
            "registry.k8s.io/e2e-test-images/agnhost:2.66.1",
            "registry.k8s.io/e2e-test-images/agnhost:2.55",
            "registry.k8s.io/e2e-test-images/busybox:1.37.0-2",
            "registry.k8s.io/other/agnhost:1",
        ]
        .map(str::to_owned);
        let found = named(&all, &["e2e-test-images/agnhost"]).unwrap();
        assert_eq!(found, [&*all[1], &*all[0]]);
        let error = named(&all, &["e2e-test-images/nginx"]).unwrap_err();
        assert!(error.to_string().contains("nginx"), "{error}");
    }
}
