//! `ipvs-topo status`: queries the running agent and prints its state.

use std::io::IsTerminal as _;
use std::path::Path;
use std::time::Duration;

use agent_api::client;
use agent_api::status::{HeadView, PageView, ServicesView, StatusView};
use topology_core::model::ObjectName;

use crate::args::{StatusArgs, StatusFormat};
use crate::exit::{ExitStatus, Failure};
use crate::output::server::Detail;
use crate::output::{print, summary};
use crate::runtime;

/// Interval of `--watch`.
const WATCH: Duration = Duration::from_secs(2);

/// Clears the terminal and its scrollback, and moves the cursor home.
const CLEAR: &str = "\x1b[2J\x1b[3J\x1b[H";

/// # Errors
/// No agent answers, or the Service does not exist.
pub fn run(args: &StatusArgs) -> Result<ExitStatus, Failure> {
    let service = args.service.as_ref();
    let service = service.map(|service| service.within(args.namespace.as_deref()));
    let service = service.transpose().map_err(Failure::input)?;
    runtime::block_on(async {
        loop {
            let view = ask(&args.socket, service.as_ref()).await?;
            let has_reader = show(args, &view)?;
            if !args.watch || !has_reader {
                return Ok(ExitStatus::of(needs_attention(&view)));
            }
            tokio::time::sleep(WATCH).await;
        }
    })
}

/// Whether anything in `view` needs attention.
fn needs_attention(view: &StatusView) -> bool {
    let failed = |server: &agent_api::view::ServerView| {
        server
            .kernel
            .as_ref()
            .is_some_and(|kernel| kernel.state != "programmed")
    };
    !view.head.kernel.in_sync || view.services.virtual_servers.iter().any(failed)
}

/// The head and all pages; a single Service is one page.
async fn ask(socket: &Path, service: Option<&ObjectName>) -> Result<StatusView, Failure> {
    let head: HeadView = client::get(socket, "/v1/status").await?;
    let mut services = ServicesView::default();
    let mut path = service.map_or_else(
        || "/v1/services".to_owned(),
        |name| format!("/v1/services?name={name}"),
    );
    loop {
        let page: PageView = client::get(socket, &path).await?;
        services
            .virtual_servers
            .extend(page.services.virtual_servers);
        services.not_programmed.extend(page.services.not_programmed);
        services.findings.extend(page.services.findings);
        match page.next {
            Some(next) => path = format!("/v1/services?after={next}"),
            None => return Ok(StatusView { head, services }),
        }
    }
}

/// Returns whether standard output still has a reader.
fn show(args: &StatusArgs, view: &StatusView) -> Result<bool, Failure> {
    let width = print::width();
    let text = match args.output {
        StatusFormat::Json => print::json(view)?,
        StatusFormat::Table => summary::status(view, Detail::Live, width),
        StatusFormat::Wide => summary::status(view, Detail::Wide, width),
    };
    if args.watch && args.output != StatusFormat::Json && std::io::stdout().is_terminal() {
        return print::update(&format!("{CLEAR}{text}"));
    }
    print::update(&text)
}
