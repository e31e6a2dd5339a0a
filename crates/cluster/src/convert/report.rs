//! The warnings of one object, gathered while it is converted.

use std::sync::Arc;

use object_tree::{Field, Problems, Step};
use topology_core::policy::PREFIX;

use crate::object::{Kind, ObjectKey};
use crate::text::shorten;
use crate::warning::{Code, Subject, Warning};

/// So many warnings of one object are kept; the rest are counted in one more.
const MAX_WARNINGS: usize = 20;

/// Collects the warnings of one object and knows how the object is called.
pub(crate) struct Report {
    file: Arc<str>,
    line: u32,
    subject: Subject,
    warnings: Vec<Warning>,
    untold: usize,
    usable_at: Option<i64>,
}

impl Report {
    /// A report on `subject`, which begins at `line` of `file`.
    pub(crate) fn new(file: &Arc<str>, line: u32, subject: Subject) -> Self {
        Self {
            file: Arc::clone(file),
            line,
            subject,
            warnings: Vec::new(),
            untold: 0,
            usable_at: None,
        }
    }

    /// Says how the object is called in the warnings from here on.
    pub(crate) fn name(&mut self, object: String) {
        self.subject = self.subject.clone().named(shorten(object));
    }

    /// Says which object it is.
    pub(crate) fn identify(&mut self, key: &ObjectKey) {
        let known = |warning: &mut Warning| warning.subject = Subject::Object(key.clone());
        self.warnings.iter_mut().for_each(known);
        self.subject = Subject::Object(key.clone());
    }

    /// Reports that `field` is not used as written: what is wrong with it, and what would be right.
    pub(crate) fn warn(
        &mut self,
        field: &Field<'_>,
        message: impl Into<Box<str>>,
        remedy: impl Into<Box<str>>,
    ) {
        self.add(self.of_field(field, message, remedy));
    }

    /// Reports that `field` is sound and has no effect: why, and what would have one.
    pub(crate) fn warn_no_effect(
        &mut self,
        field: &Field<'_>,
        message: impl Into<Box<str>>,
        remedy: impl Into<Box<str>>,
    ) {
        self.add(Warning {
            code: Code::NoEffect,
            ..self.of_field(field, message, remedy)
        });
    }

    fn of_field(
        &self,
        field: &Field<'_>,
        message: impl Into<Box<str>>,
        remedy: impl Into<Box<str>>,
    ) -> Warning {
        Warning {
            subject: self.subject.clone(),
            code: self.code_of(field),
            field: shorten(field.to_string()),
            ..Warning::of_file(&self.file, field.line(), message, remedy)
        }
    }

    /// What kind of thing is wrong with a field that is not used as written.
    fn code_of(&self, field: &Field<'_>) -> Code {
        match (&self.subject, self.subject.kind()) {
            (Subject::File, _) => Code::File,
            (_, Some(Kind::Service)) if is_our_annotation(field) => Code::TopologyInvalid,
            (_, Some(Kind::Service)) if is_in_topology_keys(field) => Code::TopologyKeysInvalid,
            (_, kind) if field.is_root() => Code::of_object(kind),
            (_, kind) => Code::of_field(kind),
        }
    }

    fn add(&mut self, warning: Warning) {
        // Some fields are read for two purposes; what is wrong with them is said once.
        if self.warnings.contains(&warning) {
            return;
        }
        if self.warnings.len() < MAX_WARNINGS {
            self.warnings.push(warning);
        } else {
            self.untold += 1;
        }
    }

    /// Says that the object can be used as it is from a time on, in milliseconds since 1970.
    pub(crate) fn usable_from(&mut self, time: i64) {
        self.usable_at = Some(time);
    }

    /// What [`usable_from`](Self::usable_from) said.
    pub(crate) fn usable_at(&self) -> Option<i64> {
        self.usable_at
    }

    /// The warnings in the order they were found.
    pub(crate) fn finish(mut self) -> Vec<Warning> {
        if self.untold > 0 {
            let message = format!("{} more warnings like these", self.untold);
            let code = match self.subject {
                Subject::File => Code::File,
                Subject::Object(_) | Subject::Misnamed(..) | Subject::Other(..) => {
                    Code::of_object(self.subject.kind())
                }
            };
            self.warnings.push(Warning {
                code,
                subject: self.subject,
                ..Warning::of_file(&self.file, self.line, message, "")
            });
        }
        self.warnings
    }
}

impl Problems for Report {
    fn warn(&mut self, field: &Field<'_>, message: String, remedy: String) {
        Self::warn(self, field, message, remedy);
    }
}

/// Whether the field is an annotation of ours.
fn is_our_annotation(field: &Field<'_>) -> bool {
    let is_ours = matches!(field.step(), Step::Label(key) if key.starts_with(PREFIX));
    is_ours
        && field
            .parent()
            .is_some_and(|parent| parent.is_at(["metadata", "annotations"]))
}

/// Whether the field is `spec.topologyKeys`, or in it.
fn is_in_topology_keys(field: &Field<'_>) -> bool {
    let path = ["spec", "topologyKeys"];
    field.is_at(path) || field.parent().is_some_and(|parent| parent.is_at(path))
}
