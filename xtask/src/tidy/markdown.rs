//! Reads the parts of a Markdown document that name things: code spans, code blocks, links, headings.

use super::tree::Tree;

/// A piece of code in a document.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Code<'a> {
    /// From 1.
    pub(super) line: usize,
    pub(super) text: &'a str,
    /// Whether it is a line of a fenced block; otherwise it is a code span.
    pub(super) block: bool,
}

/// Returns the documents that describe the present: they must not name what no longer exists.
///
/// Changelog and decisions describe the past as well, so only their links are checked.
pub(super) fn living(tree: &Tree) -> impl Iterator<Item = (&str, &str)> {
    all(tree).filter(|(path, _)| !path.starts_with("docs/decisions/") && *path != "CHANGELOG.md")
}

/// Returns every document.
pub(super) fn all(tree: &Tree) -> impl Iterator<Item = (&str, &str)> {
    tree.with_extension("md")
}

/// Returns lines with their number from 1 and whether they are inside a fenced block, without the fences.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str, bool)> {
    let mut inside = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        if line.trim_start().starts_with("```") {
            inside = !inside;
            return None;
        }
        Some((index + 1, line, inside))
    })
}

/// Returns every code span and every line of a fenced block.
pub(super) fn code(text: &str) -> Vec<Code<'_>> {
    let mut found = Vec::new();
    for (line, content, block) in lines(text) {
        if block {
            let text = content;
            found.push(Code { line, text, block });
        } else {
            // Between backticks: every second piece, unless the last backtick is alone.
            let pieces: Vec<&str> = content.split('`').collect();
            let closed = pieces.len() - 1 + pieces.len() % 2;
            let spans = pieces.iter().take(closed).skip(1).step_by(2);
            found.extend(spans.map(|text| Code { line, text, block }));
        }
    }
    found
}

/// Returns the targets of `[text](target)`, `![text](target)` and `src="target"`, with their lines.
pub(super) fn links(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for (line, content, block) in lines(text) {
        if block {
            continue;
        }
        for (opening, closing) in [
            ("](", ')'),
            ("src=\"", '"'),
            ("srcset=\"", '"'),
            ("href=\"", '"'),
        ] {
            let targets = content.split(opening).skip(1);
            found.extend(targets.filter_map(|rest| Some((line, rest.split_once(closing)?.0))));
        }
    }
    found
}

/// Returns the anchors of a document's headings, as GitHub creates them.
pub(super) fn anchors(text: &str) -> Vec<String> {
    lines(text)
        .filter(|(_, line, block)| !block && line.starts_with('#'))
        .map(|(_, line, _)| slug(line.trim_start_matches('#').trim()))
        .collect()
}

fn slug(heading: &str) -> String {
    heading
        .chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
        .map(|c| if c == ' ' { '-' } else { c })
        .flat_map(char::to_lowercase)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_found_between_backticks_and_in_fences() {
        let text = "Use `a` and `b c`, not `open.\n```sh\ncargo `x`\n```\nend `d`";
        let found: Vec<_> = code(text)
            .into_iter()
            .map(|c| (c.line, c.text, c.block))
            .collect();
        let expected = vec![
            (1, "a", false),
            (1, "b c", false),
            (3, "cargo `x`", true),
            (5, "d", false),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn links_and_pictures_are_found_with_their_lines() {
        let text = "See [k](docs/k.md#a).\n![p](p.svg) <img src=\"q.svg\">\n";
        assert_eq!(
            links(text),
            [(1, "docs/k.md#a"), (2, "p.svg"), (2, "q.svg")]
        );
    }

    #[test]
    fn anchors_are_lower_case_words_joined_by_dashes() {
        assert_eq!(
            anchors("# The `two` commands!\n```\n# no\n```"),
            ["the-two-commands"]
        );
    }
}
