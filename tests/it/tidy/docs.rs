//! Documents name what exists: links resolve, and back-ticked names of code and files are names of
//! code and files.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use super::{SourceFile, TREE, assert_none};

/// Names that documents use and that aren't ours, with whose they are.
const FOREIGN: &[(&str, &str)] = &[
    ("ALREADY_EXISTS", "gRPC"),
    ("FAILED_PRECONDITION", "gRPC"),
    ("INVALID_ARGUMENT", "gRPC"),
    ("NOT_FOUND", "gRPC"),
    ("DATA_LOSS", "gRPC"),
    ("OUT_OF_RANGE", "gRPC"),
    ("PERMISSION_DENIED", "gRPC"),
    ("RESOURCE_EXHAUSTED", "gRPC"),
];

const THIS_FILE: &str = "tests/it/tidy/docs.rs";

/// What documents may name: the words of the code, and the paths of the tree.
struct Names {
    words: BTreeSet<String>,
    paths: BTreeSet<String>,
}

impl Names {
    /// Comments don't count: one that is out of date would keep a dead name alive. Of this file
    /// only the functions do, for its strings name what doesn't exist.
    fn of(files: &[SourceFile]) -> Self {
        let mut words = BTreeSet::new();
        let mut paths = BTreeSet::new();
        for file in files {
            let mut path = file.path.as_str();
            paths.insert(path.to_owned());
            while let Some((directory, _)) = path.rsplit_once('/') {
                paths.insert(directory.to_owned());
                path = directory;
            }
            let is_code = ["rs", "proto", "toml"].iter().any(|kind| file.is(kind));
            if is_code || file.path.starts_with(".ci/") {
                let planted = file.path == THIS_FILE;
                for line in file
                    .code_lines()
                    .filter(|line| !planted || line.starts_with("fn "))
                {
                    words.extend(line.split(|c| !is_word(c)).map(str::to_owned));
                }
            }
        }
        Self { words, paths }
    }

    /// Whether a path is one of the tree, as a whole or as the end of one.
    fn has_path(&self, path: &str) -> bool {
        let end = format!("/{path}");
        self.paths.contains(path) || self.paths.iter().any(|known| known.ends_with(&end))
    }
}

static NAMES: LazyLock<Names> = LazyLock::new(|| Names::of(&TREE));

const fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// The prose of a document: its lines without the fenced blocks.
fn prose(text: &str) -> String {
    let mut fenced = false;
    let mut prose = String::with_capacity(text.len());
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced {
            prose.push_str(line);
            prose.push('\n');
        }
    }
    prose
}

/// The spans of code in prose. One ends with its paragraph, so that a lone back-tick can't turn the
/// rest of a document inside out.
fn spans(prose: &str) -> Vec<&str> {
    let paragraphs = prose.split("\n\n");
    paragraphs
        .flat_map(|paragraph| paragraph.split('`').skip(1).step_by(2))
        .collect()
}

/// Whether a span of code is a name that must exist but doesn't.
fn is_dead(span: &str, names: &Names) -> bool {
    if FOREIGN.iter().any(|(name, _)| *name == span) {
        return false;
    }
    let called = span.strip_suffix("()");
    let name = called.unwrap_or(span);
    let is_path = name
        .chars()
        .all(|c| is_word(c) || matches!(c, '.' | '/' | '-'));
    let named_as_source = ["rs", "md", "toml", "proto"].iter().any(|extension| {
        name.rsplit_once('.')
            .is_some_and(|(stem, found)| found == *extension && !stem.is_empty())
    });
    let in_tree = name
        .split_once('/')
        .is_some_and(|(first, _)| names.paths.contains(first));
    if is_path && (named_as_source || in_tree) {
        return !names.has_path(name.trim_end_matches('/'));
    }
    let segments: Vec<&str> = name.split("::").collect();
    let is_identifier = |segment: &&str| {
        segment.chars().all(is_word) && segment.starts_with(|c: char| c.is_ascii_alphabetic())
    };
    if !segments.iter().all(is_identifier) {
        return false;
    }
    let meant = called.is_some() || segments.len() > 1 || looks_like_code(name);
    meant
        && segments
            .iter()
            .any(|segment| !names.words.contains(*segment))
}

/// Whether a single word can only be an identifier: `snake_case`, or `Capitalized`.
fn looks_like_code(word: &str) -> bool {
    let capitalized = word.starts_with(|c: char| c.is_ascii_uppercase())
        && word.contains(|c: char| c.is_ascii_lowercase());
    capitalized || word.contains('_')
}

fn dead_names(files: &[SourceFile], names: &Names) -> Vec<String> {
    let mut problems = Vec::new();
    for file in files.iter().filter(|file| file.is("md")) {
        let prose = prose(&file.text);
        for span in spans(&prose)
            .into_iter()
            .filter(|span| is_dead(span, names))
        {
            problems.push(format!("{}: `{span}` doesn't exist", file.path));
        }
    }
    problems
}

/// The targets of links in prose that are inside the repository.
fn links(prose: &str) -> impl Iterator<Item = &str> {
    let targets = prose
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next());
    targets.filter(|target| !target.contains("://") && !target.starts_with("mailto:"))
}

/// The path that a link leads to, seen from the root.
fn resolve(from: &str, target: &str) -> String {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            name => parts.push(name),
        }
    }
    parts.join("/")
}

/// The anchor that a heading gets.
fn anchor(heading: &str) -> String {
    let kept = heading
        .trim()
        .chars()
        .filter(|c| is_word(*c) || matches!(c, ' ' | '-'));
    kept.map(|c| {
        if c == ' ' {
            '-'
        } else {
            c.to_ascii_lowercase()
        }
    })
    .collect()
}

fn has_anchor(file: &SourceFile, wanted: &str) -> bool {
    let prose = prose(&file.text);
    let mut headings = prose.lines().filter(|line| line.starts_with('#'));
    headings.any(|line| anchor(line.trim_start_matches('#')) == wanted)
}

fn dead_links(files: &[SourceFile]) -> Vec<String> {
    let names = Names::of(files);
    let mut problems = Vec::new();
    for file in files.iter().filter(|file| file.is("md")) {
        for link in links(&prose(&file.text)) {
            let (target, heading) = link.split_once('#').unwrap_or((link, ""));
            let path = match target {
                "" => file.path.clone(),
                _ => resolve(&file.path, target),
            };
            let document = files
                .iter()
                .find(|other| other.path == path && other.is("md"));
            let heading_is_there =
                heading.is_empty() || document.is_none_or(|other| has_anchor(other, heading));
            if !names.paths.contains(&path) || !heading_is_there {
                problems.push(format!("{}: the link to {link} is dead", file.path));
            }
        }
    }
    problems
}

#[test]
fn documents_name_what_exists() {
    assert_none(&dead_names(&TREE, &NAMES));
}

#[test]
fn links_lead_somewhere() {
    assert_none(&dead_links(&TREE));
}

#[test]
fn foreign_names_are_in_use() {
    let documents = TREE.iter().filter(|file| file.is("md"));
    let text: String = documents.map(|file| prose(&file.text)).collect();
    let used = spans(&text);
    for (name, whose) in FOREIGN {
        assert!(
            used.contains(name),
            "no document names `{name}` of {whose} any more"
        );
        assert!(
            !NAMES.words.contains(*name),
            "`{name}` is in the code by now"
        );
    }
}

#[test]
fn a_dead_name_is_found() {
    let code = "fn judge(step: u64) -> Verdict { rules::admitted } // ghost_word";
    let names = Names::of(&[SourceFile::planted("engine/src/rules.rs", code)]);
    let alive = [
        "Verdict",
        "judge()",
        "rules::admitted",
        "rules.rs",
        "src/rules.rs",
        "engine/src/",
        "prose",
        "a word",
        "key = 1",
        "--flag",
        "job-7/result",
        "R7",
        "42",
    ];
    let dead = [
        "Verdicts",
        "judged()",
        "rules::gone",
        "gone::admitted",
        "gone.rs",
        "engine/gone",
        "a_word",
        "ghost_word",
        "src/gone.rs",
        "docs/GONE.md",
    ];
    for span in alive {
        assert!(!is_dead(span, &names), "{span}");
    }
    for span in dead {
        assert!(is_dead(span, &names), "{span}");
        let text = format!("One\n`fine` and\n`{span}` here\n\n```\n`{span}`\n```\n");
        let planted = SourceFile::planted("docs/a.md", &text);
        assert_eq!(dead_names(&[planted], &names).len(), 1, "{span}");
    }
}

#[test]
fn a_dead_link_is_found() {
    let found = |link: &str| {
        let text = format!("# One heading, 2\nsee [it]({link}).\n");
        let files = [
            SourceFile::planted("docs/a.md", &text),
            SourceFile::planted("docs/b.md", "## `B` is b\n"),
            SourceFile::planted("Cargo.toml", ""),
        ];
        dead_links(&files).len()
    };
    let alive = [
        "b.md",
        "./b.md",
        "../docs/b.md",
        "../Cargo.toml",
        "#one-heading-2",
        "b.md#b-is-b",
        "../docs",
        "https://example.org/gone.md",
    ];
    for link in alive {
        assert_eq!(found(link), 0, "{link}");
    }
    for link in ["c.md", "../b.md", "#two", "b.md#one-heading-2", "../gone"] {
        assert_eq!(found(link), 1, "{link}");
    }
}
