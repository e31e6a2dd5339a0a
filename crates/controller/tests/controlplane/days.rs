//! Bad days of the controller: away for a day, and two who believe that they lead.

mod alone {
    //! There is one Lease in a cluster.

    use crate::audit::{Audit, NAMESPACE, Request, based, hired};
    use crate::kubectl::{eventually, kubectl_with, ok};
    use crate::process::{ACCOUNT, Controller, LEASE, becomes, drain, holder};

    fn node(name: &str) -> String {
        format!(
            "{{apiVersion: v1, kind: Node, metadata: {{name: {name}, labels: {{topology.kubernetes.io/zone: a}}}}}}"
        )
    }

    /// Writes into the Lease, as somebody else would.
    fn lease(patch: &str) {
        ok(&[
            "patch",
            "lease",
            LEASE,
            "-n",
            NAMESPACE,
            "--type=merge",
            "-p",
            patch,
        ]);
    }

    fn lease_is(field: &str) -> String {
        let path = format!("-o=jsonpath={{.spec.{field}}}");
        ok(&["get", "lease", LEASE, "-n", NAMESPACE, &path])
    }

    fn held(name: &str) -> bool {
        holder().is_some_and(|holder| holder.starts_with(&format!("{name}_")))
    }

    /// Whether it wrote what agents read.
    fn is_write(request: &Request) -> bool {
        ["create", "update", "patch"].contains(&&*request.verb) && request.resource != "leases"
    }

    /// A leader that was killed; its Lease is as old as a day, and the world went on.
    fn gone_for_a_day(kubeconfig: &str) -> [Controller; 2] {
        let gone = Controller::start(kubeconfig, "gone");
        becomes("tmap", "shard-0", "{.spec.nodes.day-n2.v[0]}", "a");
        becomes("tdrain", "day", "{.status.phase}", "Active");
        drop(gone);
        let yesterday = jiff::Timestamp::now() - jiff::SignedDuration::from_hours(24);
        lease(&format!(r#"{{"spec": {{"renewTime": "{yesterday:.6}"}}}}"#));
        ok(&[
            "label",
            "node",
            "day-n1",
            "topology.kubernetes.io/zone=b",
            "--overwrite",
        ]);
        ok(&["delete", "node", "day-n2"]);
        kubectl_with(&node("day-n3"), &["apply", "-f", "-"]).unwrap();
        // The drain ends while nobody looks.
        let ended = r#"{"spec": {"expiresAt": "TIME"}}"#;
        let now = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(3);
        let ended = ended.replace("TIME", &format!("{now:.0}"));
        ok(&["patch", "tdrain", "day", "--type=merge", "-p", &ended]);
        let back = ["one", "two"].map(|name| Controller::start(kubeconfig, name));
        becomes("tdrain", "day", "{.status.phase}", "Expired");
        becomes("tmap", "shard-0", "{.spec.nodes.day-n1.v[0]}", "b");
        becomes("tmap", "shard-0", "{.spec.nodes.day-n3.v[0]}", "a");
        becomes("tmap", "shard-0", "{.spec.nodes.day-n2}", "");
        back
    }

    /// The Lease is somebody else's all at once: who led stops, nobody takes it before it has run out.
    fn two_leaders(audit: &Audit) {
        let before: u32 = lease_is("leaseTransitions").parse().unwrap();
        let stolen = format!(
            r#"{{"spec": {{"holderIdentity": "thief", "renewTime": "{:.6}"}}}}"#,
            jiff::Timestamp::now()
        );
        let already = audit.requests().len();
        lease(&stolen);
        eventually("the leader's refusal", || {
            let requests = audit.requests();
            let mut since = requests.iter().skip(already);
            since
                .find(|one| one.resource == "leases" && one.code == 409)
                .map(drop)
        });
        ok(&[
            "label",
            "node",
            "day-n1",
            "topology.kubernetes.io/zone=c",
            "--overwrite",
        ]);
        eventually("another leader", || {
            (held("one") || held("two")).then_some(())
        });
        becomes("tmap", "shard-0", "{.spec.nodes.day-n1.v[0]}", "c");
        assert_eq!(lease_is("leaseTransitions"), (before + 1).to_string());
        let requests = audit.requests();
        let since = || requests.iter().skip(already);
        let lost = since()
            .position(|one| one.resource == "leases" && one.code == 409)
            .unwrap();
        let took = since()
            .skip(lost)
            .position(|one| one.resource == "leases" && one.verb == "update" && one.code == 200);
        let between: Vec<&Request> = since()
            .skip(lost)
            .take(took.unwrap())
            .filter(|one| is_write(one))
            .collect();
        assert!(
            between.is_empty(),
            "written by who does not lead: {between:?}"
        );
        let writes = since()
            .filter(|one| is_write(one) && one.resource == "topologymaps")
            .count();
        assert_eq!(writes, 1, "the change is written once");
    }

    #[test]
    fn after_a_day_away_all_is_caught_up_and_of_two_leaders_one_stops() {
        let folder = tempfile::tempdir().unwrap();
        based();
        let kubeconfig = hired(ACCOUNT, &[], folder.path());
        let audit = Audit::of(ACCOUNT);
        for name in ["day-n1", "day-n2"] {
            kubectl_with(&node(name), &["apply", "-f", "-"]).unwrap();
        }
        kubectl_with(&drain("day", 1), &["apply", "-f", "-"]).unwrap();
        let back = gone_for_a_day(&kubeconfig);
        two_leaders(&audit);
        for one in back {
            assert!(one.end());
        }
        ok(&["delete", "node", "day-n1", "day-n3"]);
        ok(&["delete", "tdrain", "day"]);
        ok(&["delete", "tmap", "--all"]);
    }
}
