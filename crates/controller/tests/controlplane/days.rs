//! Bad days of the controller: away for a day, two who believe that they lead, a kind in another version.

mod alone {
    //! There is one Lease in a cluster.

    use std::time::Duration;

    use crate::audit::{Audit, NAMESPACE, Request, based, hired};
    use crate::kubectl::{Changed, eventually, kubectl_with, ok};
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

    /// Whether it wrote what agents read.
    fn is_write(request: &Request) -> bool {
        ["create", "update", "patch"].contains(&&*request.verb) && request.resource != "leases"
    }

    /// Whether the Lease was asked for, with this answer.
    fn is_of_lease(request: &Request, code: u64) -> bool {
        request.resource == "leases" && request.code == code
    }

    /// Moves a Node to a zone.
    fn moves(node: &str, zone: &str) {
        let label = format!("topology.kubernetes.io/zone={zone}");
        ok(&["label", "node", node, &label, "--overwrite"]);
    }

    /// What is in a field of an object now.
    fn field(kind: &str, name: &str, path: &str) -> String {
        ok(&["get", kind, name, &format!("-o=jsonpath={path}")])
    }

    /// A leader that was killed; its Lease is as old as a day, and the world went on. When that was, as the Lease has it.
    fn goes_for_a_day(kubeconfig: &str) -> String {
        let gone = Controller::start(kubeconfig, "gone");
        becomes("tmap", "shard-0", "{.spec.nodes.day-n2.v[0]}", "a");
        becomes("tdrain", "day", "{.status.phase}", "Active");
        assert!(gone.says_that_it_leads());
        drop(gone);
        let yesterday = jiff::Timestamp::now() - jiff::SignedDuration::from_hours(24);
        let yesterday = format!("{yesterday:.6}");
        lease(&format!(r#"{{"spec": {{"renewTime": "{yesterday}"}}}}"#));
        moves("day-n1", "b");
        ok(&["delete", "node", "day-n2"]);
        kubectl_with(&node("day-n3"), &["apply", "-f", "-"]).unwrap();
        let ended = r#"{"spec": {"expiresAt": "TIME"}}"#;
        let soon = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(2);
        let ended = ended.replace("TIME", &format!("{soon:.0}"));
        ok(&["patch", "tdrain", "day", "--type=merge", "-p", &ended]);
        yesterday
    }

    /// The drain ends while nobody looks; who comes back finds everything as it was, and writes the difference.
    fn comes_back(kubeconfig: &str, renewed: &str) -> [Controller; 2] {
        std::thread::sleep(Duration::from_secs(3));
        assert_eq!(field("tdrain", "day", "{.status.phase}"), "Active");
        assert_eq!(field("tmap", "shard-0", "{.spec.nodes.day-n1.v[0]}"), "a");
        assert_eq!(field("tmap", "shard-0", "{.spec.nodes.day-n2.v[0]}"), "a");
        assert_eq!(lease_is("renewTime"), renewed, "nobody renews it");
        let back = ["one", "two"].map(|name| Controller::start(kubeconfig, name));
        let leader = eventually("a leader", || back.iter().find(|one| one.leads()));
        becomes("tdrain", "day", "{.status.phase}", "Expired");
        becomes("tmap", "shard-0", "{.spec.nodes.day-n1.v[0]}", "b");
        becomes("tmap", "shard-0", "{.spec.nodes.day-n3.v[0]}", "a");
        becomes("tmap", "shard-0", "{.spec.nodes.day-n2}", "");
        leader.until_logged("acquired leadership");
        leader.until_logged("written object=TopologyDrain/day\n");
        let leaders = back.iter().filter(|one| one.says_that_it_leads());
        assert_eq!(leaders.count(), 1);
        back
    }

    /// The Lease is somebody else's all at once: who led stops and says so, nobody takes it before it has run out.
    fn two_leaders(audit: &Audit, back: &[Controller]) {
        let before: u32 = lease_is("leaseTransitions").parse().unwrap();
        let stolen = format!(
            r#"{{"spec": {{"holderIdentity": "thief", "renewTime": "{:.6}"}}}}"#,
            jiff::Timestamp::now()
        );
        let led = back.iter().find(|one| one.leads()).unwrap();
        let already = audit.requests().len();
        lease(&stolen);
        led.until_logged("lost leadership");
        eventually("the leader's refusal", || {
            let requests = audit.requests();
            let mut since = requests.iter().skip(already);
            since.find(|one| is_of_lease(one, 409)).map(drop)
        });
        eventually("figures without a leader", || {
            let any = back.iter().any(Controller::says_that_it_leads);
            (!any).then_some(())
        });
        assert_eq!(holder().unwrap(), "thief", "it has not run out");
        moves("day-n1", "c");
        let leader = eventually("another leader", || back.iter().find(|one| one.leads()));
        becomes("tmap", "shard-0", "{.spec.nodes.day-n1.v[0]}", "c");
        assert!(leader.says_that_it_leads());
        assert_eq!(lease_is("leaseTransitions"), (before + 1).to_string());
        written_once(&audit.requests()[already..]);
    }

    /// Who led wakes up when another leads: it has missed a change, and writes nothing.
    fn a_sleeper_wakes(audit: &Audit, back: &[Controller]) {
        let led = back.iter().find(|one| one.leads()).unwrap();
        led.signal("STOP");
        moves("day-n1", "d");
        let next = eventually("another leader", || {
            let mut others = back.iter().filter(|one| !std::ptr::eq(*one, led));
            others.find(|one| one.leads())
        });
        becomes("tmap", "shard-0", "{.spec.nodes.day-n1.v[0]}", "d");
        let already = audit.requests().len();
        led.signal("CONT");
        eventually("the end of the first one's lead", || {
            (!led.says_that_it_leads()).then_some(())
        });
        std::thread::sleep(Duration::from_secs(3));
        assert!(next.says_that_it_leads() && next.leads());
        let since = audit.requests();
        let written: Vec<&Request> = since[already..]
            .iter()
            .filter(|one| is_write(one) && one.resource == "topologymaps")
            .collect();
        assert!(written.is_empty(), "by who does not lead: {written:?}");
    }

    /// Nobody writes who does not lead, and what changed meanwhile is written once.
    fn written_once(since: &[Request]) {
        let lost = since.iter().position(|one| is_of_lease(one, 409)).unwrap();
        let between: Vec<&Request> = since[lost..]
            .iter()
            .take_while(|one| !(one.verb == "update" && is_of_lease(one, 200)))
            .filter(|one| is_write(one))
            .collect();
        assert!(
            between.is_empty(),
            "written by who does not lead: {between:?}"
        );
        let writes = since
            .iter()
            .filter(|one| is_write(one) && one.resource == "topologymaps");
        assert_eq!(writes.count(), 1, "the change is written once");
    }

    /// What it cannot read it tells and leaves alone; the rest goes on, and so does that when it can be read again.
    #[test]
    fn a_kind_in_another_version_is_told_and_the_rest_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        based();
        let kubeconfig = hired(ACCOUNT, &[], folder.path());
        kubectl_with(&node("day-n1"), &["apply", "-f", "-"]).unwrap();
        kubectl_with(&drain("day", 1), &["apply", "-f", "-"]).unwrap();
        let one = Controller::start(&kubeconfig, "one");
        becomes("tdrain", "day", "{.status.phase}", "Active");
        let changed = Changed::to_another_version("topologydrains.topology.ipvs-topo.io");
        one.until_logged("OtherVersion");
        moves("day-n1", "b");
        becomes("tmap", "shard-0", "{.spec.nodes.day-n1.v[0]}", "b");
        drop(changed);
        let refused = drain("day", 100);
        eventually("the version that it reads", || {
            kubectl_with(&refused, &["apply", "-f", "-"]).ok()
        });
        becomes("tdrain", "day", "{.status.phase}", "Refused");
        assert!(one.end());
        ok(&["delete", "node", "day-n1"]);
        ok(&["delete", "tdrain", "day"]);
        ok(&["delete", "tmap", "--all"]);
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
        let renewed = goes_for_a_day(&kubeconfig);
        let back = comes_back(&kubeconfig, &renewed);
        two_leaders(&audit, &back);
        a_sleeper_wakes(&audit, &back);
        for one in back {
            assert!(one.end());
        }
        ok(&["delete", "node", "day-n1", "day-n3"]);
        ok(&["delete", "tdrain", "day"]);
        ok(&["delete", "tmap", "--all"]);
    }
}
