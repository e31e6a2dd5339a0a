//! Sets the sysctls that IPVS needs, if they have other values.
//!
//! The list is kube-proxy's for its IPVS mode. All of them except `ip_forward` appear when the module `ip_vs` is
//! loaded, and belong to one network namespace. If a sysctl cannot be set, the agent warns; virtual servers still work.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::crash_point::CrashPoint;

/// A sysctl and the consequence of another value.
struct Setting {
    /// Path below `/proc/sys`.
    file: &'static str,
    value: &'static str,
    /// The consequence of another value.
    without: &'static str,
}

const SETTINGS: &[Setting] = &[
    Setting {
        file: "net/ipv4/vs/conntrack",
        value: "1",
        without: "a pod that calls its own Service gets no answer",
    },
    Setting {
        file: "net/ipv4/vs/expire_nodest_conn",
        value: "1",
        without: "connections to a deleted endpoint linger instead of ending at once",
    },
    Setting {
        file: "net/ipv4/vs/expire_quiescent_template",
        value: "1",
        without: "clients with session affinity keep going to an endpoint that is leaving",
    },
    Setting {
        file: "net/ipv4/ip_forward",
        value: "1",
        without: "answers from endpoints on other nodes do not reach pods",
    },
];

/// Kernels 4.1 to 5.8 delay or lose connections that reuse a port unless this is 0. From 5.9 on the default is right,
/// and before 4.1 the sysctl does not exist (kubernetes/kubernetes#81775, #93297).
const CONN_REUSE: Setting = Setting {
    file: "net/ipv4/vs/conn_reuse_mode",
    value: "0",
    without: "connections that reuse a port wait a second (kernel older than 5.9)",
};

/// A sysctl with another value that could not be changed.
#[derive(Debug)]
pub(crate) struct SysctlWarning {
    file: PathBuf,
    desired: &'static str,
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
}

/// Sets all sysctls below `root` (`/proc/sys`) for a kernel of `release` (major, minor).
pub(crate) fn ensure(root: &Path, release: (u32, u32), crash_point: &CrashPoint) -> SysctlReport {
    let mut report = SysctlReport::default();
    let reuse = ((4, 1)..(5, 9)).contains(&release).then_some(&CONN_REUSE);
    for setting in SETTINGS.iter().chain(reuse) {
        match write_if_different(&root.join(setting.file), setting.value) {
            Ok(None) => {}
            Ok(Some(old)) => {
                let name = setting.file.replace('/', ".");
                report
                    .changed
                    .push(format!("{name}: {old} -> {}", setting.value));
                crash_point.record_writes(1);
            }
            Err(source) => report.warnings.push(SysctlWarning {
                file: root.join(setting.file),
                desired: setting.value,
                without: setting.without,
                source,
            }),
        }
    }
    report
}

/// Returns the previous value if it was changed.
fn write_if_different(file: &Path, desired: &str) -> io::Result<Option<String>> {
    let old = fs::read_to_string(file)?;
    let old = old.trim();
    if old == desired {
        return Ok(None);
    }
    fs::write(file, desired)?;
    Ok(Some(old.to_owned()))
}

/// Parses major and minor number of a release such as `6.12.57+deb13-cloud-amd64`.
pub(crate) fn parse_release(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(reuse: &str, conntrack: &str) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("net/ipv4/vs")).unwrap();
        for setting in SETTINGS {
            fs::write(root.path().join(setting.file), "1\n").unwrap();
        }
        fs::write(root.path().join(CONN_REUSE.file), reuse).unwrap();
        fs::write(root.path().join("net/ipv4/vs/conntrack"), conntrack).unwrap();
        root
    }

    fn read(root: &Path, file: &str) -> String {
        fs::read_to_string(root.join(file))
            .unwrap()
            .trim()
            .to_owned()
    }

    #[test]
    fn kp_sc_02_only_differences_are_written() {
        let root = tree("1\n", "0\n");
        let report = ensure(root.path(), (6, 12), &CrashPoint::new(None));
        assert_eq!(report.changed, ["net.ipv4.vs.conntrack: 0 -> 1"]);
        assert!(report.warnings.is_empty());
        let again = ensure(root.path(), (6, 12), &CrashPoint::new(None));
        assert!(again.changed.is_empty());
    }

    #[test]
    fn kp_sc_01_port_reuse_follows_the_kernel_version() {
        for (release, expected) in [((3, 10), "1"), ((4, 1), "0"), ((5, 8), "0"), ((5, 9), "1")] {
            let root = tree("1\n", "1\n");
            ensure(root.path(), release, &CrashPoint::new(None));
            assert_eq!(read(root.path(), CONN_REUSE.file), expected, "{release:?}");
        }
    }

    #[test]
    fn t02_a_missing_file_is_a_warning_and_the_rest_continues() {
        let root = tree("1\n", "0\n");
        fs::remove_file(root.path().join("net/ipv4/vs/expire_nodest_conn")).unwrap();
        let report = ensure(root.path(), (6, 1), &CrashPoint::new(None));
        assert_eq!(report.changed.len(), 1);
        let text = report.warnings.first().unwrap().to_string();
        assert!(text.contains("net/ipv4/vs/expire_nodest_conn"), "{text}");
        assert!(text.contains("sysctl -w"), "{text}");
    }

    #[test]
    fn releases_of_distributions_are_understood() {
        assert_eq!(parse_release("6.12.57+deb13-cloud-amd64"), Some((6, 12)));
        assert_eq!(parse_release("5.9-rc1"), Some((5, 9)));
        assert_eq!(parse_release("linux"), None);
    }
}
