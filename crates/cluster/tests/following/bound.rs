//! The fake passes the cases of a real API server.

use crate::cases::{self, Api, collection};
use crate::fake::Fake;

async fn open() -> (Api, Fake) {
    let (fake, collection) = (Fake::new(), collection("shop"));
    fake.serve(&collection);
    let api = Api {
        client: fake.client(),
        collection,
        streams: true,
    };
    std::future::ready((api, fake)).await
}

api_server_cases!(open);

mod without_streams {
    //! Kubernetes 1.33 does not stream lists by default.

    use super::{Api, Fake, cases};

    async fn open() -> (Api, Fake) {
        let (mut api, fake) = super::open().await;
        fake.world(|world| world.streams = false);
        api.streams = false;
        (api, fake)
    }

    api_server_cases!(open => a_streaming_list_ends_with_a_bookmark);
}
