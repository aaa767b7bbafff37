//! What the help says is what holds.

use super::support::run;

#[test]
fn the_help_of_serve_tells_the_default_of_every_setting() {
    let help = run(&["serve", "--help"]);
    let printed = run(&["serve", "--print-config"]);
    assert_eq!((help.code, printed.code), (0, 0), "{}", printed.stderr);
    let (help, printed) = (
        String::from_utf8(help.stdout).unwrap(),
        String::from_utf8(printed.stdout).unwrap(),
    );
    // An option and its text, which ends where the next option begins.
    let options: Vec<&str> = help.split("\n      --").skip(1).collect();
    for line in printed.lines() {
        let (name, value) = line.split_once(" = ").unwrap();
        let option = format!("{} ", name.replace('_', "-"));
        let text = options.iter().find(|text| text.starts_with(&option));
        let default = format!("[default: {}]", value.trim_matches('"'));
        let words: Vec<&str> = text.unwrap().split_whitespace().collect();
        assert!(words.join(" ").contains(&default), "{line}: {text:?}");
    }
    assert!(help.contains("[default: 127.0.0.1:7171]"), "{help}");
}
