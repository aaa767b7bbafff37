//! Every Rust file is compiled: the compiler says nothing about one that no module names.

use std::collections::BTreeSet;

use super::{SourceFile, TREE, assert_none};

/// What cargo finds by itself: roots of crates, by name or by directory.
fn is_root(path: &str) -> bool {
    let mut parts = path.rsplit('/');
    let name = parts.next().unwrap_or(path);
    let directory = parts.next().unwrap_or("");
    let by_name = matches!(name, "lib.rs" | "main.rs" | "build.rs");
    by_name
        || matches!(
            directory,
            "bin" | "examples" | "benches" | "tests" | "fuzz_targets"
        )
}

/// The name of the module that a file is.
fn module(path: &str) -> Option<&str> {
    let path = path
        .strip_suffix("/mod.rs")
        .or_else(|| path.strip_suffix(".rs"))?;
    Some(path.rsplit_once('/').map_or(path, |(_, name)| name))
}

fn orphans(files: &[SourceFile]) -> Vec<String> {
    let rust = || files.iter().filter(|file| file.is("rs"));
    let lines = rust().flat_map(SourceFile::code_lines);
    let declared: BTreeSet<&str> = lines
        .filter_map(|line| line.trim().strip_suffix(';')?.rsplit_once("mod "))
        .map(|(_, name)| name)
        .collect();
    let known = |path: &str| module(path).is_some_and(|name| declared.contains(name));
    let orphans = rust().filter(|file| !is_root(&file.path) && !known(&file.path));
    orphans
        .map(|file| format!("{}: no module names it", file.path))
        .collect()
}

#[test]
fn every_file_is_compiled() {
    assert_none(&orphans(&TREE));
}

#[test]
fn an_orphan_is_found() {
    let count = |declaration: &str, path: &str| {
        let root = SourceFile::planted("wal/src/lib.rs", declaration);
        orphans(&[root, SourceFile::planted(path, "")]).len()
    };
    assert_eq!(count("mod frame;", "wal/src/frame.rs"), 0);
    assert_eq!(count("pub(crate) mod frame;", "wal/src/frame/mod.rs"), 0);
    assert_eq!(count("// mod frame;", "wal/src/frame.rs"), 1);
    assert_eq!(count("mod frames;", "wal/src/frame.rs"), 1);
    assert_eq!(count("", "tests/src/bin/mutants.rs"), 0);
    assert_eq!(count("", "wal/src/frame.txt"), 0);
}
