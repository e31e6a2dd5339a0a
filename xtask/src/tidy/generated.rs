//! Rule: the CRDs and the tables in the documentation are what the descriptions of the custom resources say.

use super::problem::Problem;
use crate::codegen;

/// Finds generated texts that have drifted.
pub(super) fn check() -> Vec<Problem> {
    match codegen::drift() {
        Ok(drift) => {
            let problem = |(path, text): (String, Option<String>)| {
                Problem::in_file(&path, codegen::remedy(text.is_some()))
            };
            drift.into_iter().map(problem).collect()
        }
        Err(error) => vec![Problem::in_file("manifests/crds", format!("{error:#}"))],
    }
}
