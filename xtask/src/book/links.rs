//! Checks the links of the built pages: each leads to a file of the website, and each anchor to an element.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::Context as _;

/// The built website: the HTML of each page, and the name of every file.
#[derive(Default)]
pub(super) struct Site {
    pages: BTreeMap<String, String>,
    files: BTreeSet<String>,
}

impl Site {
    /// Reads a folder.
    pub(super) fn read(folder: &Path) -> anyhow::Result<Self> {
        let mut site = Self::default();
        site.add(folder, "")?;
        Ok(site)
    }

    fn add(&mut self, folder: &Path, prefix: &str) -> anyhow::Result<()> {
        let entries = fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()));
        for entry in entries? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let name = format!("{prefix}{name}");
            if path.is_dir() {
                self.add(&path, &format!("{name}/"))?;
                continue;
            }
            if path
                .extension()
                .is_some_and(|extension| extension == "html")
            {
                let text = fs::read_to_string(&path);
                let text = text.with_context(|| format!("reading {}", path.display()))?;
                self.pages.insert(name.clone(), text);
            }
            self.files.insert(name);
        }
        Ok(())
    }

    /// One line for each link that leads nowhere.
    pub(super) fn broken(&self) -> Vec<String> {
        let pages = self.pages.iter().filter(|(name, _)| !is_generated(name));
        let broken = pages.flat_map(|(name, text)| {
            let targets: BTreeSet<&str> = targets(text).collect();
            let broken = targets
                .into_iter()
                .filter(|target| !self.leads(name, target));
            broken.map(move |target| format!("{name}: the link `{target}` leads nowhere"))
        });
        broken.collect()
    }

    fn leads(&self, page: &str, target: &str) -> bool {
        if target.contains("://") || target.starts_with("mailto:") {
            return true;
        }
        let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
        let Some(file) = resolve(page, file) else {
            return false;
        };
        let has_anchor = |text: &String| text.contains(&format!("id=\"{anchor}\""));
        self.files.contains(&file)
            && (anchor.is_empty() || self.pages.get(&file).is_some_and(has_anchor))
    }
}

/// Pages that mdBook generates: all pages on one, the list of chapters, the page for a wrong address.
fn is_generated(page: &str) -> bool {
    matches!(page, "print.html" | "toc.html" | "404.html")
}

/// The addresses of links, pictures, scripts and styles.
fn targets(html: &str) -> impl Iterator<Item = &str> {
    let attributes = ["href=\"", "src=\""].into_iter();
    attributes.flat_map(|attribute| {
        let rests = html.split(attribute).skip(1);
        rests.filter_map(|rest| rest.split('"').next())
    })
}

/// The file that a link of `page` names; none if it leaves the website.
fn resolve(page: &str, target: &str) -> Option<String> {
    if target.is_empty() {
        return Some(page.to_owned());
    }
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(pages: &[(&str, &str)]) -> Site {
        let pages = pages.iter();
        let pages: BTreeMap<String, String> = pages
            .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()))
            .collect();
        let files = pages.keys().cloned().collect();
        Site { pages, files }
    }

    #[test]
    fn links_to_pages_anchors_and_other_sites_hold() {
        let site = site(&[
            (
                "a.html",
                r##"<a href="d/b.html#x"> <a href="#y" id="y"> <a href="https://k8s.io/">"##,
            ),
            ("d/b.html", r#"<h1 id="x"> <a href="../a.html">"#),
        ]);
        assert_eq!(site.broken(), Vec::<String>::new());
    }

    #[test]
    fn a_link_to_a_missing_file_or_anchor_or_out_of_the_site_is_broken() {
        let site = site(&[
            (
                "a.html",
                r#"<a href="gone.html"> <img src="b.html"> <a href="b.html#gone">"#,
            ),
            ("b.html", r#"<a href="../CHANGELOG.html">"#),
        ]);
        let broken = site.broken();
        assert_eq!(broken.len(), 3, "{broken:?}");
        assert!(broken[0].contains("a.html: the link `b.html#gone` leads nowhere"));
        assert!(broken[1].contains("`gone.html`"));
        assert!(broken[2].contains("`../CHANGELOG.html`"));
    }
}
