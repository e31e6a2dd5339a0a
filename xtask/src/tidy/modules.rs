//! Resolves the modules of one crate: the file of each, its items, and the file that a path refers to.

use std::collections::{BTreeMap, BTreeSet};

use syn::{Expr, Item, ItemMod, Lit, Meta};

use super::names::{self, PathNames, Use};
use super::source::{Source, is_test_only};

/// The limit for re-exports on a path; only a cycle of re-exports has more.
const MOST_STEPS: usize = 16;

/// The modules of one crate target; the first is its root.
pub(super) struct Modules<'a> {
    list: Vec<Module<'a>>,
    /// Every file of the target, those of test modules included.
    files: BTreeSet<&'a str>,
}

/// One module outside of tests.
pub(super) struct Module<'a> {
    pub(super) file: &'a str,
    /// The paths that its own items name.
    pub(super) names: PathNames,
    parent: usize,
    children: BTreeMap<String, usize>,
    defined: BTreeSet<String>,
}

impl Module<'_> {
    /// Returns the `use` lines that bring this name into scope, or glob imports without a name.
    fn uses_named<'s>(&'s self, name: Option<&'s str>) -> impl Iterator<Item = &'s Use> {
        let uses = self.names.uses.iter();
        uses.filter(move |used| used.name.as_deref() == name)
    }
}

impl<'a> Modules<'a> {
    /// Follows the `mod` lines from the root file of a target.
    pub(super) fn of_target(root: &str, by_path: &'a BTreeMap<&'a str, &'a Source>) -> Self {
        let mut modules = Self {
            list: Vec::new(),
            files: BTreeSet::new(),
        };
        if let Some(source) = by_path.get(root) {
            let place = ModuleFile::of_file(source, folder_of(root));
            modules.add(0, &source.ast.items, &place, by_path);
        }
        modules
    }

    /// Returns every module outside of tests with its number.
    pub(super) fn each(&self) -> impl Iterator<Item = (usize, &Module<'a>)> {
        self.list.iter().enumerate()
    }

    /// Every file of the target, those of test modules included.
    pub(super) fn files(&self) -> &BTreeSet<&'a str> {
        &self.files
    }

    /// Returns the file that defines the item of a path; `None` for a path of another crate, and for a module.
    pub(super) fn file_of(&self, from: usize, path: &[String]) -> Option<&'a str> {
        let module = self.definer(from, path, MOST_STEPS)?;
        Some(self.list.get(module)?.file)
    }

    fn add(
        &mut self,
        parent: usize,
        items: &'a [Item],
        place: &ModuleFile<'a>,
        by_path: &'a BTreeMap<&'a str, &'a Source>,
    ) -> usize {
        let number = self.list.len();
        self.files.insert(place.file);
        self.list.push(Module {
            file: place.file,
            names: names::of_module(items),
            parent,
            children: BTreeMap::new(),
            defined: items.iter().filter_map(name_of).collect(),
        });
        for item in items {
            if let Item::Mod(module) = item {
                self.add_child(number, module, place, by_path);
            }
        }
        number
    }

    fn add_child(
        &mut self,
        parent: usize,
        module: &'a ItemMod,
        place: &ModuleFile<'a>,
        by_path: &'a BTreeMap<&'a str, &'a Source>,
    ) {
        let Some((items, inner)) = place.child(module, by_path) else {
            return;
        };
        if is_test_only(&module.attrs) {
            self.add_test_files(items, &inner, by_path);
            return;
        }
        let child = self.add(parent, items, &inner, by_path);
        if let Some(parent) = self.list.get_mut(parent) {
            parent.children.insert(module.ident.to_string(), child);
        }
    }

    fn add_test_files(
        &mut self,
        items: &'a [Item],
        place: &ModuleFile<'a>,
        by_path: &'a BTreeMap<&'a str, &'a Source>,
    ) {
        self.files.insert(place.file);
        for item in items {
            if let Item::Mod(module) = item
                && let Some((items, inner)) = place.child(module, by_path)
            {
                self.add_test_files(items, &inner, by_path);
            }
        }
    }

    fn definer(&self, from: usize, path: &[String], steps: usize) -> Option<usize> {
        let steps = steps.checked_sub(1)?;
        let mut module = from;
        let mut rest = path;
        while let Some((name, after)) = rest.split_first() {
            module = match name.as_str() {
                "crate" => 0,
                "self" => module,
                "super" => self.list.get(module)?.parent,
                name => match self.list.get(module)?.children.get(name) {
                    Some(child) => *child,
                    None => return self.definer_of(module, name, after, steps),
                },
            };
            rest = after;
        }
        None
    }

    /// Returns the module that defines `name` in the scope of `module`: itself, or the target of a `use`.
    fn definer_of(
        &self,
        module: usize,
        name: &str,
        after: &[String],
        steps: usize,
    ) -> Option<usize> {
        let here = self.list.get(module)?;
        if here.defined.contains(name) {
            return Some(module);
        }
        let direct = here.uses_named(Some(name)).find_map(|used| {
            // A `use` of another crate's item resolves to the same name here.
            let is_itself = used.segments.first().is_some_and(|first| first == name);
            let path: Vec<String> = used.segments.iter().chain(after).cloned().collect();
            (!is_itself).then(|| self.definer(module, &path, steps))?
        });
        direct.or_else(|| {
            here.uses_named(None).find_map(|used| {
                let name = [name.to_owned()];
                let path: Vec<String> = used.segments.iter().chain(&name).cloned().collect();
                self.definer(module, &path, steps)
            })
        })
    }
}

/// The file of a module's items, and the folder of its submodules' files.
struct ModuleFile<'a> {
    file: &'a str,
    folder: String,
}

impl<'a> ModuleFile<'a> {
    fn of_file(source: &'a Source, folder: String) -> Self {
        let file = &source.path;
        Self { file, folder }
    }

    /// Returns the items of a submodule and their file; `None` if the file is missing.
    fn child(
        &self,
        module: &'a ItemMod,
        by_path: &'a BTreeMap<&'a str, &'a Source>,
    ) -> Option<(&'a [Item], Self)> {
        let inner = format!("{}/{}", self.folder, module.ident);
        if let Some((_, items)) = &module.content {
            let file = self.file;
            let folder = inner;
            return Some((items, Self { file, folder }));
        }
        let named = path_attribute(module).map(|name| format!("{}/{name}", folder_of(self.file)));
        let (file, folder) = if let Some(file) = named {
            (by_path.get(file.as_str()), folder_of(&file))
        } else {
            let flat = by_path.get(format!("{inner}.rs").as_str());
            let nested = format!("{inner}/mod.rs");
            (flat.or_else(|| by_path.get(nested.as_str())), inner)
        };
        file.map(|source| (&*source.ast.items, Self::of_file(source, folder)))
    }
}

/// Returns the folder of a file.
fn folder_of(path: &str) -> String {
    path.rsplit_once('/')
        .map(|(folder, _)| folder.to_owned())
        .unwrap_or_default()
}

/// Returns the value of `#[path = "..."]`.
fn path_attribute(module: &ItemMod) -> Option<String> {
    module.attrs.iter().find_map(|attribute| {
        let Meta::NameValue(pair) = &attribute.meta else {
            return None;
        };
        match &pair.value {
            Expr::Lit(literal) if pair.path.is_ident("path") => match &literal.lit {
                Lit::Str(text) => Some(text.value()),
                _ => None,
            },
            _ => None,
        }
    })
}

/// Returns the name that an item defines.
fn name_of(item: &Item) -> Option<String> {
    let name = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        _ => return None,
    };
    Some(name.to_string())
}
