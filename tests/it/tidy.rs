//! Checks of the repository itself: sizes, package edges, banned words, documents that name what
//! exists. Each check is a function from files to problems, so that a planted file can prove that
//! it finds something.

mod docs;
mod edges;
mod modules;
mod rules;
mod sizes;
mod words;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// One text file of the repository.
struct SourceFile {
    /// Its path from the root, with `/` between components.
    path: String,
    /// Its content.
    text: String,
}

impl SourceFile {
    /// A file that doesn't exist, to see what a check says about it.
    fn planted(path: &str, text: &str) -> Self {
        Self {
            path: path.into(),
            text: text.into(),
        }
    }

    /// Whether its name ends in `.` and the extension.
    fn is(&self, extension: &str) -> bool {
        Path::new(&self.path)
            .extension()
            .is_some_and(|found| found == extension)
    }

    /// Its lines without what stands behind `//`, comments of documentation included.
    fn code_lines(&self) -> impl Iterator<Item = &str> {
        self.text
            .lines()
            .map(|line| line.split_once("//").map_or(line, |(code, _)| code))
    }
}

/// Every text file of the repository, in order of the paths.
static TREE: LazyLock<Vec<SourceFile>> = LazyLock::new(|| {
    let root = root();
    let mut files = Vec::new();
    collect(&root, &root, &mut files);
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files
});

fn root() -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests
        .parent()
        .expect("the package lies in the workspace")
        .to_path_buf()
}

fn collect(root: &Path, directory: &Path, files: &mut Vec<SourceFile>) {
    for entry in fs::read_dir(directory).expect("a directory of the repository is readable") {
        let entry = entry.expect("a directory of the repository is readable");
        let (path, name) = (entry.path(), entry.file_name());
        // A directory in a clone, and a file in a worktree.
        if name == ".git" {
            continue;
        }
        let kind = entry.file_type().expect("an entry has a type");
        if kind.is_dir() {
            if name != "target" {
                collect(root, &path, files);
            }
        } else if kind.is_file() {
            // What isn't text, such as a fixture, has no words and no lines. A file that vanishes
            // while the tree is walked belongs to a test that runs beside this one.
            if let Ok(text) = fs::read_to_string(&path) {
                let inside = path.strip_prefix(root).expect("the walk began at the root");
                let path = inside.to_str().expect("paths are UTF-8").to_owned();
                files.push(SourceFile { path, text });
            }
        }
    }
}

/// Fails with one line for each problem.
#[track_caller]
fn assert_none(problems: &[String]) {
    assert!(
        problems.is_empty(),
        "{} problems:\n{}",
        problems.len(),
        problems.join("\n")
    );
}

/// Compares what was counted with the exceptions that are allowed for now. More is a new sin; less
/// means that the list is to shrink.
fn ratchet(what: &str, found: &BTreeMap<String, usize>, allowed: &[(&str, usize)]) -> Vec<String> {
    let mut problems = Vec::new();
    for (path, count) in found {
        let limit = allowed
            .iter()
            .find(|(name, _)| name == path)
            .map_or(0, |(_, limit)| *limit);
        if *count > limit {
            problems.push(format!("{path}: {count} {what}, {limit} allowed"));
        }
    }
    for (path, limit) in allowed {
        let count = found.get(*path).copied().unwrap_or(0);
        if count < *limit {
            problems.push(format!(
                "{path}: {count} {what}; lower the exception from {limit}"
            ));
        }
    }
    problems
}

#[test]
fn the_walk_sees_the_repository() {
    for path in [
        "Cargo.toml",
        ".ci/run",
        "engine/core/src/decide.rs",
        "tests/it/tidy.rs",
    ] {
        assert!(
            TREE.iter().any(|file| file.path == path),
            "{path} isn't seen"
        );
    }
    assert!(TREE.iter().all(|file| !file.path.starts_with("target/")));
}

#[test]
fn a_ratchet_turns_one_way() {
    let found = BTreeMap::from([("a.rs".to_owned(), 2)]);
    assert_none(&ratchet("sins", &found, &[("a.rs", 2)]));
    assert_eq!(ratchet("sins", &found, &[]).len(), 1);
    assert_eq!(ratchet("sins", &found, &[("a.rs", 1)]).len(), 1);
    assert_eq!(ratchet("sins", &found, &[("a.rs", 3)]).len(), 1);
    assert_eq!(
        ratchet("sins", &found, &[("a.rs", 2), ("b.rs", 1)]).len(),
        1
    );
}
