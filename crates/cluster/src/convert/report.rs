//! Collects the warnings of one object while it is converted.

use std::sync::Arc;

use object_tree::{Field, Problems, Step};
use topology_core::policy::PREFIX;

use crate::object::{Kind, ObjectKey};
use crate::text::shorten;
use crate::warning::{Code, Subject, Warning};

/// The largest number of warnings of one object. One more warning counts the rest.
const MAX_WARNINGS: usize = 20;

/// The warnings of one object, and its name.
pub(crate) struct Report {
    file: Arc<str>,
    line: u32,
    subject: Subject,
    warnings: Vec<Warning>,
    untold: usize,
    usable_at: Option<i64>,
}

impl Report {
    /// `line` is the first line of the object in `file`.
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

    /// Sets the object's name as written, for the warnings that follow.
    pub(crate) fn name(&mut self, object: String) {
        self.subject = self.subject.clone().named(shorten(object));
    }

    /// Sets the object's key, also for the warnings so far.
    pub(crate) fn identify(&mut self, key: &ObjectKey) {
        let known = |warning: &mut Warning| warning.subject = Subject::Object(key.clone());
        self.warnings.iter_mut().for_each(known);
        self.subject = Subject::Object(key.clone());
    }

    /// Warns that `field` is not used as written.
    pub(crate) fn warn(
        &mut self,
        field: &Field<'_>,
        message: impl Into<Box<str>>,
        remedy: impl Into<Box<str>>,
    ) {
        self.add(self.of_field(field, message, remedy));
    }

    /// Warns that `field` is valid but has no effect.
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

    /// The code for a field that is not used as written.
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
        // Some fields are read twice; a fault in them is reported once.
        if self.warnings.contains(&warning) {
            return;
        }
        if self.warnings.len() < MAX_WARNINGS {
            self.warnings.push(warning);
        } else {
            self.untold += 1;
        }
    }

    /// Sets the time when the object becomes valid, in milliseconds since 1970.
    pub(crate) fn usable_from(&mut self, time: i64) {
        self.usable_at = Some(time);
    }

    /// The time that [`usable_from`](Self::usable_from) has set.
    pub(crate) fn usable_at(&self) -> Option<i64> {
        self.usable_at
    }

    /// The warnings in the order in which they were found.
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

/// Whether the field is a topology annotation.
fn is_our_annotation(field: &Field<'_>) -> bool {
    let is_ours = matches!(field.step(), Step::Label(key) if key.starts_with(PREFIX));
    is_ours
        && field
            .parent()
            .is_some_and(|parent| parent.is_at(["metadata", "annotations"]))
}

/// Whether the field is `spec.topologyKeys` or an element of it.
fn is_in_topology_keys(field: &Field<'_>) -> bool {
    let path = ["spec", "topologyKeys"];
    field.is_at(path) || field.parent().is_some_and(|parent| parent.is_at(path))
}
