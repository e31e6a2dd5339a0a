//! Rule: command lines of this project in documents use existing commands, flags and targets.

use super::commands::{CommandHelp, Commands};
use super::markdown;
use super::members::Member;
use super::problem::Problem;
use super::tree::Tree;

/// Finds command lines that would not run.
pub(super) fn check(tree: &Tree, commands: &Commands, members: &[Member]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (path, text) in markdown::living(tree) {
        for code in markdown::code(text) {
            if code.block {
                let wrong = trailing_comment(code.text, commands);
                problems.extend(wrong.map(|message| Problem::at(path, code.line, message)));
            }
            for command in code.text.split(['|', ';', '&', '#']) {
                let wrong = wrong_words(command, commands)
                    .or_else(|| wrong_target(command, members))
                    .or_else(|| unquoted(command, code.block, commands));
                problems.extend(wrong.map(|message| Problem::at(path, code.line, message)));
            }
        }
    }
    problems
}

/// The words of a command line after the program, if it is one of this project's programs.
fn words_after<'a>(command: &'a str, program: &str) -> Option<Vec<&'a str>> {
    let command = command.trim_start_matches(['$', ' ']);
    let command = command.strip_prefix("sudo ").unwrap_or(command);
    let rest = command.strip_prefix(program)?;
    let ends = rest.is_empty() || rest.starts_with(' ');
    let brackets = |c: char| matches!(c, '[' | ']' | '(' | ')' | '{' | '}');
    ends.then(|| {
        rest.split_whitespace()
            .map(|word| word.trim_matches(brackets))
            .collect()
    })
}

/// The first word that the program does not know.
fn wrong_words(command: &str, commands: &Commands) -> Option<String> {
    commands.programs.iter().find_map(|(program, node)| {
        let words = words_after(command, program)?;
        let wrong = first_unknown(node, &words)?;
        Some(format!(
            "`{program}` does not know `{wrong}` in `{}`; see `{program} --help`",
            command.trim()
        ))
    })
}

/// A comment behind a command line, which a zsh at a terminal passes on as arguments.
fn trailing_comment(line: &str, commands: &Commands) -> Option<String> {
    let quotes = |text: &str| text.matches('\'').count();
    let (command, _) = line
        .split_once(" #")
        .filter(|(before, _)| quotes(before) % 2 == 0)?;
    let runs = command.split(['|', ';', '&']);
    let mut runs = runs.map(str::trim_start);
    let is_known = runs.any(|run| is_ours(run, commands) || words_after(run, "cargo").is_some());
    is_known.then(|| {
        format!(
            "the comment behind `{}` is an argument to zsh; write it above or below the block",
            command.trim()
        )
    })
}

fn is_ours(command: &str, commands: &Commands) -> bool {
    let mut programs = commands.programs.keys();
    programs.any(|program| words_after(command, program).is_some())
}

/// A word that a shell would expand: bash passes a pattern on that fits no file, zsh refuses the whole line. Beside text,
/// brackets are around what may be left out.
fn unquoted(command: &str, is_block: bool, commands: &Commands) -> Option<String> {
    if !is_ours(command, commands) {
        return None;
    }
    let plain: String = command.split('\'').step_by(2).collect();
    let is_expanded = |word: &&str| {
        word.contains(['*', '?']) || word.starts_with('=') || is_block && word.contains('[')
    };
    let word = plain.split_whitespace().find(is_expanded)?;
    Some(format!(
        "`{word}` in `{}` means files to zsh; put it in single quotes",
        command.trim()
    ))
}

fn first_unknown<'a>(program: &CommandHelp, words: &[&'a str]) -> Option<&'a str> {
    let mut node = program;
    let mut flags: Vec<&CommandHelp> = vec![program];
    for word in words {
        let name = word.split('=').next().unwrap_or(word);
        if name.starts_with('-') {
            let known =
                name == "--" || name == "-" || flags.iter().any(|node| node.flags.contains(name));
            if !known {
                return Some(word);
            }
        } else if let Some(next) = node.under.get(name) {
            node = next;
            flags.push(next);
        } else if !node.under.is_empty() && name.starts_with(|c: char| c.is_ascii_lowercase()) {
            return Some(word);
        }
    }
    None
}

/// A package, bench, test or example that a `cargo` command names and that is not there.
fn wrong_target(command: &str, members: &[Member]) -> Option<String> {
    let words = words_after(command, "cargo")?;
    words.windows(2).find_map(|pair| {
        let &[flag, name] = pair else { return None };
        let target = |kind: &str| {
            let mut targets = members.iter().flat_map(|member| &member.targets);
            targets.any(|target| target.name == name && target.kind.iter().any(|k| k == kind))
        };
        let known = match flag {
            "-p" | "--package" => members.iter().any(|member| member.name == name),
            "--bench" => target("bench"),
            "--example" => target("example"),
            "--test" => target("test"),
            "--bin" => target("bin"),
            _ => true,
        };
        (!known).then(|| {
            format!(
                "`{flag} {name}` in `{}`: there is no such target; correct the name",
                command.trim()
            )
        })
    })
}

#[cfg(test)]
mod tests {
    use super::super::members::CargoTarget;
    use super::super::problem::texts;
    use super::*;

    fn node(flags: &[&str], under: Vec<(&str, CommandHelp)>) -> CommandHelp {
        CommandHelp {
            flags: flags.iter().map(|flag| (*flag).to_owned()).collect(),
            under: under
                .into_iter()
                .map(|(name, node)| (name.to_owned(), node))
                .collect(),
        }
    }

    fn problems_of(document: &str) -> Vec<String> {
        let render = node(&["--cluster", "--node", "-o"], vec![]);
        let vm = node(&[], vec![("test", node(&["--kernel"], vec![]))]);
        let mut commands = Commands::default();
        let programs = [
            ("ipvs-topo", node(&["--help"], vec![("render", render)])),
            ("cargo xtask", node(&["--help"], vec![("vm", vm)])),
        ];
        for (name, node) in programs {
            commands.programs.insert(name.into(), node);
        }
        let member = Member {
            name: "benches".into(),
            targets: vec![CargoTarget {
                name: "core".into(),
                kind: vec!["bench".into()],
                src_path: String::new(),
            }],
            ..Member::default()
        };
        texts(&check(
            &Tree::from([("README.md", document)]),
            &commands,
            &[member],
        ))
    }

    #[test]
    fn command_lines_that_run_are_fine() {
        let text = "`ipvs-topo --help`, `ipvs-topo`, `ipvs-topo-dns x`\n\
            ```sh\n$ sudo ipvs-topo render --cluster PATH --node n1 -o save | sort\n\
            cargo xtask vm test --kernel all\ncargo bench -p benches --bench core\n```\n";
        assert!(problems_of(text).is_empty(), "{:?}", problems_of(text));
    }

    #[test]
    fn a_comment_behind_a_command_line_is_a_problem() {
        let fine = "```sh\n# above\nipvs-topo render --node 'a #1'\nls # ours is not\n```\n`ipvs-topo render # x`";
        assert!(problems_of(fine).is_empty(), "{:?}", problems_of(fine));
        let bad = "```sh\nls | ipvs-topo render # one\ncargo bench # two\n```\n";
        let problems = problems_of(bad);
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert!(problems[0].starts_with("README.md:2: the comment behind `ls | ipvs-topo render`"));
    }

    #[test]
    fn an_unknown_command_or_flag_is_a_problem() {
        let problems = problems_of(
            "`ipvs-topo rendr`\n`ipvs-topo render --nod n1`\n`cargo xtask vm test --kernels=all`",
        );
        assert_eq!(problems.len(), 3, "{problems:?}");
        assert!(problems[0].contains("README.md:1: `ipvs-topo` does not know `rendr`"));
        assert!(problems[1].contains("does not know `--nod`"));
        assert!(problems[2].contains("does not know `--kernels=all`"));
    }

    #[test]
    fn an_unknown_package_or_bench_is_a_problem() {
        let problems =
            problems_of("`cargo bench -p benchs`\n`cargo bench -p benches --bench gone`");
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert!(problems[0].contains("`-p benchs`"));
        assert!(problems[1].contains("`--bench gone`"));
    }

    #[test]
    fn a_word_that_zsh_takes_for_files_is_a_problem() {
        let quoted = problems_of("`ipvs-topo render --cluster 'a:keys=zone,*' --node n1`");
        assert!(quoted.is_empty(), "{quoted:?}");
        let plain = problems_of("`ipvs-topo render [--cluster PATH]`");
        assert!(plain.is_empty(), "{plain:?}");
        let brackets = problems_of("```\nipvs-topo render --cluster [fd00::1]\n```\n");
        assert!(brackets[0].contains("`[fd00::1]`"), "{brackets:?}");
        let problems = problems_of("`ipvs-topo render --cluster a:keys=zone,*`");
        assert!(
            problems[0].contains("`a:keys=zone,*` in `ipvs-topo render"),
            "{problems:?}"
        );
    }
}
