//! Converts the loop's responses to the views of the API.

use std::time::SystemTime;

use agent_api::describe;
use agent_api::status::{
    AgentView, ForeignView, HeadView, InputView, KernelView, NodeWarningView, PageView,
    ServicesView,
};

use super::context::Api;
use super::live;
use crate::inputs;
use crate::node_warning::NodeWarning;
use crate::state::{KernelServer, Page, Pulse, ServiceState, Surroundings};

/// The agent's state, without the Services.
pub(super) fn head(api: &Api, pulse: &Pulse, surroundings: Surroundings) -> HeadView {
    HeadView {
        node: api.node.to_string(),
        agent: AgentView {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            uptime_seconds: api.started.elapsed().as_secs(),
        },
        input: InputView {
            source: api.source.clone(),
            collections: api
                .sync_status
                .as_ref()
                .map(inputs::collections)
                .unwrap_or_default(),
            ready: pulse.input_ready,
            services: pulse.services,
            endpoints: pulse.endpoints,
            skipped: surroundings.skipped_kinds.into_iter().collect(),
            last_change_seconds: seconds_since(pulse.last_queued),
        },
        kernel: kernel(pulse, surroundings.routes),
        foreign: foreign(
            &surroundings.foreign_servers,
            surroundings.foreign_routes,
            surroundings.foreign_tables,
        ),
        warnings: surroundings
            .input_warnings
            .iter()
            .map(describe::warning)
            .collect(),
        node_warnings: surroundings.warnings.iter().map(node_warning).collect(),
    }
}

fn node_warning(warning: &NodeWarning) -> NodeWarningView {
    NodeWarningView {
        code: warning.topic.code().to_owned(),
        text: warning.text.clone(),
    }
}

fn kernel(pulse: &Pulse, routes: Vec<String>) -> KernelView {
    let oldest_pending = pulse.oldest_pending();
    KernelView {
        in_sync: pulse.ready && pulse.waiting == 0 && oldest_pending.is_none(),
        virtual_servers: pulse.v4.virtual_servers + pulse.v6.virtual_servers,
        real_servers: pulse.v4.active + pulse.v6.active,
        draining: pulse.v4.draining + pulse.v6.draining,
        waiting: pulse.waiting,
        last_pass_seconds: seconds_since(pulse.last_pass),
        oldest_pending_seconds: oldest_pending.map(|since| since.elapsed().as_secs()),
        routes,
        timeouts: pulse.timeouts,
    }
}

fn foreign(servers: &[KernelServer], routes: Vec<String>, tables: Vec<String>) -> Vec<ForeignView> {
    let view = |kind: &str, what: String| ForeignView {
        kind: kind.to_owned(),
        what,
    };
    let servers = servers
        .iter()
        .map(|server| view("virtual-server", live::line(server)));
    let routes = routes.into_iter().map(|route| view("route", route));
    let tables = tables.into_iter().map(|table| view("table", table));
    servers.chain(routes).chain(tables).collect()
}

/// One page of Services; `next` is where the next page starts.
pub(super) fn page(page: Page) -> PageView {
    let Page { services, more } = page;
    let next = services
        .last()
        .filter(|_| more)
        .map(|last| last.name.to_string());
    let mut view = ServicesView::default();
    for service in services {
        let ServiceState {
            name,
            servers,
            findings,
            unprogrammed,
        } = service;
        view.virtual_servers
            .extend(servers.iter().map(live::server));
        view.findings.extend(findings.iter().map(describe::finding));
        let parts = unprogrammed.iter();
        view.not_programmed
            .extend(parts.map(|part| describe::not_programmed(&name, part)));
    }
    PageView {
        services: view,
        next,
    }
}

/// Whole seconds; `None` for a time in the future, after the clock was changed.
fn seconds_since(time: Option<SystemTime>) -> Option<u64> {
    Some(time?.elapsed().unwrap_or_default().as_secs())
}
