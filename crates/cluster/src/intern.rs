//! One copy of each text that many objects repeat: node, zone, namespace and port names, labels.

use std::sync::Arc;

use rustc_hash::FxHashSet;

/// A table of shared texts.
///
/// With 100,000 endpoints on 100 nodes in 3 zones, this is the difference between 200,000 small
/// allocations and 103.
#[derive(Debug, Default)]
pub(crate) struct Interner {
    texts: FxHashSet<Arc<str>>,
    /// The number of texts at which to look for ones that nobody uses any more.
    sweep_at: usize,
}

impl Interner {
    /// The shared copy of `text`.
    pub(crate) fn text(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.texts.get(text) {
            return Arc::clone(known);
        }
        let new: Arc<str> = text.into();
        self.texts.insert(Arc::clone(&new));
        new
    }

    /// Forgets the texts that only this table still holds, when enough were added to be worth it.
    pub(crate) fn sweep(&mut self) {
        if self.texts.len() >= self.sweep_at {
            self.texts.retain(|text| Arc::strong_count(text) > 1);
            self.sweep_at = (self.texts.len() * 2).max(1024);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_are_one_and_unused_ones_are_forgotten() {
        let mut interner = Interner::default();
        let kept = interner.text("zone-a");
        assert!(Arc::ptr_eq(&kept, &interner.text("zone-a")));
        for index in 0..5000 {
            interner.text(&format!("pod-{index}"));
        }
        interner.sweep();
        assert_eq!(interner.texts.len(), 1);
        assert!(Arc::ptr_eq(&kept, &interner.text("zone-a")));
    }
}
