//! Reports about objects and resources, of which only changes are sent.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kube_io::ApiError;

use crate::event::FileReport;
use crate::object::ObjectKey;
use crate::warning::{Code, Warning};

/// What was reported, and the reports that are not sent yet.
#[derive(Debug, Default)]
pub(super) struct ChangedReports {
    /// The names of the reports that have warnings.
    warned: BTreeSet<Arc<str>>,
    /// Why resources cannot be read, by name of the resource.
    errors: BTreeMap<&'static str, Warning>,
    unsent: Vec<FileReport>,
}

impl ChangedReports {
    pub(super) fn take(&mut self) -> Vec<FileReport> {
        std::mem::take(&mut self.unsent)
    }

    /// Replaces the report with this name; without warnings withdraws it.
    pub(super) fn set(&mut self, name: Arc<str>, warnings: Vec<Warning>) {
        let mut report = FileReport::empty(&name);
        report.warnings = warnings;
        let is_changed = if report.warnings.is_empty() {
            self.warned.remove(&name)
        } else {
            self.warned.insert(name);
            true
        };
        if is_changed {
            self.unsent.push(report);
        }
    }

    pub(super) fn set_object(&mut self, key: &ObjectKey, warnings: Vec<Warning>) {
        if !warnings.is_empty() || !self.warned.is_empty() {
            self.set(key.to_string().into(), warnings);
        }
    }

    /// Reports how many objects the last list of a resource lacks, if it is in doubt.
    pub(super) fn set_doubt(&mut self, resource: &'static str, missing: Option<usize>) {
        let warning = missing.map(|missing| {
            let message = format!(
                "the last list of {resource} lacks {missing} objects, more than half of the known ones; \
                 they stay until a second list, a minute later, lacks them too"
            );
            let remedy = "check whether this is the right API server and whether its data was lost; \
                          --relists=believe removes them at once";
            Warning {
                code: Code::ListDoubted,
                ..Warning::of_file(&"".into(), 0, message, remedy)
            }
        });
        let name = format!("list of {resource}").into();
        self.set(name, warning.into_iter().collect());
    }

    /// Reports why a resource cannot be read; withdraws the report without an error.
    pub(super) fn set_error(
        &mut self,
        resource: &'static str,
        server: &Arc<str>,
        error: Option<&ApiError>,
    ) {
        let warning = error.map(|error| Warning {
            code: Code::Input,
            ..Warning::of_file(server, 0, error.to_string(), "")
        });
        if self.errors.get(resource) == warning.as_ref() {
            return;
        }
        let mut report = FileReport::empty(&resource.into());
        report.warnings.extend(warning.clone());
        self.unsent.push(report);
        match warning {
            Some(warning) => drop(self.errors.insert(resource, warning)),
            None => drop(self.errors.remove(resource)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::Kind;

    fn warning() -> Warning {
        Warning::of_file(&"".into(), 0, "broken", "repair it")
    }

    /// The names of the unsent reports, each with the number of its warnings.
    fn unsent(reports: &mut ChangedReports) -> Vec<(String, usize)> {
        let unsent = reports.take().into_iter();
        unsent
            .map(|report| (report.file.to_string(), report.warnings.len()))
            .collect()
    }

    #[test]
    fn a_report_is_withdrawn_once_and_only_if_it_had_warnings() {
        let mut reports = ChangedReports::default();
        let key = ObjectKey::global(Kind::Node, &"n1".into());
        let name = key.to_string();
        reports.set_object(&key, Vec::new());
        reports.set("labels".into(), Vec::new());
        assert_eq!(unsent(&mut reports), []);
        reports.set_object(&key, vec![warning()]);
        assert_eq!(unsent(&mut reports), [(name.clone(), 1)]);
        reports.set_object(&key, Vec::new());
        reports.set_object(&key, Vec::new());
        assert_eq!(unsent(&mut reports), [(name, 0)]);
    }

    #[test]
    fn a_doubt_is_reported_until_a_list_has_the_objects() {
        let mut reports = ChangedReports::default();
        reports.set_doubt("nodes", None);
        assert_eq!(unsent(&mut reports), []);
        reports.set_doubt("nodes", Some(7));
        reports.set_doubt("nodes", None);
        let name = "list of nodes".to_owned();
        assert_eq!(unsent(&mut reports), [(name.clone(), 1), (name, 0)]);
    }
}
