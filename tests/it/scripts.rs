//! Golden scripts: commands and the verdicts that they get, with the state before and after. One
//! file for each scenario, in a directory named for the rule. `UPDATE=1` writes what is answered
//! now; the difference is then for the reviewer.

mod parse;
mod print;
mod run;

use std::fs;
use std::path::{Path, PathBuf};

use self::run::Stage;

/// How many scenarios there are at least, so that a directory that isn't found doesn't pass.
const SCRIPTS_MIN: usize = 40;

/// Every script, in order.
fn scripts() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts");
    let mut found = Vec::new();
    for group in fs::read_dir(root).unwrap() {
        for script in fs::read_dir(group.unwrap().path()).unwrap() {
            found.push(script.unwrap().path());
        }
    }
    found.sort();
    found
}

/// Plays a script: comments and commands stay, what stood between them is replaced by the answers.
fn play(text: &str) -> String {
    let mut stage = Stage::new();
    let mut played = String::new();
    for line in text.lines() {
        if line.starts_with('#') {
            played.push_str(line);
            played.push('\n');
        } else if let Some(command) = line.strip_prefix("> ") {
            played.push_str(&format!("\n{line}\n{}", stage.command(command)));
        }
    }
    played
}

#[test]
fn scripts_are_answered_as_written() {
    let update = std::env::var_os("UPDATE").is_some();
    let scripts = scripts();
    assert!(scripts.len() >= SCRIPTS_MIN, "{} scripts", scripts.len());
    let mut changed = Vec::new();
    for path in scripts {
        let text = fs::read_to_string(&path).unwrap();
        let played = play(&text);
        if played != text && update {
            fs::write(&path, &played).unwrap();
        } else if played != text {
            changed.push(format!(
                "== {}\n{}",
                path.display(),
                difference(&text, &played)
            ));
        }
    }
    assert!(
        changed.is_empty(),
        "answers changed:\n{}",
        changed.join("\n")
    );
}

/// The lines that are only in one of both.
fn difference(written: &str, played: &str) -> String {
    let only = |sign: &str, here: &str, there: &str| -> String {
        let there: Vec<_> = there.lines().collect();
        let lines = here.lines().filter(|line| !there.contains(line));
        lines.map(|line| format!("{sign} {line}\n")).collect()
    };
    only("-", written, played) + &only("+", played, written)
}

#[test]
fn a_script_plays_the_same_twice() {
    for path in scripts() {
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(play(&text), play(&text), "{}", path.display());
    }
}
