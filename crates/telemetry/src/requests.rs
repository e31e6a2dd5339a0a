//! Counts requests to the API server as client-go does.

use std::collections::BTreeMap;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

/// The counter `rest_client_requests_total`.
#[derive(Debug, Clone, Default)]
pub struct ClientRequests(Family<Labels, Counter>);

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, EncodeLabelSet)]
struct Labels {
    code: String,
    method: &'static str,
    host: String,
}

impl ClientRequests {
    /// Adds the counter to a registry, which must have no prefix.
    pub fn register(&self, registry: &mut Registry) {
        let words = "Requests to the API server, by HTTP status code, method and host";
        registry.register("rest_client_requests", words, self.0.clone());
    }

    /// Replaces the counts by those of requests to the server at `address`, by status code (see
    /// [`code_label`](Self::code_label)) and HTTP method.
    pub fn fill(
        &self,
        address: &str,
        counts: impl IntoIterator<Item = (String, &'static str, u64)>,
    ) {
        let mut sums: BTreeMap<Labels, u64> = BTreeMap::new();
        for (code, method, count) in counts {
            let host = host(address).to_owned();
            *sums.entry(Labels { code, method, host }).or_default() += count;
        }
        self.0.clear();
        for (labels, count) in sums {
            self.0.get_or_create(&labels).inc_by(count);
        }
    }

    /// Returns client-go's label value for a status code; `<error>` for a request without a response.
    pub fn code_label(code: Option<u16>) -> String {
        code.map_or_else(|| "<error>".to_owned(), |code| code.to_string())
    }
}

/// Returns client-go's host label: the address without scheme and path.
fn host(address: &str) -> &str {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    rest.split('/').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_to_different_resources_count_together_and_old_counts_go() {
        let mut registry = Registry::default();
        let requests = ClientRequests::default();
        requests.register(&mut registry);
        let code = ClientRequests::code_label;
        requests.fill("https://a:1/", [(code(Some(404)), "GET", 7)]);
        let counts = [
            (code(Some(200)), "GET", 2),
            (code(Some(200)), "GET", 3),
            (code(None), "PUT", 1),
        ];
        requests.fill("https://10.0.0.1:6443/clusters/1", counts);
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        let mut samples: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        samples.sort_unstable();
        let wanted = [
            "rest_client_requests_total{code=\"200\",method=\"GET\",host=\"10.0.0.1:6443\"} 5",
            "rest_client_requests_total{code=\"<error>\",method=\"PUT\",host=\"10.0.0.1:6443\"} 1",
        ];
        assert_eq!(samples, wanted);
    }
}
