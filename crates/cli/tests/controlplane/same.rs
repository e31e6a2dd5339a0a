//! Files and the API server with the same cluster give the same output, byte for byte.

mod alone {
    use std::fs;
    use std::path::Path;

    use agent_api::view::NodeView;
    use cli::args::ServiceArgs;
    use cli::offline::{Offline, Resolved};
    use cli::origin::Origin;
    use cli::output::{print, save};
    use serde_json::{Value, json};

    use crate::kubectl::{is_oldest, kubectl};
    use crate::random::{self, NAMESPACE};
    use crate::server::{Server, origin};

    /// The number of random clusters, about one per second. Each version of the server has other
    /// clusters. Most of the time is the server's wait for its cache.
    const CLUSTERS: u64 = 100;

    fn service_args() -> ServiceArgs {
        ServiceArgs {
            service_cidr: Vec::new(),
            scheduler: topology_core::scheduler::Scheduler::Wrr,
            nodeport_addresses: Vec::new(),
            fwmark_mask: topology_core::snapshot::MarkMask::default(),
            allow_lists: cli::args::AllowListArgs::default(),
        }
    }

    fn read(origin: &Origin, node: &str, now: i64) -> Offline {
        let read = Offline::read(origin, node, &service_args(), now);
        read.unwrap_or_else(|failure| panic!("{}", failure.message()))
    }

    /// The lines of `render -o save`, for one namespace or all.
    fn saved(resolved: &Resolved, namespace: Option<&str>) -> String {
        let ours = |one: &&topology_core::resolve::ResolvedServer| {
            namespace.is_none_or(|namespace| *one.service.namespace == *namespace)
        };
        let servers = resolved.servers.iter().filter(ours);
        save::save(&servers.map(|one| &one.server).collect::<Vec<_>>())
    }

    /// `render -o json` without file and line in warnings, which objects of a server do not have.
    fn json_of(resolved: Resolved, node: &str) -> String {
        let mut view: NodeView = resolved.view(node);
        for warning in &mut view.warnings {
            let place = (warning.file.take(), warning.line.take());
            if let (Some(file), Some(line)) = place {
                warning.text = warning.text.replacen(&format!("{file}:{line}: "), "", 1);
            }
        }
        view.warnings
            .sort_by(|one, other| one.text.cmp(&other.text));
        print::json(&view).unwrap()
    }

    fn nodes(offline: &Offline) -> Vec<String> {
        let nodes = offline.loaded.snapshot.nodes();
        let mut names: Vec<String> = nodes.map(|node| node.name.to_string()).collect();
        names.sort();
        names
    }

    /// Compares the API server with the file at `path`, from every node. Returns the server's
    /// state.
    fn same(what: &str, path: &Path, now: i64) -> Offline {
        let file = Origin::Files(path.to_owned());
        let mut through_server = read(&origin(), "none", now);
        let mut through_file = read(&file, "none", now);
        let names = nodes(&through_server);
        assert_eq!(names, nodes(&through_file), "{what}");
        for name in names {
            for offline in [&mut through_server, &mut through_file] {
                offline.look_from(&name, &service_args());
            }
            let (one, other) = (through_server.resolve(), through_file.resolve());
            assert_eq!(saved(&one, None), saved(&other, None), "{what} from {name}");
            assert_eq!(
                json_of(one, &name),
                json_of(other, &name),
                "{what} from {name}"
            );
        }
        through_server
    }

    #[test]
    fn every_example_and_many_random_clusters() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let server = runtime.block_on(Server::alone());
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("written.json");
        let now = jiff::Timestamp::now().as_millisecond();
        let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../manifests/examples");
        let mut examples: Vec<_> = fs::read_dir(examples)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        examples.sort();
        assert!(examples.len() > 9, "{examples:?}");
        for example in examples {
            let name = example.display().to_string();
            runtime.block_on(async {
                server.empty().await;
                for namespace in ["shop", "infra", "telco", "tools", "one"] {
                    server
                        .namespace(namespace, &json!({"tier": "backend"}))
                        .await;
                }
            });
            apply(&example);
            let written = runtime.block_on(server.written());
            assert!(
                services(&written) > 1,
                "{name}: only the API server's own Service is there"
            );
            fs::write(&path, written.to_string()).unwrap();
            same(&name, &path, now);
        }
        runtime.block_on(async {
            server.empty().await;
            server.namespace(NAMESPACE, &json!({"team": "x"})).await;
        });
        let first = if is_oldest() { CLUSTERS } else { 0 };
        for seed in first..first + CLUSTERS {
            let objects = random::cluster(seed);
            let original = original(&objects);
            let written = runtime.block_on(async {
                server.fill(objects).await;
                server.written().await
            });
            fs::write(&path, written.to_string()).unwrap();
            // All drains have begun at this time.
            let now = jiff::Timestamp::now().as_millisecond();
            let what = format!("cluster {seed}");
            let through_server = same(&what, &path, now);
            fs::write(&path, original.to_string()).unwrap();
            as_made(&what, through_server, &path, now);
            runtime.block_on(server.empty());
        }
    }

    /// Applies an example. kubectl refuses some Pods of `list`, which do not affect the result.
    fn apply(example: &Path) {
        let folder = tempfile::tempdir().unwrap();
        for file in fs::read_dir(example).unwrap() {
            let file = file.unwrap();
            let mut text = fs::read_to_string(file.path()).unwrap();
            if is_oldest() {
                // These values of `trafficDistribution` exist since Kubernetes 1.34.
                for word in ["PreferSameZone", "PreferSameNode"] {
                    text = text.replace(word, "PreferClose");
                }
            }
            fs::write(folder.path().join(file.file_name()), text).unwrap();
        }
        let folder = folder.path().to_str().unwrap();
        let applied = kubectl(&["apply", "--validate=ignore", "-f", folder]);
        assert!(
            applied.is_ok() || example.ends_with("list"),
            "{}: {applied:?}",
            example.display()
        );
    }

    fn services(written: &Value) -> usize {
        let items = written.pointer("/items").and_then(Value::as_array).unwrap();
        let kinds = items.iter().filter_map(|item| item.get("kind"));
        kinds.filter(|kind| **kind == "Service").count()
    }

    /// The objects that were sent to the server, as a list.
    fn original(objects: &[(String, Value)]) -> Value {
        let namespace = json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": NAMESPACE, "labels": {"team": "x"}},
        });
        let items: Vec<Value> = objects
            .iter()
            .map(|(_, object)| object.clone())
            .chain([namespace])
            .collect();
        json!({"apiVersion": "v1", "kind": "List", "items": items})
    }

    /// The sent objects, without defaults of the server, give the same virtual servers.
    fn as_made(what: &str, mut through_server: Offline, path: &Path, now: i64) {
        through_server.look_from("n0", &service_args());
        let through_file = read(&Origin::Files(path.to_owned()), "n0", now);
        let lines = |offline: &Offline| saved(&offline.resolve(), Some(NAMESPACE));
        let (one, other) = (lines(&through_server), lines(&through_file));
        assert_eq!(one, other, "{what} as it was made");
    }
}
