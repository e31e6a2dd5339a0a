//! `cargo xtask tidy`: checks rules that a reviewer would otherwise have to check.
//!
//! Each rule is a file in `tidy/`. A rule takes the whole tree as a value and returns problems. Its tests use a small
//! tree, and show that the rule can fail.

mod banned;
pub(crate) mod commands;
mod cycles;
mod docs_annotations;
mod docs_commands;
mod docs_kube_proxy_tests;
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
mod members;
mod modules;
mod names;
mod orphans;
mod problem;
mod reasons;
mod source;
mod translation;
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
    /// Print every rule with its time.
    #[arg(long)]
    verbose: bool,
}

/// The input of the rules.
struct Context {
    tree: Tree,
    sources: Vec<Source>,
    members: Vec<Member>,
    commands: Commands,
    agent: std::path::PathBuf,
}

/// A rule: its name, and the function that finds problems.
type Rule = (&'static str, fn(&Context) -> Vec<Problem>);

/// The rules, in the order in which they run.
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
    ("a type's name has one meaning", |c| {
        type_names::check(&c.sources)
    }),
    ("one file names both topology_core and ipvs_netlink", |c| {
        translation::check(&c.sources)
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
    ("kube-proxy's unit tests have tests or reasons", |c| {
        docs_kube_proxy_tests::check(&c.tree, &c.sources)
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

/// Runs every rule and prints the problems.
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

/// Reads the tree, the workspace members and the commands of the programs.
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
