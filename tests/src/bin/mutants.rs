//! Proves that the tests of the decision core would notice a wrong rule: applies each mutant of
//! `tests/mutants/mutants.toml` to a copy of the core, one at a time, and runs its tests there.
//!
//! Usage: `cargo run -p highwater-tests --bin mutants [ID...]`. With ids, only those mutants.
//!
//! Ends with 1 if a mutant survives, doesn't apply exactly once or doesn't compile, or if the core
//! as it is fails its tests.

use std::error::Error;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use serde::Deserialize;

/// The test target of the core whose verdict counts.
const TARGET: &str = "rules";

/// Tests that take seconds. They run only where no quicker one fails.
const SLOW: [&str; 3] = [
    "exhaustive::every_sequence",
    "histories::random",
    "lease_worlds::",
];

/// What can go wrong beside a mutant: files, processes, the list itself.
type Outcome<T> = Result<T, Box<dyn Error>>;

/// The file of mutants.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    mutant: Vec<Mutant>,
}

/// One wrong rule.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Mutant {
    /// Its name.
    id: String,
    /// The step or invariant of the contract that it breaks.
    rule: String,
    /// The file it changes, under `engine/core/src`.
    file: String,
    /// What stands there, exactly once.
    find: String,
    /// What stands there instead.
    replace: String,
}

/// What became of a mutant.
enum Fate {
    /// A test failed: its name.
    Killed(String),
    /// Every test passed.
    Survived,
    /// It can't be judged, and why.
    Invalid(String),
}

/// A copy of the core in a directory of its own, with everything that builds it.
struct Copy {
    root: PathBuf,
}

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("mutants: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the list; whether every mutant died.
fn run() -> Outcome<bool> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let workspace = here.parent().ok_or("the package has no parent")?;
    let list = fs::read_to_string(here.join("mutants/mutants.toml"))?;
    let list: List = toml::from_str(&list)?;
    check_ids(&list)?;
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    if let Some(strange) = wanted
        .iter()
        .find(|id| list.mutant.iter().all(|m| m.id != **id))
    {
        return Err(format!("no mutant is named {strange}").into());
    }
    let copy = Copy::of(workspace)?;
    let baseline = copy.judge()?;
    let alive = match baseline {
        Fate::Survived => hunt(&copy, &list, &wanted)?,
        Fate::Killed(test) => return Err(format!("the core as it is fails {test}").into()),
        Fate::Invalid(why) => return Err(format!("the core as it is: {why}").into()),
    };
    fs::remove_dir_all(&copy.root)?;
    Ok(alive == 0)
}

/// Judges each mutant; how many aren't dead.
fn hunt(copy: &Copy, list: &List, wanted: &[String]) -> Outcome<usize> {
    let begun = Instant::now();
    let (mut all, mut alive) = (0_usize, 0_usize);
    for mutant in &list.mutant {
        if !wanted.is_empty() && !wanted.contains(&mutant.id) {
            continue;
        }
        all += 1;
        let Mutant { id, rule, .. } = mutant;
        match copy.judge_mutant(mutant)? {
            Fate::Killed(test) => println!("killed    {rule} {id}, by {test}"),
            Fate::Survived => {
                alive += 1;
                println!("SURVIVED  {rule} {id}");
            }
            Fate::Invalid(why) => {
                alive += 1;
                println!("INVALID   {rule} {id}: {why}");
            }
        }
    }
    let seconds = begun.elapsed().as_secs();
    println!(
        "{all} mutants, {} killed, {alive} not, in {seconds} s",
        all - alive
    );
    Ok(alive)
}

/// Every mutant has a name of its own.
fn check_ids(list: &List) -> Outcome<()> {
    let mut ids: Vec<&str> = list
        .mutant
        .iter()
        .map(|mutant| mutant.id.as_str())
        .collect();
    ids.sort_unstable();
    let mut pairs = ids.iter().zip(ids.iter().skip(1));
    match pairs.find(|(a, b)| a == b) {
        Some((id, _)) => Err(format!("two mutants are named {id}").into()),
        None => Ok(()),
    }
}

impl Copy {
    /// Copies sources, tests and the toolchain's name, and writes a manifest that stands alone.
    fn of(workspace: &Path) -> Outcome<Self> {
        let name = format!("highwater-mutants-{}", std::process::id());
        let root = std::env::temp_dir().join(name);
        let core = workspace.join("engine/core");
        for tree in ["src", "tests"] {
            copy_tree(&core.join(tree), &root.join(tree))?;
        }
        let toolchain = "rust-toolchain.toml";
        fs::copy(workspace.join(toolchain), root.join(toolchain))?;
        fs::write(root.join("Cargo.toml"), manifest(workspace)?)?;
        Ok(Self { root })
    }

    /// Applies a mutant, judges it, and takes it back.
    fn judge_mutant(&self, mutant: &Mutant) -> Outcome<Fate> {
        let path = self.root.join("src").join(&mutant.file);
        let source = fs::read_to_string(&path)?;
        let found = source.matches(&mutant.find).count();
        if found != 1 {
            let why = format!("its text stands {found} times in {}", mutant.file);
            return Ok(Fate::Invalid(why));
        }
        if mutant.find == mutant.replace {
            return Ok(Fate::Invalid("it changes nothing".into()));
        }
        fs::write(&path, source.replace(&mutant.find, &mutant.replace))?;
        let fate = self.judge()?;
        fs::write(&path, source)?;
        Ok(fate)
    }

    /// Builds what stands in the copy and runs its tests up to the first that fails.
    fn judge(&self) -> Outcome<Fate> {
        // Cargo names itself to what it runs; started by hand, the one in the path does.
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let build = Command::new(cargo)
            .args(["test", "--offline", "--quiet", "--no-run", "--test", TARGET])
            .current_dir(&self.root)
            .env("CARGO_TARGET_DIR", self.root.join("target"))
            .output()?;
        if !build.status.success() {
            let errors = String::from_utf8_lossy(&build.stderr);
            let first = errors.lines().find(|line| line.starts_with("error"));
            let why = format!("it doesn't compile: {}", first.unwrap_or("no message"));
            return Ok(Fate::Invalid(why));
        }
        let tests = self.tests()?;
        let skip = SLOW.iter().flat_map(|slow| ["--skip", *slow]);
        match first_failure(Command::new(&tests).args(skip))? {
            Fate::Survived => first_failure(Command::new(&tests).args(SLOW)),
            fate => Ok(fate),
        }
    }

    /// The test program that was built: the one of its name without an extension.
    fn tests(&self) -> Outcome<PathBuf> {
        let prefix = format!("{TARGET}-");
        for entry in fs::read_dir(self.root.join("target/debug/deps"))? {
            let path = entry?.path();
            let name = path.file_name().and_then(|name| name.to_str());
            if path.extension().is_none() && name.is_some_and(|name| name.starts_with(&prefix)) {
                return Ok(path);
            }
        }
        Err("no test program was built".into())
    }
}

/// Runs a test program; the first test that fails ends it.
fn first_failure(program: &mut Command) -> Outcome<Fate> {
    let mut tests = program
        .env("RUST_BACKTRACE", "0")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let lines = tests.stdout.take().ok_or("no output")?;
    for line in BufReader::new(lines).lines() {
        let line = line?;
        let failed = line.strip_prefix("test ");
        if let Some((test, _)) = failed.and_then(|line| line.split_once(" ... FAILED")) {
            tests.kill()?;
            tests.wait()?;
            return Ok(Fate::Killed(test.to_owned()));
        }
    }
    // A program that ends badly without naming a test has crashed: that is noticed, too.
    Ok(if tests.wait()?.success() {
        Fate::Survived
    } else {
        Fate::Killed("a crash".into())
    })
}

/// The core's manifest with everything it inherits written out, and a workspace of its own.
fn manifest(workspace: &Path) -> Outcome<String> {
    let read = |path: &str| -> Outcome<toml::Table> {
        Ok(fs::read_to_string(workspace.join(path))?.parse()?)
    };
    let (shared, mut core) = (read("Cargo.toml")?, read("engine/core/Cargo.toml")?);
    let inherited = shared
        .get("workspace")
        .and_then(|workspace| workspace.get("package"))
        .and_then(toml::Value::as_table)
        .ok_or("the workspace shares no package fields")?;
    let package = core
        .get_mut("package")
        .and_then(toml::Value::as_table_mut)
        .ok_or("the core's manifest has no package")?;
    for (field, value) in package.iter_mut() {
        if value.get("workspace").is_some() {
            *value = inherited
                .get(field)
                .cloned()
                .ok_or("a field is not shared")?;
        }
    }
    core.remove("lints");
    let build = "[workspace]\n[profile.dev]\nopt-level = 1\ndebug = false\nincremental = true\n";
    Ok(format!("{}\n{build}", toml::to_string(&core)?))
}

fn copy_tree(from: &Path, to: &Path) -> Outcome<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_tree(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}
