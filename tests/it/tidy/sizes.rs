//! How long files are and how wide lines are.

use std::collections::BTreeMap;

use super::{SourceFile, TREE, assert_none, ratchet};

/// Longest file that is read as a whole, in lines.
const FILE_LINES_MAX: usize = 500;
/// Half of the Rust files have at most this many lines.
const FILE_LINES_MEDIAN_MAX: usize = 200;
/// Widest line of Rust, in characters.
const LINE_CHARACTERS_MAX: usize = 100;

/// Files that are longer, with their number of lines. The list may only shrink.
const LONG_FILES: &[(&str, usize)] = &[];

/// Whether a file is read as a whole. The list of mutants isn't: its entries are read one by one.
fn is_read_as_a_whole(file: &SourceFile) -> bool {
    if file.path == "tests/mutants/mutants.toml" {
        return false;
    }
    let extensions = ["rs", "proto", "md", "toml", "sh"];
    extensions.iter().any(|extension| file.is(extension)) || file.path.starts_with(".ci/")
}

fn long_files(files: &[SourceFile]) -> BTreeMap<String, usize> {
    let lengths = files
        .iter()
        .filter(|file| is_read_as_a_whole(file))
        .map(|file| (file.path.clone(), file.text.lines().count()));
    lengths
        .filter(|(_, lines)| *lines > FILE_LINES_MAX)
        .collect()
}

fn wide_lines(files: &[SourceFile]) -> Vec<String> {
    let mut found = Vec::new();
    for file in files.iter().filter(|file| file.is("rs")) {
        for (index, line) in file
            .text
            .lines()
            .enumerate()
            .filter(|(_, line)| is_too_wide(line))
        {
            let width = line.chars().count();
            found.push(format!("{}:{}: {width} characters", file.path, index + 1));
        }
    }
    found
}

/// The formatter breaks neither a string nor an address, and breaking either by hand would hide it
/// from a search: a line that is one string literal, or has an address in it, may be wider.
fn is_too_wide(line: &str) -> bool {
    let breakable = !line.trim_start().starts_with('"') && !line.contains("://");
    breakable && line.chars().count() > LINE_CHARACTERS_MAX
}

fn median_lines(files: &[SourceFile]) -> usize {
    let rust = files.iter().filter(|file| file.is("rs"));
    let mut lines: Vec<usize> = rust.map(|file| file.text.lines().count()).collect();
    lines.sort_unstable();
    lines.get(lines.len() / 2).copied().unwrap_or(0)
}

#[test]
fn files_are_short() {
    assert_none(&ratchet("lines", &long_files(&TREE), LONG_FILES));
    let median = median_lines(&TREE);
    assert!(
        median <= FILE_LINES_MEDIAN_MAX,
        "the median Rust file has {median} lines"
    );
}

#[test]
fn lines_are_narrow() {
    assert_none(&wide_lines(&TREE));
}

#[test]
fn a_long_file_is_found() {
    let lines = |count| "x\n".repeat(count);
    let planted = |path, count| long_files(&[SourceFile::planted(path, &lines(count))]);
    assert!(planted("a.rs", 500).is_empty());
    assert_eq!(planted("a.rs", 501).get("a.rs"), Some(&501));
    assert_eq!(planted("docs/a.md", 501).len(), 1);
    assert_eq!(planted(".ci/run", 501).len(), 1);
    assert!(planted("Cargo.lock", 501).is_empty());
}

#[test]
fn a_wide_line_is_found() {
    let found = |line: &str| wide_lines(&[SourceFile::planted("a.rs", line)]).len();
    assert_eq!(found(&"x".repeat(100)), 0);
    assert_eq!(found(&"x".repeat(101)), 1);
    assert_eq!(found(&"─".repeat(100)), 0, "characters count, not bytes");
    assert_eq!(found(&format!("    \"{}\"", "x".repeat(100))), 0);
    assert_eq!(
        found(&format!("// https://example.org/{}", "x".repeat(100))),
        0
    );
}

#[test]
fn the_median_is_the_middle() {
    let file = |lines: usize| SourceFile::planted("a.rs", &"x\n".repeat(lines));
    assert_eq!(median_lines(&[file(9), file(1), file(3)]), 3);
}
