//! A real API server passes the cases of the fake.

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

use crate::cases::{self, Api, collection};
use crate::kubectl::{Namespace, installed, is_oldest, variable};

async fn open() -> (Api, Namespace) {
    installed();
    let namespace = Namespace::new();
    let kubeconfig = Kubeconfig::read_from(variable("KUBECONFIG")).unwrap();
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
    let api = Api {
        client: Client::try_from(config.unwrap()).unwrap(),
        collection: collection(&namespace.0),
        streams: !is_oldest(),
    };
    (api, namespace)
}

api_server_cases!(open);
