//! Labels that annotations may use.

use std::collections::BTreeSet;
use std::sync::Arc;

use clap::Args;

use super::values;

/// Must be equal to the agents' settings for the same decisions.
#[derive(Debug, Clone, Default, PartialEq, Args)]
pub struct AnnotationArgs {
    /// Node labels that Service annotations may use besides zone, region and capacity; default:
    /// any.
    #[arg(long, value_name = "KEY", value_delimiter = ',', value_parser = values::label_key)]
    pub annotation_label_keys: Option<Vec<String>>,
}

impl AnnotationArgs {
    /// `None` permits any label.
    pub fn label_keys(&self) -> Option<BTreeSet<Arc<str>>> {
        let keys = self.annotation_label_keys.as_ref()?;
        Some(keys.iter().map(|key| key.as_str().into()).collect())
    }
}
