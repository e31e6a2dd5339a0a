//! The page is safe to open: nothing from the input becomes markup, nothing is loaded.

use super::*;

#[test]
fn what_comes_from_the_input_cannot_become_markup() {
    assert_eq!(escape("<b>&\"'"), "&lt;b&gt;&amp;&quot;&#39;");
}

#[test]
fn the_page_loads_nothing() {
    for word in ["http://", "https://", "url(", "@import", "src="] {
        assert!(!STYLE.contains(word) && !SCRIPT.contains(word), "{word}");
    }
    assert!(POLICY.starts_with("default-src 'none'"));
}
