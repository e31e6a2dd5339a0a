//! Finds the table `filter` of legacy iptables, whose rules and policies netlink does not show.
//!
//! The kernel has such a table from the first use of `iptables-legacy` in this network namespace until the module is
//! unloaded. Its contents are behind a socket option of `iptables-legacy` itself (`IPT_SO_GET_ENTRIES` in
//! `net/ipv4/netfilter/ip_tables.c`), so the warning names the command.

use std::fs;
use std::path::Path;

/// Files with the names of the tables, one a line (`xt_table_seq_ops` in `net/netfilter/x_tables.c`), and the program.
const FAMILIES: [(&str, &str); 2] = [
    ("ip_tables_names", "iptables-legacy"),
    ("ip6_tables_names", "ip6tables-legacy"),
];

const TABLE: &str = "filter";

/// The warnings, one for each family; `net` is `/proc/net`.
pub(super) fn lines(net: &Path) -> Vec<String> {
    let has_table = |file: &str| {
        let names = fs::read_to_string(net.join(file)).unwrap_or_default();
        names.lines().any(|name| name == TABLE)
    };
    let families = FAMILIES.into_iter().filter(|(file, _)| has_table(file));
    families.map(|(_, program)| line(program)).collect()
}

fn line(program: &str) -> String {
    format!(
        "this node uses legacy iptables, whose rules this agent cannot read: run `{program} -S FORWARD`; if it begins \
         with `-P FORWARD DROP`, connections of pods to Services fail unless a rule accepts replies, for example `{program} \
         -I FORWARD -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT`"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_families_with_the_table_filter_are_reported_with_a_check_and_a_remedy() {
        let net = tempfile::tempdir().unwrap();
        assert!(lines(net.path()).is_empty(), "no legacy iptables");
        fs::write(net.path().join("ip_tables_names"), "nat\nmangle\n").unwrap();
        fs::write(net.path().join("ip6_tables_names"), "").unwrap();
        assert!(lines(net.path()).is_empty());
        fs::write(net.path().join("ip6_tables_names"), "nat\nfilter\n").unwrap();
        let found = lines(net.path());
        assert_eq!(found.len(), 1);
        for command in [
            "`ip6tables-legacy -S FORWARD`",
            "`ip6tables-legacy -I FORWARD -m",
        ] {
            assert!(found[0].contains(command), "{found:?}");
        }
        fs::write(net.path().join("ip_tables_names"), "filter\n").unwrap();
        assert_eq!(lines(net.path()).len(), 2);
    }
}
