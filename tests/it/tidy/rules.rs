//! From the code to the documents: every reason stands in the contract, every rule in the index,
//! and every step has mutants.

use std::collections::BTreeSet;

use super::{SourceFile, TREE, assert_none};
use toml::{Table, Value};

/// What the documents must name, and the documents themselves.
struct Index<'a> {
    rules: &'a str,
    reasons: &'a str,
    mutants: &'a Table,
    contract: &'a str,
    index: &'a str,
}

/// The steps of the decision.
const STEPS: [&str; 9] = ["R1", "R2", "R3", "R4", "R5", "R6", "R7", "R8", "R9"];

/// The functions of `rules.rs` that are rules: those that return a judgement without a value of
/// another kind.
fn functions(source: &str) -> impl Iterator<Item = &str> {
    let heads = source.split("\npub(crate) fn ").skip(1);
    let rules = heads.filter(|head| {
        head.split_once('{')
            .is_some_and(|(signature, _)| signature.contains("-> Judged"))
    });
    rules
        .filter_map(|head| head.split_once(['(', '<']))
        .map(|(name, _)| name)
}

/// The names of the reasons: the texts that `Reason::code` gives.
fn codes(source: &str) -> impl Iterator<Item = &str> {
    let arms = source.split("=> \"").skip(1);
    arms.filter_map(|rest| rest.split_once("\","))
        .map(|(code, _)| code)
}

/// One field of every mutant.
fn mutants<'a>(table: &'a Table, field: &'a str) -> BTreeSet<&'a str> {
    let lists = table.values().filter_map(Value::as_array).flatten();
    lists
        .filter_map(|mutant| mutant.get(field))
        .filter_map(Value::as_str)
        .collect()
}

/// The mutants that the index names: its spans of code with hyphens.
fn named(index: &str) -> impl Iterator<Item = &str> {
    let spans = index.split('`').skip(1).step_by(2);
    let is_id = |span: &str| span.chars().all(|c| c.is_ascii_lowercase() || c == '-');
    spans.filter(move |span| is_id(span) && span.contains('-'))
}

fn missing(here: &Index<'_>) -> Vec<String> {
    let mut problems = Vec::new();
    for name in functions(here.rules).filter(|name| *name != "reject") {
        if !here.index.contains(&format!("`rules::{name}`")) {
            problems.push(format!("docs/RULES.md: has no row for `rules::{name}`"));
        }
    }
    for code in codes(here.reasons) {
        if !here.contract.contains(&format!("`{code}`")) {
            problems.push(format!("docs/CONTRACT.md: doesn't explain `{code}`"));
        }
    }
    let rules = mutants(here.mutants, "rule");
    for step in STEPS.iter().filter(|step| !rules.contains(**step)) {
        problems.push(format!(
            "tests/mutants/mutants.toml: has no mutant of {step}"
        ));
    }
    for rule in rules.iter().chain(&STEPS).collect::<BTreeSet<_>>() {
        if !here.index.contains(&format!("\n| {rule} |")) {
            problems.push(format!("docs/RULES.md: has no row for {rule}"));
        }
    }
    let ids = mutants(here.mutants, "id");
    for id in named(here.index).filter(|id| !ids.contains(id)) {
        problems.push(format!("docs/RULES.md: there is no mutant `{id}`"));
    }
    problems
}

fn text(path: &str) -> &'static str {
    let file = TREE.iter().find(|file: &&SourceFile| file.path == path);
    &file.expect("the file that this check reads is there").text
}

#[test]
fn documents_name_every_rule() {
    let mutants = text("tests/mutants/mutants.toml");
    assert_none(&missing(&Index {
        rules: text("engine/core/src/rules.rs"),
        reasons: text("engine/core/src/rejection.rs"),
        mutants: &mutants.parse().expect("the mutants are TOML"),
        contract: text("docs/CONTRACT.md"),
        index: text("docs/RULES.md"),
    }));
}

#[test]
fn the_code_is_read_rightly() {
    let rules: Vec<&str> = functions(text("engine/core/src/rules.rs")).collect();
    assert!(
        rules.contains(&"not_fenced_out") && rules.contains(&"known_domain"),
        "{rules:?}"
    );
    let codes: Vec<&str> = codes(text("engine/core/src/rejection.rs")).collect();
    assert!(
        codes.contains(&"StaleTerm") && codes.contains(&"DiskFull"),
        "{codes:?}"
    );
}

#[test]
fn a_gap_is_found() {
    let rules =
        "\npub(crate) fn fresh(view: &View) -> Judged {\n}\n\npub(crate) fn aid() -> bool {}\n";
    let reasons = "Self::StaleTerm { .. } => \"StaleTerm\",\n";
    let mutants: String = STEPS
        .iter()
        .map(|step| format!("[[mutant]]\nid = \"a-b\"\nrule = \"{step}\"\n"))
        .collect();
    let row = |step: &&str| format!("\n| {step} | `rules::fresh` | `a-b` |");
    let rows: String = STEPS.iter().map(row).collect();
    let count = |rules: &str, mutants: &str, contract: &str, index: &str| {
        let mutants = &mutants.parse().expect("the planted mutants are TOML");
        missing(&Index {
            rules,
            reasons,
            mutants,
            contract,
            index,
        })
        .len()
    };
    let contract = "`StaleTerm`";
    assert_eq!(count(rules, &mutants, contract, &rows), 0);
    assert_eq!(count(rules, &mutants, "StaleTerm", &rows), 1);
    assert_eq!(
        count(rules, &mutants, contract, &rows.replace("fresh", "old")),
        1
    );
    assert_eq!(
        count(rules, &mutants, contract, &rows.replace("R7", "R3")),
        1
    );
    assert_eq!(
        count(rules, &mutants, contract, &rows.replacen("a-b", "a-c", 1)),
        1
    );
    assert_eq!(
        count(rules, &mutants.replace("R7", "R8"), contract, &rows),
        1,
        "no mutant"
    );
    assert_eq!(
        count(rules, &mutants.replace("R7", "R0"), contract, &rows),
        2,
        "and no row"
    );
}
