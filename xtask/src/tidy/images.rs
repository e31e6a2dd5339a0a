//! Rule: the base pulls no image, and what overlays and components pull has a digest.
//!
//! The names of images in the base belong to no registry: an owner of that name could run code on every node.

use super::problem::Problem;
use super::tree::Tree;

/// Finds images that a node would pull by name without a digest.
pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let base = tree.under("manifests/base/").flat_map(pulled);
    let others = ["manifests/overlays/", "manifests/components/"];
    let others = others.into_iter().flat_map(|folder| tree.under(folder));
    base.chain(others.flat_map(without_digest)).collect()
}

/// Finds containers of the base without `imagePullPolicy: Never` below their image.
fn pulled((path, text): (&str, &str)) -> Vec<Problem> {
    let lines: Vec<(usize, &str)> = numbered(text).collect();
    let images = lines
        .iter()
        .enumerate()
        .filter(|(_, (_, line))| line.starts_with("image:"));
    let pulled = images.filter(|(at, _)| !is_never_pulled(&lines, *at));
    pulled
        .map(|(_, (line, _))| {
            let message = "a node may pull this image by its name alone; write `imagePullPolicy: Never` below it";
            Problem::at(path, *line, message)
        })
        .collect()
}

/// Returns whether the line below an image forbids to pull it.
fn is_never_pulled(lines: &[(usize, &str)], at: usize) -> bool {
    let next = lines.get(at + 1).map(|(_, line)| *line);
    next == Some("imagePullPolicy: Never")
}

/// Finds images of overlays and components without a digest that a node may pull.
fn without_digest((path, text): (&str, &str)) -> Vec<Problem> {
    let lines: Vec<(usize, &str)> = numbered(text).collect();
    let mut problems = Vec::new();
    for (at, (number, line)) in lines.iter().enumerate() {
        let of_image = |rest: &&(usize, &str)| !rest.1.starts_with("- ") && rest.1 != "patches:";
        let rest = lines.iter().skip(at + 1).take_while(of_image);
        let item = || std::iter::once(*line).chain(rest.clone().map(|(_, line)| *line));
        let renames = line.starts_with("- ")
            && item().any(|line| line.contains("newName:") || line.contains("newTag:"));
        let names =
            line.contains("image:") && !line.contains("@sha256:") && !is_never_pulled(&lines, at);
        if names || renames && !item().any(has_digest) {
            let message = "the image has no digest, so that its registry may put another behind the name; add `digest: sha256:...`";
            problems.push(Problem::at(path, *number, message));
        }
    }
    problems
}

/// Returns whether a line has a complete digest.
fn has_digest(line: &str) -> bool {
    let digest = line.split("sha256:").nth(1).unwrap_or_default();
    let digits = digest.chars().take_while(char::is_ascii_hexdigit);
    line.contains("digest:") && digits.count() == 64
}

/// Returns the lines without comments and indentation, with their numbers.
fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text
        .lines()
        .zip(1..)
        .map(|(line, number)| (number, line.trim()));
    lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
}

#[cfg(test)]
mod tests {
    use super::super::problem::texts;
    use super::*;

    #[test]
    fn an_image_that_a_node_would_pull_by_its_name_is_a_problem() {
        let digest = format!("sha256:{}", "0".repeat(64));
        let component = format!(
            "images:\n- name: a\n  newName: b\n  digest: {digest}\n- {{name: c, newName: d}}\n- name: e\n  newTag: v1\npatches:\n- x\n"
        );
        let daemon_set =
            "image: a:1\nimagePullPolicy: Never\nimage: b:1\nimagePullPolicy: Always\n";
        let overlay = "- op: replace\n  value: {image: other}\n";
        let tree = Tree::from([
            (
                "manifests/base/agent.yaml",
                "- name: a\n  image: a:1\n  # Why.\n  imagePullPolicy: Never\n- name: b\n  image: b:1\n- name: c\n  image: c:1\n  imagePullPolicy: IfNotPresent\n",
            ),
            (
                "manifests/components/registry/kustomization.yaml",
                &*component,
            ),
            ("manifests/components/own/daemonset.yaml", daemon_set),
            ("manifests/overlays/odd/kustomization.yaml", overlay),
            ("manifests/examples/pod.yaml", "image: x\n"),
        ]);
        let problems = texts(&check(&tree));
        let places: Vec<&str> = problems
            .iter()
            .filter_map(|text| text.split(": ").next())
            .collect();
        let component = "manifests/components/registry/kustomization.yaml";
        assert_eq!(
            places,
            [
                "manifests/base/agent.yaml:6",
                "manifests/base/agent.yaml:8",
                "manifests/overlays/odd/kustomization.yaml:2",
                "manifests/components/own/daemonset.yaml:3",
                &format!("{component}:5"),
                &format!("{component}:6"),
            ],
            "{problems:?}"
        );
    }
}
