//! Tests on a folder that stands for `/proc/sys`.

use super::setting::read_number;
use super::*;
use crate::ownership::SavedSettings;

const CONN_REUSE: &str = "net/ipv4/vs/conn_reuse_mode";
const SLOPPY: &str = "net/ipv4/vs/sloppy_tcp";
const MAX: &str = "net/netfilter/nf_conntrack_max";
const BUCKETS: &str = "net/netfilter/nf_conntrack_buckets";

const NEEDS: Needs = Needs {
    release: (6, 12),
    hashes: false,
    announces_own: false,
    estimation: None,
};

/// The folder with its values, and a state folder.
struct Tree {
    root: tempfile::TempDir,
    state: tempfile::TempDir,
    record: SettingsRecord,
}

impl Tree {
    fn new(values: &[(&str, &str)]) -> Self {
        let root = tempfile::tempdir().unwrap();
        let folders = [
            "net/ipv4/vs",
            "net/ipv4/conf/all",
            "net/netfilter",
            "net/ipv6/conf/all",
        ];
        for folder in folders {
            fs::create_dir_all(root.path().join(folder)).unwrap();
        }
        for setting in ipvs::settings(&NEEDS) {
            fs::write(root.path().join(setting.file), "1\n").unwrap();
        }
        for (file, value) in values {
            fs::write(root.path().join(file), value).unwrap();
        }
        let state = tempfile::tempdir().unwrap();
        let (record, saved) = SettingsRecord::open(state.path(), "b");
        assert_eq!(saved.unwrap(), SavedSettings::default());
        Self {
            root,
            state,
            record,
        }
    }

    fn ensure(&mut self, needs: &Needs, conntrack: &ConntrackSettings) -> SysctlReport {
        let mut writer = SysctlWriter {
            root: self.root.path(),
            record: &mut self.record,
            crash_point: &CrashPoint::new(None),
        };
        ensure(&mut writer, needs, conntrack)
    }

    /// As without settings of connection tracking.
    fn ensure_ipvs(&mut self, needs: &Needs) -> SysctlReport {
        self.ensure(needs, &ConntrackSettings::default())
    }

    fn read(&self, file: &str) -> u64 {
        read_number(self.root.path(), file).unwrap()
    }

    /// The record, as another process reads it.
    fn recorded(&self) -> Vec<String> {
        let (_, saved) = SettingsRecord::open(self.state.path(), "b");
        saved
            .unwrap()
            .iter()
            .map(|change| change.to_string())
            .collect()
    }
}

#[test]
fn kp_sc_02_only_differences_are_written_and_their_old_values_are_recorded() {
    let mut tree = Tree::new(&[("net/ipv4/vs/conntrack", "0\n"), (SLOPPY, "0\n")]);
    let report = tree.ensure_ipvs(&NEEDS);
    assert_eq!(report.changed, ["net.ipv4.vs.conntrack: 0 -> 1"]);
    assert!(report.warnings.is_empty());
    assert_eq!(tree.recorded(), report.changed);
    assert!(tree.ensure_ipvs(&NEEDS).changed.is_empty());
    assert_eq!(tree.read(SLOPPY), 0, "without a hashing scheduler");
}

#[test]
fn kp_sc_01_port_reuse_follows_the_kernel_version() {
    for (release, expected) in [((3, 10), 1), ((4, 1), 0), ((5, 8), 0), ((5, 9), 1)] {
        let mut tree = Tree::new(&[(CONN_REUSE, "1\n")]);
        tree.ensure_ipvs(&Needs { release, ..NEEDS });
        assert_eq!(tree.read(CONN_REUSE), expected, "{release:?}");
    }
}

#[test]
fn hashing_schedulers_need_sloppy_tcp() {
    let mut tree = Tree::new(&[(SLOPPY, "0\n")]);
    let hashes = Needs {
        hashes: true,
        ..NEEDS
    };
    assert_eq!(
        tree.ensure_ipvs(&hashes).changed,
        ["net.ipv4.vs.sloppy_tcp: 0 -> 1"]
    );
}

#[test]
fn pain_17_estimation_is_set_only_if_needed_and_known() {
    let file = "net/ipv4/vs/run_estimation";
    let needs = |estimation| Needs {
        estimation,
        ..NEEDS
    };
    let mut tree = Tree::new(&[(file, "1\n")]);
    assert_eq!(estimates(tree.root.path()), Some(true));
    assert!(tree.ensure_ipvs(&NEEDS).changed.is_empty());
    let off = tree.ensure_ipvs(&needs(Some(false)));
    assert_eq!(off.changed, ["net.ipv4.vs.run_estimation: 1 -> 0"]);
    assert_eq!(estimates(tree.root.path()), Some(false));
    let on = tree.ensure_ipvs(&needs(Some(true)));
    assert_eq!(on.changed, ["net.ipv4.vs.run_estimation: 0 -> 1"]);

    let older = Tree::new(&[]);
    assert_eq!(estimates(older.root.path()), None);
}

#[test]
fn kp_sc_03_strict_arp_changes_the_sender_of_requests_and_not_who_answers() {
    let [announce, ignore] =
        ["arp_announce", "arp_ignore"].map(|name| format!("net/ipv4/conf/all/{name}"));
    let mut tree = Tree::new(&[(&announce, "0\n"), (&ignore, "0\n")]);
    assert!(tree.ensure_ipvs(&NEEDS).changed.is_empty());
    let strict = Needs {
        announces_own: true,
        ..NEEDS
    };
    tree.ensure_ipvs(&strict);
    assert_eq!((tree.read(&announce), tree.read(&ignore)), (2, 0));
}

#[test]
fn t02_a_missing_or_read_only_file_is_a_warning_and_the_rest_continues() {
    let mut tree = Tree::new(&[("net/ipv4/vs/conntrack", "0\n")]);
    let nodest = tree.root.path().join("net/ipv4/vs/expire_nodest_conn");
    fs::remove_file(&nodest).unwrap();
    // Root may write any file, but a folder is none.
    let template = tree
        .root
        .path()
        .join("net/ipv4/vs/expire_quiescent_template");
    fs::remove_file(&template).unwrap();
    fs::create_dir(&template).unwrap();
    let report = tree.ensure_ipvs(&NEEDS);
    assert_eq!(report.changed.len(), 1);
    let texts: Vec<_> = report.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(texts.len(), 2, "{texts:?}");
    for (text, file) in texts.iter().zip([nodest, template]) {
        assert!(text.starts_with(&file.display().to_string()), "{text}");
        assert!(text.contains("sysctl -w"), "{text}");
    }
    assert_eq!(tree.recorded().len(), 1, "only what was changed");
}

#[test]
fn kp_sc_10_the_table_grows_and_never_shrinks() {
    let settings = ConntrackSettings {
        table: Some(131_072),
        ..ConntrackSettings::default()
    };
    // The table and its buckets, before and after.
    let cases = [
        ((65_536, 65_536), (131_072, 65_536)),
        ((65_536, 16_384), (131_072, 32_768)),
        ((262_144, 65_536), (262_144, 65_536)),
    ];
    for ((max, buckets), expected) in cases {
        let (max, buckets) = (max.to_string(), buckets.to_string());
        let mut tree = Tree::new(&[(MAX, &max), (BUCKETS, &buckets)]);
        let report = tree.ensure(&NEEDS, &settings);
        assert!(report.warnings.is_empty(), "{max}");
        assert_eq!((tree.read(MAX), tree.read(BUCKETS)), expected, "{max}");
    }
}

#[test]
fn kp_cf_36_timeouts_of_connection_tracking_are_set_if_configured() {
    let files = [
        (
            "net/netfilter/nf_conntrack_tcp_timeout_established",
            "432000",
        ),
        ("net/netfilter/nf_conntrack_tcp_timeout_close_wait", "60"),
        ("net/netfilter/nf_conntrack_tcp_be_liberal", "0"),
        ("net/netfilter/nf_conntrack_udp_timeout", "30"),
        ("net/netfilter/nf_conntrack_udp_timeout_stream", "120"),
    ];
    let mut tree = Tree::new(&files);
    assert!(tree.ensure_ipvs(&NEEDS).changed.is_empty());
    let settings = ConntrackSettings {
        tcp_established: Some(86_400),
        tcp_close_wait: Some(3_600),
        udp: Some(10),
        tcp_be_liberal: true,
        ..ConntrackSettings::default()
    };
    assert_eq!(tree.ensure(&NEEDS, &settings).changed.len(), 4);
    let after = files.map(|(file, _)| tree.read(file));
    assert_eq!(after, [86_400, 3_600, 1, 10, 120]);
    let timeouts = ConntrackTimeouts::read(tree.root.path());
    assert_eq!((timeouts.tcp, timeouts.udp), (Some(86_400), Some(120)));
}

#[test]
fn kp_sc_04_forwarding_of_ipv6_is_only_reported() {
    let file = "net/ipv6/conf/all/forwarding";
    let tree = Tree::new(&[(file, "0\n")]);
    let warning = forwards_v6(tree.root.path()).unwrap_err().to_string();
    assert!(warning.contains("accept_ra=2"), "{warning}");
    assert_eq!(tree.read(file), 0);
    assert!(forwards_v6(Tree::new(&[(file, "1\n")]).root.path()).is_ok());
    assert!(forwards_v6(Tree::new(&[]).root.path()).is_ok(), "no IPv6");
}

#[test]
fn releases_of_distributions_are_understood() {
    assert_eq!(parse_release("6.12.57+deb13-cloud-amd64"), Some((6, 12)));
    assert_eq!(parse_release("5.9-rc1"), Some((5, 9)));
    assert_eq!(parse_release("linux"), None);
}
