//! Which labels annotations may use, as it is typed.

use std::collections::BTreeSet;
use std::sync::Arc;

use clap::Args;

use super::values;

/// What every command must know of annotations to decide as the agents do.
#[derive(Debug, Clone, Default, PartialEq, Args)]
pub struct AnnotationArgs {
    /// Labels of Nodes that annotations of Services may use besides zone, region and capacity; default: any.
    #[arg(long, value_name = "KEY", value_delimiter = ',', value_parser = values::label_key)]
    pub annotation_label_keys: Option<Vec<String>>,
}

impl AnnotationArgs {
    /// The labels; none if any may be used.
    pub fn label_keys(&self) -> Option<BTreeSet<Arc<str>>> {
        let keys = self.annotation_label_keys.as_ref()?;
        Some(keys.iter().map(|key| key.as_str().into()).collect())
    }
}
