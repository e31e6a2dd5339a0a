//! Rule: the worked examples in `docs/topology.md` are those of the vectors that the tests read.

use serde::Deserialize;

use super::problem::Problem;
use super::tree::Tree;

/// The document; its examples are table rows that begin with the name of a vector.
const DOCUMENT: &str = "docs/topology.md";
/// The vectors.
const VECTORS: &str = "crates/topology-core/tests/vectors/shares.json";

/// The part of a vector that a reader of the document sees.
#[derive(Deserialize)]
struct Vector {
    id: String,
    #[serde(default)]
    want: Vec<f64>,
    #[serde(default)]
    per_endpoint_weight: Vec<u32>,
}

/// Finds examples whose shares or weights are not the vector's.
pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let text = tree.text(VECTORS).unwrap_or_default();
    let vectors: Vec<Vector> = match serde_json::from_str(text) {
        Ok(vectors) => vectors,
        Err(error) => {
            let message =
                format!("cannot be read ({error}); the examples in {DOCUMENT} depend on it");
            return vec![Problem::in_file(VECTORS, message)];
        }
    };
    let document = tree.text(DOCUMENT).unwrap_or_default();
    let rows = document
        .lines()
        .enumerate()
        .filter(|(_, line)| line.starts_with("| Q"));
    let mut seen = 0;
    let mut problems = Vec::new();
    for (index, row) in rows {
        seen += 1;
        if let Some(wrong) = wrong(row, &vectors) {
            problems.push(Problem::at(DOCUMENT, index + 1, wrong));
        }
    }
    if seen == 0 {
        problems.push(Problem::in_file(
            DOCUMENT,
            "has no worked example; begin a table row with the name of a vector",
        ));
    }
    problems
}

/// The problem of one row, if any: `| Q06 | levels | asked | 80 / 15 / 5 | 96 / 6 / 1 |`.
fn wrong(row: &str, vectors: &[Vector]) -> Option<String> {
    let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
    let [id, _, _, shares, weights] = cells.as_slice() else {
        return Some(
            "an example has five cells: vector, levels, asked, shares, weights".to_owned(),
        );
    };
    let Some(vector) = vectors.iter().find(|vector| vector.id == *id) else {
        return Some(format!("{VECTORS} has no {id}; correct the name"));
    };
    let expected_shares = joined(vector.want.iter().map(ToString::to_string));
    let expected_weights = joined(
        vector
            .per_endpoint_weight
            .iter()
            .map(|weight| match weight {
                0 => "–".to_owned(),
                weight => weight.to_string(),
            }),
    );
    let right = *shares == expected_shares && *weights == expected_weights;
    (!right).then(|| {
        format!(
            "{id} is `{expected_shares}` and `{expected_weights}` in {VECTORS}; correct the row"
        )
    })
}

fn joined(words: impl Iterator<Item = String>) -> String {
    words.collect::<Vec<_>>().join(" / ")
}

#[cfg(test)]
mod tests {
    use super::super::problem::texts;
    use super::*;

    const Q04: &str = r#"[{"id":"Q04","want":[0.0,100.0,0.0],"per_endpoint_weight":[0,1,0]}]"#;

    fn problems_of(vectors: &str, document: &str) -> Vec<String> {
        texts(&check(&Tree::from([
            (VECTORS, vectors),
            (DOCUMENT, document),
        ])))
    }

    #[test]
    fn an_example_with_a_vectors_numbers_holds() {
        let row = "| Q04 | node 0, zone 3, any 6 | `keys` | 0 / 100 / 0 | – / 1 / – |\n";
        assert!(
            problems_of(Q04, row).is_empty(),
            "{:?}",
            problems_of(Q04, row)
        );
    }

    #[test]
    fn a_wrong_number_or_name_is_a_problem() {
        let row = "\n| Q04 | x | y | 0 / 100 / 0 | – / 2 / – |";
        assert_eq!(
            problems_of(Q04, row),
            [
                "docs/topology.md:2: Q04 is `0 / 100 / 0` and `– / 1 / –` in crates/topology-core/tests/vectors/shares.json; correct the row"
            ]
        );
        assert!(problems_of(Q04, "| Q99 | x | y | 1 | 1 |")[0].contains("has no Q99"));
    }

    #[test]
    fn missing_vectors_or_examples_are_problems() {
        assert!(problems_of("", "")[0].contains("cannot be read"));
        assert!(problems_of(Q04, "no table")[0].contains("has no worked example"));
    }
}
