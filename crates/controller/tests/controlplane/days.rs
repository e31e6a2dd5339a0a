//! Faults of the controller: a day of absence, two leaders, a kind in another version.

mod alone {
    //! A cluster has one Lease.

    use std::time::Duration;

    use crate::audit::{Audit, NAMESPACE, Request, based, hired};
    use crate::kubectl::{Changed, eventually, kubectl_with, ok};
    use crate::process::{ACCOUNT, Controller, LEASE, becomes, drain, holder};

    fn node(name: &str) -> String {
        format!(
            "{{apiVersion: v1, kind: Node, metadata: {{name: {name}, labels: {{topology.kubernetes.io/zone: a}}}}}}"
        )
    }

    /// Patches the Lease as another client.
    fn patch_lease(patch: &str) {
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

    fn lease_field(field: &str) -> String {
        let path = format!("-o=jsonpath={{.spec.{field}}}");
        ok(&["get", "lease", LEASE, "-n", NAMESPACE, &path])
    }

    /// Whether the request writes an object other than the Lease.
    fn is_write(request: &Request) -> bool {
        ["create", "update", "patch"].contains(&&*request.verb) && request.resource != "leases"
    }

    /// Whether the request is for the Lease and got this answer.
    fn is_of_lease(request: &Request, code: u64) -> bool {
        request.resource == "leases" && request.code == code
    }

    /// Moves a Node to a zone.
    fn move_node(node: &str, zone: &str) {
        let label = format!("topology.kubernetes.io/zone={zone}");
        ok(&["label", "node", node, &label, "--overwrite"]);
    }

    fn field(kind: &str, name: &str, path: &str) -> String {
        ok(&["get", kind, name, &format!("-o=jsonpath={path}")])
    }

    /// Kills a leader, sets its Lease to yesterday, and changes the cluster. Returns the time in
    /// the Lease.
    fn is_absent_for_a_day(kubeconfig: &str) -> String {
        let killed = Controller::start(kubeconfig, "killed");
        becomes("tmap", "shard-0", "{.spec.nodes.day-n2.v[0]}", "a");
        becomes("tdrain", "day", "{.status.phase}", "Active");
        assert!(killed.reports_leadership());
        drop(killed);
        let yesterday = jiff::Timestamp::now() - jiff::SignedDuration::from_hours(24);
        let yesterday = format!("{yesterday:.6}");
        patch_lease(&format!(r#"{{"spec": {{"renewTime": "{yesterday}"}}}}"#));
        move_node("day-n1", "b");
        ok(&["delete", "node", "day-n2"]);
        kubectl_with(&node("day-n3"), &["apply", "-f", "-"]).unwrap();
        let patch = r#"{"spec": {"expiresAt": "TIME"}}"#;
        let soon = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(2);
        let patch = patch.replace("TIME", &format!("{soon:.0}"));
        ok(&["patch", "tdrain", "day", "--type=merge", "-p", &patch]);
        yesterday
    }

    /// The drain ends while no controller runs. The next leader finds the old state and writes the
    /// difference.
    fn catches_up(kubeconfig: &str, renewed: &str) -> [Controller; 2] {
        std::thread::sleep(Duration::from_secs(3));
        assert_eq!(field("tdrain", "day", "{.status.phase}"), "Active");
        assert_eq!(field("tmap", "shard-0", "{.spec.nodes.day-n1.v[0]}"), "a");
        assert_eq!(field("tmap", "shard-0", "{.spec.nodes.day-n2.v[0]}"), "a");
        assert_eq!(lease_field("renewTime"), renewed, "no controller renews it");
        let replicas = ["one", "two"].map(|name| Controller::start(kubeconfig, name));
        let leader = eventually("a leader", || {
            replicas.iter().find(|replica| replica.leads())
        });
        becomes("tdrain", "day", "{.status.phase}", "Expired");
        becomes("tmap", "shard-0", "{.spec.nodes.day-n1.v[0]}", "b");
        becomes("tmap", "shard-0", "{.spec.nodes.day-n3.v[0]}", "a");
        becomes("tmap", "shard-0", "{.spec.nodes.day-n2}", "");
        leader.until_logged("acquired leadership");
        leader.until_logged("written object=TopologyDrain/day\n");
        let leaders = replicas
            .iter()
            .filter(|replica| replica.reports_leadership());
        assert_eq!(leaders.count(), 1);
        replicas
    }

    /// Another client takes the Lease: the leader stops and logs it, and no replica takes the Lease
    /// before it expires.
    fn two_leaders(audit: &Audit, replicas: &[Controller]) {
        let before: u32 = lease_field("leaseTransitions").parse().unwrap();
        let stolen = format!(
            r#"{{"spec": {{"holderIdentity": "thief", "renewTime": "{:.6}"}}}}"#,
            jiff::Timestamp::now()
        );
        let led = replicas.iter().find(|replica| replica.leads()).unwrap();
        let before_theft = audit.requests().len();
        patch_lease(&stolen);
        led.until_logged("lost leadership");
        eventually("the leader's refusal", || {
            let requests = audit.requests();
            let mut since = requests.iter().skip(before_theft);
            since.find(|request| is_of_lease(request, 409)).map(drop)
        });
        eventually("metrics without a leader", || {
            let any = replicas.iter().any(Controller::reports_leadership);
            (!any).then_some(())
        });
        assert_eq!(holder().unwrap(), "thief", "the Lease has not expired");
        move_node("day-n1", "c");
        let leader = eventually("another leader", || {
            replicas.iter().find(|replica| replica.leads())
        });
        becomes("tmap", "shard-0", "{.spec.nodes.day-n1.v[0]}", "c");
        assert!(leader.reports_leadership());
        assert_eq!(lease_field("leaseTransitions"), (before + 1).to_string());
        written_once(&audit.requests()[before_theft..]);
    }

    /// A stopped leader continues while another replica leads: it writes nothing.
    fn a_stopped_leader_continues(audit: &Audit, replicas: &[Controller]) {
        let led = replicas.iter().find(|replica| replica.leads()).unwrap();
        led.signal("STOP");
        move_node("day-n1", "d");
        let next = eventually("another leader", || {
            let mut others = replicas
                .iter()
                .filter(|replica| !std::ptr::eq(*replica, led));
            others.find(|replica| replica.leads())
        });
        becomes("tmap", "shard-0", "{.spec.nodes.day-n1.v[0]}", "d");
        let before_wake = audit.requests().len();
        led.signal("CONT");
        eventually("the end of the first leadership", || {
            (!led.reports_leadership()).then_some(())
        });
        std::thread::sleep(Duration::from_secs(3));
        assert!(next.reports_leadership() && next.leads());
        let since = audit.requests();
        let written: Vec<&Request> = since[before_wake..]
            .iter()
            .filter(|request| is_write(request) && request.resource == "topologymaps")
            .collect();
        assert!(
            written.is_empty(),
            "written by a replica that does not lead: {written:?}"
        );
    }

    /// No replica writes without leadership, and the change is written once.
    fn written_once(since: &[Request]) {
        let lost = since
            .iter()
            .position(|request| is_of_lease(request, 409))
            .unwrap();
        let between: Vec<&Request> = since[lost..]
            .iter()
            .take_while(|request| !(request.verb == "update" && is_of_lease(request, 200)))
            .filter(|request| is_write(request))
            .collect();
        assert!(
            between.is_empty(),
            "written by a replica that does not lead: {between:?}"
        );
        let writes = since
            .iter()
            .filter(|request| is_write(request) && request.resource == "topologymaps");
        assert_eq!(writes.count(), 1, "the change is written once");
    }

    /// The controller logs a kind that it cannot read and continues with the other kinds.
    #[test]
    fn a_kind_in_another_version_is_logged_and_the_other_kinds_are_written() {
        let folder = tempfile::tempdir().unwrap();
        based();
        let kubeconfig = hired(ACCOUNT, &[], folder.path());
        kubectl_with(&node("day-n1"), &["apply", "-f", "-"]).unwrap();
        kubectl_with(&drain("day", 1), &["apply", "-f", "-"]).unwrap();
        let controller = Controller::start(&kubeconfig, "one");
        becomes("tdrain", "day", "{.status.phase}", "Active");
        let changed = Changed::to_another_version("topologydrains.topology.ipvs-topo.io");
        controller.until_logged("OtherVersion");
        move_node("day-n1", "b");
        becomes("tmap", "shard-0", "{.spec.nodes.day-n1.v[0]}", "b");
        drop(changed);
        let refused = drain("day", 100);
        eventually("the version that the controller reads", || {
            kubectl_with(&refused, &["apply", "-f", "-"]).ok()
        });
        becomes("tdrain", "day", "{.status.phase}", "Refused");
        assert!(controller.end());
        ok(&["delete", "node", "day-n1"]);
        ok(&["delete", "tdrain", "day"]);
        ok(&["delete", "tmap", "--all"]);
    }

    #[test]
    fn after_a_day_of_absence_the_controller_catches_up_and_one_of_two_leaders_stops() {
        let folder = tempfile::tempdir().unwrap();
        based();
        let kubeconfig = hired(ACCOUNT, &[], folder.path());
        let audit = Audit::of(ACCOUNT);
        for name in ["day-n1", "day-n2"] {
            kubectl_with(&node(name), &["apply", "-f", "-"]).unwrap();
        }
        kubectl_with(&drain("day", 1), &["apply", "-f", "-"]).unwrap();
        let renewed = is_absent_for_a_day(&kubeconfig);
        let replicas = catches_up(&kubeconfig, &renewed);
        two_leaders(&audit, &replicas);
        a_stopped_leader_continues(&audit, &replicas);
        for replica in replicas {
            assert!(replica.end());
        }
        ok(&["delete", "node", "day-n1", "day-n3"]);
        ok(&["delete", "tdrain", "day"]);
        ok(&["delete", "tmap", "--all"]);
    }
}
