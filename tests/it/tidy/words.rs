//! Words that must not stand in the repository, and some that must.

use super::{SourceFile, TREE, assert_none};

/// Left-overs of unfinished work. Spelled in parts, so that this file is clean itself.
const UNFINISHED: [&str; 6] = [
    concat!("to", "do!("),
    concat!("unimple", "mented!("),
    concat!("#[ign", "ore"),
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
];

/// Words that speak of the place where the product is made. It speaks of itself alone.
const WORKPLACE: [&str; 9] = [
    concat!("/wo", "rk/"),
    concat!("/fa", "rm/"),
    concat!("/tmp", "/hw"),
    concat!(".lib", "rary"),
    concat!("sub", "agent"),
    concat!("helper ", "session"),
    concat!("before", "-stop"),
    concat!("farm", "-bench"),
    concat!("farm", "-studio"),
];

fn unfinished(files: &[SourceFile]) -> Vec<String> {
    let code = files
        .iter()
        .filter(|file| file.is("rs") || file.is("proto"));
    code.flat_map(|file| occurrences(file, &UNFINISHED))
        .collect()
}

fn workplace(files: &[SourceFile]) -> Vec<String> {
    files
        .iter()
        .flat_map(|file| occurrences(file, &WORKPLACE))
        .collect()
}

fn occurrences(file: &SourceFile, words: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        for word in words.iter().filter(|word| line.contains(**word)) {
            found.push(format!("{}:{}: '{word}'", file.path, index + 1));
        }
    }
    found
}

/// The core has no standard library, and no other way to it than the one that this finds.
fn impure(files: &[SourceFile]) -> Vec<String> {
    let mut problems = Vec::new();
    let core = files
        .iter()
        .filter(|file| file.path.starts_with("engine/core/src/"));
    for file in core {
        for line in file.code_lines() {
            let mut words = line.split_whitespace().skip_while(|word| *word != "extern");
            let loads = words.next().is_some() && words.next() == Some("crate");
            if loads && words.next() != Some("alloc;") {
                problems.push(format!(
                    "{}: loads more than alloc: {}",
                    file.path,
                    line.trim()
                ));
            }
        }
        let no_std = file.code_lines().any(|line| line.trim() == "#![no_std]");
        if file.path.ends_with("/lib.rs") && !no_std {
            problems.push(format!("{}: is not no_std", file.path));
        }
    }
    problems
}

fn changelog_lacks(files: &[SourceFile], version: &str) -> bool {
    let heading = format!("## {version}");
    let log = files.iter().find(|file| file.path == "CHANGELOG.md");
    !log.is_some_and(|log| {
        log.text.lines().any(|line| {
            line.strip_prefix(heading.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
        })
    })
}

#[test]
fn nothing_is_left_unfinished() {
    assert_none(&unfinished(&TREE));
}

#[test]
fn the_product_speaks_of_itself_alone() {
    assert_none(&workplace(&TREE));
}

#[test]
fn the_core_has_no_standard_library() {
    assert_none(&impure(&TREE));
}

#[test]
fn the_changelog_knows_this_version() {
    let version = env!("CARGO_PKG_VERSION");
    assert!(
        !changelog_lacks(&TREE, version),
        "CHANGELOG.md has no section '## {version}'"
    );
}

#[test]
fn each_banned_word_is_found() {
    for word in UNFINISHED {
        let line = format!("let x = 1; // {word}");
        assert_eq!(
            unfinished(&[SourceFile::planted("a.rs", &line)]).len(),
            1,
            "{word}"
        );
        assert_eq!(
            unfinished(&[SourceFile::planted("a.md", &line)]).len(),
            0,
            "{word}"
        );
    }
    for word in WORKPLACE {
        let line = format!("see {word}x");
        assert_eq!(
            workplace(&[SourceFile::planted("docs/a.md", &line)]).len(),
            1,
            "{word}"
        );
    }
}

#[test]
fn a_way_out_of_the_core_is_found() {
    let found = |path: &str, text: &str| impure(&[SourceFile::planted(path, text)]).len();
    assert_eq!(found("engine/core/src/a.rs", "extern crate alloc;"), 0);
    assert_eq!(found("engine/core/src/a.rs", "extern crate std;"), 1);
    assert_eq!(
        found(
            "engine/core/src/a.rs",
            "pub(crate) extern crate std as alloc;"
        ),
        1
    );
    assert_eq!(found("engine/core/src/a.rs", "// extern crate std;"), 0);
    assert_eq!(found("engine/core/src/lib.rs", "extern crate alloc;"), 1);
    assert_eq!(
        found("engine/core/src/lib.rs", "#![no_std]\nextern crate alloc;"),
        0
    );
    assert_eq!(found("engine/src/a.rs", "extern crate std;"), 0);
}

#[test]
fn a_missing_section_is_found() {
    let log = |text: &str| [SourceFile::planted("CHANGELOG.md", text)];
    assert!(!changelog_lacks(&log("## 0.1.0 (unreleased)"), "0.1.0"));
    assert!(!changelog_lacks(&log("## 0.1.0"), "0.1.0"));
    assert!(changelog_lacks(&log("## 0.1.01"), "0.1.0"));
    assert!(changelog_lacks(&log("about 0.1.0"), "0.1.0"));
    assert!(changelog_lacks(&[], "0.1.0"));
}
