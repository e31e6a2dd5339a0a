//! Sets the sysctls that Services need, if they have other values.
//!
//! The lists are kube-proxy's for its IPVS mode. The old value of a sysctl is recorded before it is changed. If a sysctl
//! cannot be set, the agent warns; virtual servers still work.

mod conntrack;
mod ipvs;
mod setting;

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::crash_point::CrashPoint;
use crate::ownership::{SettingChange, SettingsRecord};

pub use conntrack::{ConntrackSettings, ConntrackTimeouts};
pub(crate) use ipvs::{Needs, estimates, forwards_v6};
use setting::Setting;

/// A sysctl with another value that could not be changed.
#[derive(Debug)]
pub(crate) struct SysctlWarning {
    file: PathBuf,
    desired: u64,
    without: &'static str,
    source: io::Error,
}

impl fmt::Display for SysctlWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            file,
            desired,
            without,
            source,
        } = self;
        write!(
            f,
            "{}: cannot set it to {desired} ({source}): {without}; set it on the host with \
             `sysctl -w`, or mount it writable and name the mount with --sysctl-dir",
            file.display()
        )
    }
}

/// The result of [`ensure`].
#[derive(Debug, Default)]
pub(crate) struct SysctlReport {
    /// Changed sysctls, as `net.ipv4.ip_forward: 0 -> 1`.
    pub(crate) changed: Vec<String>,
    /// Sysctls that could not be changed.
    pub(crate) warnings: Vec<SysctlWarning>,
    /// The record of old values could not be written.
    pub(crate) unrecorded: Option<io::Error>,
}

/// Writes sysctls, after it has recorded their old values.
pub(crate) struct SysctlWriter<'a> {
    /// `/proc/sys`.
    pub(crate) root: &'a Path,
    pub(crate) record: &'a mut SettingsRecord,
    pub(crate) crash_point: &'a CrashPoint,
}

/// Sets all sysctls for a node with these needs.
pub(crate) fn ensure(
    writer: &mut SysctlWriter<'_>,
    needs: &Needs,
    conntrack: &ConntrackSettings,
) -> SysctlReport {
    let mut report = SysctlReport::default();
    for setting in ipvs::settings(needs).chain(conntrack.settings()) {
        match writer.write_if_different(&setting, &mut report.unrecorded) {
            Ok(None) => {}
            Ok(Some(change)) => report.changed.push(change.to_string()),
            Err(source) => report.warnings.push(SysctlWarning {
                file: writer.root.join(setting.file),
                desired: setting.value.number(),
                without: setting.without,
                source,
            }),
        }
    }
    report
}

impl SysctlWriter<'_> {
    /// Returns the change, if one was needed.
    fn write_if_different(
        &mut self,
        setting: &Setting,
        unrecorded: &mut Option<io::Error>,
    ) -> io::Result<Option<SettingChange>> {
        let file = self.root.join(setting.file);
        let old = fs::read_to_string(&file)?;
        let old = old.trim();
        if setting.value.accepts(old) {
            return Ok(None);
        }
        let change = SettingChange {
            name: setting.file.replace('/', "."),
            old: old.to_owned(),
            new: setting.value.number().to_string(),
        };
        // Opened first, so that a sysctl that cannot be written is not recorded.
        let mut opened = fs::OpenOptions::new()
            .write(true)
            .truncate(true)
            .open(&file)?;
        if let Err(error) = self.record.save(&change, self.crash_point) {
            *unrecorded = Some(error);
        }
        io::Write::write_all(&mut opened, change.new.as_bytes())?;
        self.crash_point.record_writes(1);
        Ok(Some(change))
    }
}

/// Parses major and minor number of a release such as `6.12.57+deb13-cloud-amd64`.
pub(crate) fn parse_release(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests;
