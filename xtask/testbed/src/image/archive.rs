//! Writes an image as an OCI archive: layout, index, manifest, configuration and one layer in a tar file.
//!
//! The bytes do not depend on time or machine: no times, no owners, sorted names.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};
use tar::{Builder, EntryType, Header};

use super::contents::{Contents, LayerEntry};
use super::sbom;

/// The path of the list of components in the image.
const SBOM: &str = "usr/share/ipvs-topo/sbom.cdx.json";

/// Writes the image and its list of components into `folder`, and returns the archive.
pub(super) fn write(contents: &Contents, folder: &Path) -> anyhow::Result<PathBuf> {
    let sbom = serde_json::to_vec_pretty(&sbom::document(contents))?;
    let mut contents = contents.clone();
    contents.text(SBOM, sbom.clone());
    let file = write_image(&contents, folder)?;
    std::fs::write(folder.join(format!("{}.cdx.json", contents.name)), sbom)?;
    Ok(file)
}

/// Writes the image alone into `folder`, and returns the archive.
pub(super) fn write_image(contents: &Contents, folder: &Path) -> anyhow::Result<PathBuf> {
    let file = folder.join(format!("{}.oci.tar", contents.name));
    std::fs::write(&file, bytes(contents)?)
        .with_context(|| format!("cannot write {}", file.display()))?;
    Ok(file)
}

fn bytes(contents: &Contents) -> anyhow::Result<Vec<u8>> {
    let layer = layer(contents)?;
    let layer_digest = digest(&layer)?;
    let configuration = serde_json::to_vec(&configuration(contents, &layer_digest))?;
    let configuration_digest = digest(&configuration)?;
    let manifest = serde_json::to_vec(&json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": descriptor("application/vnd.oci.image.config.v1+json", &configuration_digest, &configuration),
        "layers": [descriptor("application/vnd.oci.image.layer.v1.tar", &layer_digest, &layer)],
    }))?;
    let manifest_digest = digest(&manifest)?;
    let names = contents.references.iter().map(|reference| {
        json!({
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "digest": format!("sha256:{manifest_digest}"),
            "size": manifest.len(),
            "annotations": {
                "io.containerd.image.name": reference,
                "org.opencontainers.image.ref.name": tag(reference),
            },
        })
    });
    let index = serde_json::to_vec(&json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": names.collect::<Vec<_>>(),
    }))?;
    let mut archive = Tar::new();
    archive.folder("blobs")?;
    archive.folder("blobs/sha256")?;
    for (digest, blob) in [
        (&configuration_digest, &configuration),
        (&manifest_digest, &manifest),
        (&layer_digest, &layer),
    ] {
        archive.file(&format!("blobs/sha256/{digest}"), 0o644, blob)?;
    }
    archive.file("index.json", 0o644, &index)?;
    archive.file("oci-layout", 0o644, br#"{"imageLayoutVersion":"1.0.0"}"#)?;
    archive.end()
}

fn configuration(contents: &Contents, layer: &str) -> Value {
    json!({
        "architecture": "amd64",
        "os": "linux",
        "config": {
            "Entrypoint": [contents.entrypoint],
            "Cmd": contents.arguments,
            "Env": ["PATH=/usr/bin"],
            "WorkingDir": "/",
            "Labels": contents.labels,
        },
        "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{layer}")]},
        "history": [{"created_by": "cargo xtask image"}],
    })
}

/// The part of an image's name behind the last colon.
fn tag(reference: &str) -> &str {
    reference.rsplit_once(':').map_or(reference, |(_, tag)| tag)
}

fn descriptor(kind: &str, digest: &str, blob: &[u8]) -> Value {
    json!({"mediaType": kind, "digest": format!("sha256:{digest}"), "size": blob.len()})
}

/// Writes the files as a tar. Folders come first, so that each exists before its files.
fn layer(contents: &Contents) -> anyhow::Result<Vec<u8>> {
    let mut layer = Tar::new();
    for folder in contents.folders() {
        layer.folder(&folder)?;
    }
    for (path, entry) in &contents.files {
        match entry {
            LayerEntry::Program(bytes) => layer.file(path, 0o755, bytes)?,
            LayerEntry::Text(bytes) => layer.file(path, 0o644, bytes)?,
            LayerEntry::Link(target) => layer.link(path, target)?,
        }
    }
    layer.end()
}

/// A tar in which every entry belongs to root and has the time 0.
struct Tar(Builder<Vec<u8>>);

impl Tar {
    fn new() -> Self {
        Self(Builder::new(Vec::new()))
    }

    fn folder(&mut self, path: &str) -> anyhow::Result<()> {
        // Everyone may write to `/tmp`.
        let mode = if path == "tmp" { 0o1777 } else { 0o755 };
        let mut header = header(EntryType::Directory, mode, 0);
        Ok(self
            .0
            .append_data(&mut header, format!("{path}/"), &[][..])?)
    }

    fn file(&mut self, path: &str, mode: u32, bytes: &[u8]) -> anyhow::Result<()> {
        let mut header = header(EntryType::Regular, mode, bytes.len().try_into()?);
        Ok(self.0.append_data(&mut header, path, bytes)?)
    }

    fn link(&mut self, path: &str, target: &str) -> anyhow::Result<()> {
        let mut header = header(EntryType::Symlink, 0o777, 0);
        Ok(self.0.append_link(&mut header, path, target)?)
    }

    fn end(self) -> anyhow::Result<Vec<u8>> {
        Ok(self.0.into_inner()?)
    }
}

fn header(kind: EntryType, mode: u32, size: u64) -> Header {
    let mut header = Header::new_ustar();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(size);
    header.set_mtime(0);
    header.set_uid(0);
    header.set_gid(0);
    header
}

/// Returns the SHA-256 in hexadecimal, by the program that every Debian machine has.
fn digest(bytes: &[u8]) -> anyhow::Result<String> {
    let mut child = Command::new("sha256sum")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start `sha256sum`: install the package coreutils")?;
    let mut input = child.stdin.take().context("sha256sum has no input")?;
    input.write_all(bytes)?;
    drop(input);
    let done = child.wait_with_output()?;
    ensure!(
        done.status.success(),
        "`sha256sum` failed ({})",
        done.status
    );
    let line = String::from_utf8(done.stdout)?;
    let digest = line.split(' ').next().context("sha256sum said nothing")?;
    Ok(digest.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contents(order: [(&str, &[u8]); 2]) -> Contents {
        let mut contents = Contents::new("shop", "/usr/bin/shop", &[]).ours();
        for (path, bytes) in order {
            contents.program(path, bytes.to_vec());
        }
        contents.link("bin", "usr/bin");
        contents
    }

    #[test]
    fn the_order_of_gathering_makes_no_difference() {
        let files: [(&str, &[u8]); 2] = [("usr/bin/shop", b"1"), ("usr/bin/nft", b"2")];
        let [first, second] = files;
        let one = bytes(&contents([first, second])).unwrap();
        let other = bytes(&contents([second, first])).unwrap();
        assert_eq!(one, other);
    }

    #[test]
    fn every_blob_is_under_its_own_digest_and_of_the_size_that_is_said() {
        let archive = bytes(&contents([("usr/bin/shop", b"1"), ("etc/nft", b"2")])).unwrap();
        let mut blobs = 0;
        let mut tar = tar::Archive::new(archive.as_slice());
        for entry in tar.entries().unwrap() {
            let mut entry = entry.unwrap();
            let path = entry.path().unwrap().to_string_lossy().into_owned();
            let Some(name) = path.strip_prefix("blobs/sha256/") else {
                continue;
            };
            if name.is_empty() {
                continue;
            }
            let mut blob = Vec::new();
            std::io::Read::read_to_end(&mut entry, &mut blob).unwrap();
            assert_eq!(digest(&blob).unwrap(), name);
            blobs += 1;
        }
        assert_eq!(blobs, 3);
    }

    #[test]
    fn an_image_with_two_names_is_in_the_index_twice_with_one_digest() {
        let mut contents = contents([("usr/bin/shop", b"1"), ("etc/nft", b"2")]);
        contents.references = vec!["a.test/shop:1".to_owned(), "a.test:5000/shop:2".to_owned()];
        let archive = bytes(&contents).unwrap();
        let mut tar = tar::Archive::new(archive.as_slice());
        let index = tar.entries().unwrap().find_map(|entry| {
            let entry = entry.unwrap();
            let is_index = entry.path().unwrap().ends_with("index.json");
            is_index.then(|| serde_json::from_reader::<_, Value>(entry).unwrap())
        });
        let manifests = index.unwrap()["manifests"].as_array().unwrap().clone();
        let of = |name: &str| -> Vec<Value> {
            let each = manifests.iter();
            each.map(|one| one["annotations"][name].clone()).collect()
        };
        assert_eq!(of("io.containerd.image.name"), contents.references);
        assert_eq!(of("org.opencontainers.image.ref.name"), ["1", "2"]);
        assert_eq!(manifests[0]["digest"], manifests[1]["digest"]);
    }

    #[test]
    fn a_layer_has_every_folder_before_its_content() {
        let layer = layer(&contents([("usr/bin/shop", b"1"), ("etc/a/b", b"2")])).unwrap();
        let mut tar = tar::Archive::new(layer.as_slice());
        let paths = tar.entries().unwrap().map(|entry| {
            let entry = entry.unwrap();
            assert_eq!(entry.header().mtime().unwrap(), 0);
            entry.path().unwrap().to_string_lossy().into_owned()
        });
        let paths: Vec<String> = paths.collect();
        let expected = [
            "etc/",
            "etc/a/",
            "tmp/",
            "usr/",
            "usr/bin/",
            "bin",
            "etc/a/b",
            "usr/bin/shop",
        ];
        assert_eq!(paths, expected);
    }
}
