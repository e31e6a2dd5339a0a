//! The intended differences between the answers of `CoreDNS` and ours. `docs/dns-differences.md` is made of them.

use std::fmt::Write as _;

/// A reviewed difference. `rules.rs` has its condition, and both answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Difference {
    Terminating,
    InternalLocal,
    SrvWeight,
    PortAddresses,
    PortWithoutUnderscore,
    NamesAbove,
    NameServer,
    Namespaces,
    PortsOfPod,
    AliasOtherTypes,
    AliasWithoutTarget,
    Version,
    MessageSize,
    Additionals,
    CutRecords,
}

/// The texts of a difference.
pub(crate) struct Row {
    pub(crate) difference: Difference,
    pub(crate) question: &'static str,
    pub(crate) coredns: &'static str,
    pub(crate) ipvs_topo: &'static str,
    pub(crate) reason: &'static str,
}

/// The reviewed differences, in the order of the page.
pub(crate) const ROWS: [Row; 15] = [
    Row {
        difference: Difference::Terminating,
        question: "endpoints that terminate and still serve",
        coredns: "no record",
        ipvs_topo: "They keep their own names. If no endpoint is ready, the Service has their addresses.",
        reason: "kube-proxy uses them in this case, too (KEP-1669).",
    },
    Row {
        difference: Difference::InternalLocal,
        question: "a headless Service with `internalTrafficPolicy: Local`",
        coredns: "all ready endpoints",
        ipvs_topo: "those on the client's node",
        reason: "The field means the same as for a Service with a cluster IP.",
    },
    Row {
        difference: Difference::SrvWeight,
        question: "the weight in SRV records",
        coredns: "100, divided by the number of addresses and ports",
        ipvs_topo: "the weight of the endpoint; without a policy 1",
        reason: "Policies need weights. Without a policy they are equal in both.",
    },
    Row {
        difference: Difference::PortAddresses,
        question: "A and AAAA of `_PORT._PROTOCOL.SVC.NS.svc`",
        coredns: "the addresses of the Service",
        ipvs_topo: "no data",
        reason: "The specification has SRV records for these names only.",
    },
    Row {
        difference: Difference::PortWithoutUnderscore,
        question: "`PORT.PROTOCOL.SVC.NS.svc` without underscores",
        coredns: "as with them",
        ipvs_topo: "NXDOMAIN",
        reason: "The specification has no such names.",
    },
    Row {
        difference: Difference::NamesAbove,
        question: "names that have only names below them: `_PROTOCOL.SVC.NS.svc`; TXT of `NS.svc`, `svc`, `pod`, `NS.pod` and the domain",
        coredns: "NXDOMAIN",
        ipvs_topo: "no data",
        reason: "NXDOMAIN would say that the names below do not exist, and resolvers may keep that (RFC 8020).",
    },
    Row {
        difference: Difference::NameServer,
        question: "`dns`; TXT and PTR of `ns.dns`",
        coredns: "NXDOMAIN",
        ipvs_topo: "no data",
        reason: "`ns.dns` is the server in the SOA record: it exists, and so does the name above it.",
    },
    Row {
        difference: Difference::Namespaces,
        question: "`NS.svc` of a namespace without Services; `NS.pod` and the names of pods in a namespace that does not exist",
        coredns: "no data for the first; NXDOMAIN for the others",
        ipvs_topo: "NXDOMAIN for the first; as in a namespace that exists for the others",
        reason: "Namespaces are not read: a name below `svc` exists if a Service does, and the address of a pod is in its name.",
    },
    Row {
        difference: Difference::PortsOfPod,
        question: "SRV of the name of one endpoint or pod",
        coredns: "its ports; for a pod the port 0",
        ipvs_topo: "no data",
        reason: "The specification has A and AAAA records for these names only.",
    },
    Row {
        difference: Difference::AliasOtherTypes,
        question: "other types than A, AAAA and CNAME of an ExternalName",
        coredns: "no data",
        ipvs_topo: "the CNAME record",
        reason: "An alias has no other records, so a CNAME record answers each type (RFC 1034, 3.6.2).",
    },
    Row {
        difference: Difference::AliasWithoutTarget,
        question: "A and AAAA of an ExternalName whose target has none",
        coredns: "inside of the domain no data, and no CNAME record; outside the CNAME record without an error",
        ipvs_topo: "the CNAME record, and NXDOMAIN if the target does not exist",
        reason: "The response code is that of the last name (RFC 6604).",
    },
    Row {
        difference: Difference::Version,
        question: "`dns-version`",
        coredns: "TXT for 28,800 seconds; NXDOMAIN for other types",
        ipvs_topo: "TXT for as long as other records; no data for other types",
        reason: "The name exists, and a change of the version shows at once.",
    },
    Row {
        difference: Difference::MessageSize,
        question: "a client that offers to take UDP messages of more than 1,232 bytes",
        coredns: "messages of up to 4,096 bytes",
        ipvs_topo: "truncated at 1,232 bytes",
        reason: "Fragments get lost, and let answers be forged (DNS flag day 2020).",
    },
    Row {
        difference: Difference::Additionals,
        question: "additional records that do not all fit into the UDP message",
        coredns: "as many as fit; the message is marked as truncated",
        ipvs_topo: "none; the message is truncated only if answers are missing",
        reason: "Clients would ask again over TCP for records that they can ask for (RFC 2181, 9).",
    },
    Row {
        difference: Difference::CutRecords,
        question: "how many records a truncated message has",
        coredns: "as many as fit",
        ipvs_topo: "a few less, or one more",
        reason: "The encoder needs room for the name in question twice, and records of different lengths come in another order. Clients ignore these records and ask again over TCP.",
    },
];

/// The page `docs/dns-differences.md`.
pub(crate) fn page() -> String {
    let mut page = "\
# Differences from CoreDNS

A test creates fifty random clusters on a real API server, asks CoreDNS 1.15 and `ipvs-topo dns` for every name of each, and compares the answers (`cargo xtask controlplane test --package cli coredns`, [testing](testing.md#coredns)).
Response code, authority, TTL and the records of all sections must be equal, except for these differences and the serial number in the SOA record.
Services have no policy of ipvs-topo.
With a policy that prefers the client's zone, the answers are those of CoreDNS's `ZONE.prefer._zone.SVC.NS.svc` (its option `zonal`), and with one that permits only the zone, those of `ZONE.pin._zone.SVC.NS.svc`.
Only if no endpoint of the Service is ready, CoreDNS has these names, without data.

| question | CoreDNS | ipvs-topo | why |
| --- | --- | --- | --- |
"
    .to_owned();
    for row in ROWS {
        let cells = [row.question, row.coredns, row.ipvs_topo, row.reason];
        writeln!(page, "| {} |", cells.join(" | ")).unwrap();
    }
    page.push_str(
        "\nThis page is generated: `crates/cli/tests/controlplane/coredns/differences.rs` has the texts, and the test fails \
         on a difference that is not among them, and on one that does not occur any more.\n",
    );
    page
}
