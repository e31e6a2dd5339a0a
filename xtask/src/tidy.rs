//! `cargo xtask tidy`: what a reviewer would otherwise have to notice.
//!
//! One rule, one file in `tidy/`. A rule takes the whole tree as a value and returns problems,
//! so each one is tested on a tree made up for the purpose, and each test shows that it can fail.

mod banned;
pub(crate) mod commands;
mod cycles;
mod docs_annotations;
mod docs_commands;
mod docs_links;
mod docs_metrics;
mod docs_paths;
mod docs_vectors;
mod edges;
mod examples;
mod generated;
mod header;
mod images;
mod limits;
mod markdown;
mod meeting;
mod members;
mod modules;
mod names;
mod orphans;
mod problem;
mod reasons;
mod source;
mod tree;
mod type_names;

use std::process::ExitCode;
use std::time::Instant;

use anyhow::Context as _;

use commands::Commands;
use members::Member;
use problem::Problem;
use source::Source;
use tree::Tree;

use testbed::{cargo, paths};

/// Options of `cargo xtask tidy`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Name every rule as it passes.
    #[arg(long)]
    verbose: bool,
}

/// Everything the rules may look at.
struct Context {
    tree: Tree,
    sources: Vec<Source>,
    members: Vec<Member>,
    commands: Commands,
    agent: std::path::PathBuf,
}

/// One rule: its name, and what finds its problems.
type Rule = (&'static str, fn(&Context) -> Vec<Problem>);

/// Every rule, in the order a reader of the tree would trip over what they forbid.
const RULES: &[Rule] = &[
    ("every file says what it is", |c| header::check(&c.tree)),
    ("every file is compiled", |c| {
        orphans::check(&c.tree, &c.sources, &c.members)
    }),
    ("files and functions are small", |c| {
        limits::check(&c.sources)
    }),
    ("crates depend as designed", |c| {
        edges::check(&c.tree, &c.members)
    }),
    ("files do not import each other in a circle", |c| {
        cycles::check(&c.sources, &c.members)
    }),
    ("a type's name stands for one thing", |c| {
        type_names::check(&c.sources)
    }),
    ("kernel words and topology words meet once", |c| {
        meeting::check(&c.sources)
    }),
    ("banned calls stay out", |c| banned::check(&c.sources)),
    ("links in documents lead somewhere", |c| {
        docs_links::check(&c.tree)
    }),
    ("paths and names in documents exist", |c| {
        docs_paths::check(&c.tree, &c.members)
    }),
    ("commands and flags in documents exist", |c| {
        docs_commands::check(&c.tree, &c.commands, &c.members)
    }),
    ("metrics in documents exist", |c| {
        docs_metrics::check(&c.tree)
    }),
    ("annotations in documents exist", |c| {
        docs_annotations::check(&c.tree, &c.sources)
    }),
    ("worked examples are vectors", |c| {
        docs_vectors::check(&c.tree)
    }),
    ("every reason is explained", |c| {
        reasons::check(&c.tree, &c.sources)
    }),
    ("no image is pulled by its name alone", |c| {
        images::check(&c.tree)
    }),
    ("generated texts are up to date", |_| generated::check()),
    ("every example renders", |c| {
        examples::check(&c.tree, &c.agent)
    }),
];

/// Runs every rule and prints what breaks one.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let context = gather()?;
    let mut count = 0;
    for (name, rule) in RULES {
        let started = Instant::now();
        let problems = rule(&context);
        if args.verbose {
            let verdict = if problems.is_empty() { "ok" } else { "FAILED" };
            let milliseconds = started.elapsed().as_millis();
            anstream::println!("tidy: {name} ... {verdict} ({milliseconds} ms)");
        }
        count += problems.len();
        for problem in &problems {
            anstream::println!("{problem}");
        }
    }
    if count == 0 {
        anstream::println!("tidy: {} rules hold", RULES.len());
        return Ok(ExitCode::SUCCESS);
    }
    anstream::println!("tidy: {count} problems, each with what to do about it above");
    Ok(ExitCode::FAILURE)
}

/// Reads the tree, asks cargo for the members and the agent for its commands.
fn gather() -> anyhow::Result<Context> {
    let root = paths::root();
    let tree = Tree::read(root).context("reading the source tree")?;
    let sources = source::parse_all(&tree)?;
    let members = members::read(root, &tree).context("reading the workspace members")?;
    let agent = cargo::build_agent().context("building ipvs-topo for the examples")?;
    let commands = Commands::gather(&agent).context("reading the commands' help")?;
    Ok(Context {
        tree,
        sources,
        members,
        commands,
        agent,
    })
}
