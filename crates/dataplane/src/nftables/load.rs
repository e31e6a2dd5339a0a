//! Writes tables with the program `nft`, and the elements of new ones over netlink.

use std::process::Output;

use netlink_pipeline::{Connection, NetlinkProtocol, Options};
use subprocess::{ChildError, Input, Program};
use tokio::task::spawn_blocking;

use super::delta::ElementDelta;
use super::desired::DesiredTables;
use super::diff::define;
use super::elements::transactions;
use super::error::NftError;
use super::options::RuleOptions;
use super::sets::SetElement;
use super::table::Transaction;

/// What is written to the kernel.
pub(super) struct Load {
    /// A transaction for `nft`.
    script: String,
    /// Elements that are added behind it.
    elements: Vec<SetElement>,
    options: RuleOptions,
}

impl Load {
    pub(super) fn whole(transaction: &Transaction) -> Self {
        Self {
            script: transaction.to_string(),
            elements: Vec::new(),
            options: RuleOptions::default(),
        }
    }

    /// Tables that the kernel does not have yet. No packet expects elements in them, and netlink takes these in a small
    /// part of the time that `nft` needs to read them.
    pub(super) fn new_tables(desired: &DesiredTables) -> Self {
        Self {
            script: define(desired).to_string(),
            elements: desired.single_elements(),
            options: desired.options.clone(),
        }
    }

    /// Returns the number of transactions.
    pub(super) async fn run(self, program: &'static str) -> Result<usize, NftError> {
        let output = run(program, &["-f", "-"], Some(&self.script)).await?;
        if !output.status.success() {
            return Err(NftError::Refused(first_lines(&output.stderr)));
        }
        if self.elements.is_empty() {
            return Ok(1);
        }
        // Many elements take a while; the agent's other work goes on.
        let added = spawn_blocking(move || self.add_elements()).await;
        let added = added.map_err(|error| ChildError::NotRun(error.into()))??;
        Ok(1 + added)
    }

    fn add_elements(self) -> Result<usize, netlink_pipeline::Error> {
        let held = DesiredTables::default().with_options(self.options);
        let delta = ElementDelta {
            added: self.elements,
            ..ElementDelta::default()
        };
        let mut connection = Connection::open(NetlinkProtocol::NETFILTER, &Options::default())?;
        let mut count = 0;
        for transaction in transactions(&held, &delta) {
            connection.converse(&mut transaction?)?;
            count += 1;
        }
        Ok(count)
    }
}

/// Runs `nft`.
pub(super) async fn run(
    program: &str,
    arguments: &[&str],
    input: Option<&str>,
) -> Result<Output, NftError> {
    let input = input.map_or(Input::None, Input::Text);
    let program = Program {
        input,
        ..Program::new(program, arguments)
    };
    Ok(subprocess::run(&program).await?)
}

fn first_lines(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    text.lines()
        .take(2)
        .collect::<Vec<_>>()
        .join(" ")
        .trim()
        .to_owned()
}
