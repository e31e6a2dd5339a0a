//! Limits what the YAML aliases of all files expand to together. A few kilobytes can expand to
//! gigabytes, and so can many files if each has its own limit.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use object_tree::MAX_ALIASED;

/// The values that the aliases of one input expand to.
#[derive(Debug, Default)]
pub(crate) struct Aliases {
    /// For each file with aliases.
    files: FxHashMap<Arc<str>, u64>,
    /// The limit for the rest of the file that is being read.
    pub(crate) left: u64,
}

impl Aliases {
    /// Begins a file.
    pub(super) fn begin(&mut self, file: &Arc<str>) {
        let others = self.files.iter().filter(|(name, _)| *name != file);
        let spent = others.map(|(_, spent)| spent).sum();
        self.left = MAX_ALIASED.saturating_sub(spent);
    }

    /// Counts a part of the file that is known already.
    pub(super) fn spend(&mut self, aliased: u64) {
        self.left = self.left.saturating_sub(aliased);
    }

    /// Ends a file, which was read or no longer exists.
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
    fn d13_files_that_are_refused_count_as_well() {
        let folder = tempfile::tempdir().unwrap();
        let values = "x,".repeat(900);
        let items = "- *a\n".repeat(900);
        // The last line is not valid YAML.
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
