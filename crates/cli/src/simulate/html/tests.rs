//! The page is safe to open: text from the input is escaped, and the page loads nothing.

use super::*;

#[test]
fn text_from_the_input_is_escaped() {
    assert_eq!(escape("<b>&\"'"), "&lt;b&gt;&amp;&quot;&#39;");
}

#[test]
fn the_page_loads_nothing() {
    for word in ["http://", "https://", "url(", "@import", "src="] {
        assert!(!STYLE.contains(word) && !SCRIPT.contains(word), "{word}");
    }
    assert!(POLICY.starts_with("default-src 'none'"));
}
