//! What the aliases of all files stand for together: a text of some kilobytes can stand for gigabytes, and so can many
//! documents, or files, that each stay within a limit of their own.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use object_tree::MAX_ALIASED;

/// The account of one input.
#[derive(Debug, Default)]
pub(crate) struct Aliases {
    /// What those of each file stand for; none for files without.
    files: FxHashMap<Arc<str>, u64>,
    /// What those of the rest of the file that is being read may stand for.
    pub(crate) left: u64,
}

impl Aliases {
    /// The reading of a file begins.
    pub(super) fn begin(&mut self, file: &Arc<str>) {
        let others = self.files.iter().filter(|(name, _)| *name != file);
        let spent = others.map(|(_, spent)| spent).sum();
        self.left = MAX_ALIASED.saturating_sub(spent);
    }

    /// A part of the file is known already.
    pub(super) fn spend(&mut self, aliased: u64) {
        self.left = self.left.saturating_sub(aliased);
    }

    /// The file was read, or is gone.
    pub(super) fn end(&mut self, file: &Arc<str>, aliased: u64) {
        if aliased > 0 {
            self.files.insert(Arc::clone(file), aliased);
        } else {
            self.files.remove(file);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use crate::source::{Options, read};

    #[test]
    fn d13_aliases_have_one_limit_for_all_files_of_a_folder() {
        let folder = tempfile::tempdir().unwrap();
        let values = "x,".repeat(900);
        let items = "- *a\n".repeat(900);
        let text = format!("kind: Other\nmetadata: {{name: o}}\na: &a [{values}]\nb:\n{items}");
        for number in 0..5 {
            fs::write(folder.path().join(format!("{number}.yaml")), &text).unwrap();
        }
        let loaded = read(folder.path(), &Options::default()).unwrap();
        let refused: Vec<String> = loaded.warnings.iter().map(ToString::to_string).collect();
        assert_eq!(refused.len(), 3, "two of 810,900 values fit: {refused:#?}");
        assert!(
            refused[0].contains("aliases of the whole input"),
            "{refused:#?}"
        );
    }

    #[test]
    fn d13_files_that_are_refused_have_cost_as_much() {
        let folder = tempfile::tempdir().unwrap();
        let values = "x,".repeat(900);
        let items = "- *a\n".repeat(900);
        // The last line is no YAML.
        let text =
            format!("kind: Other\nmetadata: {{name: o}}\na: &a [{values}]\nb:\n{items}c: [\n");
        for number in 0..5 {
            fs::write(folder.path().join(format!("{number}.yaml")), &text).unwrap();
        }
        fs::write(
            folder.path().join("9.yaml"),
            "kind: Other\nmetadata: {name: p}\n",
        )
        .unwrap();
        let loaded = read(folder.path(), &Options::default()).unwrap();
        let refused = loaded.warnings.iter().map(ToString::to_string);
        let refused = refused.filter(|one| one.contains("aliases of the whole input"));
        assert_eq!(refused.count(), 3);
    }
}
