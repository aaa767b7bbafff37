//! Which package may depend on which, read from the manifests.

use super::{SourceFile, TREE, assert_none};
use toml::{Table, Value};

/// A package of the workspace, and what it may depend on.
struct Package {
    /// Where its manifest is.
    directory: &'static str,
    /// Its name.
    name: &'static str,
    /// The packages of this workspace that it may use.
    ours: &'static [&'static str],
}

/// Every package. One that isn't here fails.
const PACKAGES: [Package; 8] = [
    Package {
        directory: "engine/core",
        name: CORE,
        ours: &[],
    },
    Package {
        directory: "wal",
        name: WAL,
        ours: &[],
    },
    Package {
        directory: "engine",
        name: ENGINE,
        ours: &[CORE, WAL],
    },
    Package {
        directory: "server/proto",
        name: PROTO,
        ours: &[CORE],
    },
    Package {
        directory: "server/client",
        name: CLIENT,
        ours: &[CORE, PROTO],
    },
    Package {
        directory: "server",
        name: SERVER,
        ours: &[CORE, ENGINE, PROTO, CLIENT],
    },
    Package {
        directory: "tests",
        name: TESTS,
        ours: SHIPPED,
    },
    Package {
        directory: "benches",
        name: BENCHES,
        ours: SHIPPED,
    },
];

const CORE: &str = "highwater-core";
const WAL: &str = "highwater-wal";
const ENGINE: &str = "highwater";
const PROTO: &str = "highwater-proto";
const CLIENT: &str = "highwater-client";
const SERVER: &str = "highwater-server";
const TESTS: &str = "highwater-tests";
const BENCHES: &str = "highwater-benches";
const SHIPPED: &[&str] = &[CORE, WAL, ENGINE, PROTO, CLIENT, SERVER];

/// Who speaks to the network, and who checks it.
const NETWORKED: &[&str] = &[PROTO, CLIENT, SERVER, TESTS, BENCHES];

/// Who waits without blocking a thread. The engine takes the primitives alone; see [`has_runtime`].
const WAITING: &[&str] = &[ENGINE, PROTO, CLIENT, SERVER, TESTS, BENCHES];

/// Packages of others that only some of ours may use, by the beginning of their names. Without a
/// user they are banned.
const CONFINED: [(&str, &[&str]); 9] = [
    ("redb", &[ENGINE, BENCHES]),
    ("tonic", NETWORKED),
    ("prost", NETWORKED),
    ("tokio", WAITING),
    ("clap", &[SERVER, TESTS, BENCHES]),
    ("tracing", &[ENGINE, CLIENT, SERVER]),
    ("criterion", &[BENCHES]),
    ("anyhow", &[]),
    ("eyre", &[]),
];

/// What a dependency is for.
#[derive(Clone, Copy, PartialEq)]
enum Purpose {
    /// It is linked into, or runs in the build of, what users get.
    Product,
    /// Tests, examples and benches of the package alone.
    Development,
}

/// The dependencies of a manifest by the name of the package, those of one platform included.
fn dependencies(manifest: &Table) -> Vec<(String, Purpose)> {
    let mut found = Vec::new();
    let platforms = manifest.get("target").and_then(Value::as_table);
    let of_platforms = platforms
        .into_iter()
        .flat_map(Table::values)
        .filter_map(Value::as_table);
    for table in of_platforms.chain([manifest]) {
        for (section, purpose) in [
            ("dependencies", Purpose::Product),
            ("build-dependencies", Purpose::Product),
            ("dev-dependencies", Purpose::Development),
        ] {
            let entries = table.get(section).and_then(Value::as_table);
            for (key, entry) in entries.into_iter().flatten() {
                let renamed = entry.get("package").and_then(Value::as_str);
                found.push((renamed.unwrap_or(key).to_owned(), purpose));
            }
        }
    }
    found
}

/// What one dependency of a package breaks, if anything.
fn broken_edge(package: &Package, dependency: &str, purpose: Purpose) -> Option<&'static str> {
    if dependency == ENGINE || dependency.starts_with("highwater-") {
        let may_test_with = !matches!(package.name, CORE | WAL) && SHIPPED.contains(&dependency);
        let allowed = package.ours.contains(&dependency)
            || (purpose == Purpose::Development && may_test_with);
        return (!allowed).then_some("is an edge that the architecture doesn't have");
    }
    if package.name == CORE && purpose == Purpose::Product {
        return Some("is a dependency of the core, which has none");
    }
    let confined = CONFINED.iter().any(|(name, users)| {
        let covered = dependency
            .strip_prefix(name)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('-'));
        covered && !users.contains(&package.name)
    });
    (confined && purpose == Purpose::Product).then_some("is confined to other packages")
}

/// Whether the engine takes more of tokio than its queues and wake-ups: it runs in whatever runtime
/// its user has, or in none.
fn has_runtime(package: &Package, manifest: &Table) -> bool {
    let tokio = manifest
        .get("dependencies")
        .and_then(|entries| entries.get("tokio"));
    let features = tokio
        .and_then(|entry| entry.get("features"))
        .and_then(Value::as_array);
    let more = |feature: &Value| feature.as_str() != Some("sync");
    package.name == ENGINE && features.is_some_and(|features| features.iter().any(more))
}

/// Problems of one manifest.
fn judge(path: &str, manifest: &Table) -> Vec<String> {
    let directory = path.strip_suffix("/Cargo.toml").unwrap_or(path);
    let Some(package) = PACKAGES
        .iter()
        .find(|package| package.directory == directory)
    else {
        return vec![format!("{path}: isn't in the list of packages")];
    };
    let mut problems = Vec::new();
    let name = manifest.get("package").and_then(|table| table.get("name"));
    if name.and_then(Value::as_str) != Some(package.name) {
        problems.push(format!("{path}: isn't named {}", package.name));
    }
    let lints = manifest
        .get("lints")
        .and_then(|table| table.get("workspace"));
    if lints.and_then(Value::as_bool) != Some(true) {
        problems.push(format!(
            "{path}: doesn't inherit the lints of the workspace"
        ));
    }
    if has_runtime(package, manifest) {
        problems.push(format!(
            "{path}: the engine takes more of tokio than 'sync'"
        ));
    }
    for (dependency, purpose) in dependencies(manifest) {
        if let Some(why) = broken_edge(package, &dependency, purpose) {
            problems.push(format!("{path}: '{dependency}' {why}"));
        }
    }
    problems
}

fn manifests(files: &[SourceFile]) -> impl Iterator<Item = (&str, Table)> {
    let packages = files.iter().filter(|file| {
        // Fuzz targets need another compiler mode, and are a workspace of their own.
        file.path.ends_with("/Cargo.toml") && !file.path.contains("/fuzz/")
    });
    packages.map(|file| {
        let manifest = file
            .text
            .parse::<Table>()
            .expect("cargo reads it, so it is TOML");
        (file.path.as_str(), manifest)
    })
}

#[test]
fn packages_depend_as_drawn() {
    let problems: Vec<String> = manifests(&TREE)
        .flat_map(|(path, manifest)| judge(path, &manifest))
        .collect();
    assert_none(&problems);
}

#[test]
fn every_package_is_a_member() {
    let root = TREE
        .iter()
        .find(|file| file.path == "Cargo.toml")
        .expect("the root has a manifest");
    let root: Table = root.text.parse().expect("cargo reads it, so it is TOML");
    let members = root["workspace"]["members"]
        .as_array()
        .expect("members are a list");
    let mut members: Vec<&str> = members.iter().filter_map(Value::as_str).collect();
    let mut drawn: Vec<&str> = PACKAGES.iter().map(|package| package.directory).collect();
    members.sort_unstable();
    drawn.sort_unstable();
    assert_eq!(members, drawn);
}

/// What is said of a manifest with the right head and these further lines.
fn planted(package: &Package, lines: &str) -> usize {
    let head = format!(
        "[package]\nname = \"{}\"\n[lints]\nworkspace = true\n",
        package.name
    );
    let manifest: Table = format!("{head}{lines}")
        .parse()
        .expect("the planted text is TOML");
    judge(&format!("{}/Cargo.toml", package.directory), &manifest).len()
}

#[test]
fn edges_between_our_packages_are_judged_both_ways() {
    for package in &PACKAGES {
        for other in PACKAGES.iter().map(|package| package.name) {
            let broken = usize::from(!package.ours.contains(&other));
            let edge = format!("[dependencies]\n{other}.workspace = true\n");
            assert_eq!(
                planted(package, &edge),
                broken,
                "{} to {other}",
                package.name
            );
        }
        let test_only = "[dev-dependencies]\nhighwater-tests.workspace = true\n";
        assert_eq!(planted(package, test_only), 1, "{}", package.name);
    }
}

#[test]
fn edges_to_others_are_judged_both_ways() {
    let [core, wal, engine, _, client, server, ..] = &PACKAGES;
    assert_eq!(planted(core, "[dependencies]\nlibm = \"1\"\n"), 1);
    assert_eq!(planted(core, "[build-dependencies]\nlibm = \"1\"\n"), 1);
    assert_eq!(planted(core, "[dev-dependencies]\nproptest = \"1\"\n"), 0);
    assert_eq!(
        planted(core, "[dev-dependencies]\nhighwater-wal.workspace = true\n"),
        1
    );
    assert_eq!(
        planted(wal, "[dependencies]\ncrc32fast.workspace = true\n"),
        0
    );
    assert_eq!(planted(wal, "[dependencies]\nredb.workspace = true\n"), 1);
    assert_eq!(
        planted(
            wal,
            "[target.'cfg(unix)'.dependencies]\nredb.workspace = true\n"
        ),
        1
    );
    assert_eq!(
        planted(engine, "[dependencies]\nredb.workspace = true\n"),
        0
    );
    assert_eq!(
        planted(engine, "[dependencies]\ntonic-types.workspace = true\n"),
        1
    );
    assert_eq!(
        planted(
            engine,
            "[dependencies]\nx = { package = \"tonic\", version = \"1\" }\n"
        ),
        1
    );
    assert_eq!(
        planted(client, "[dev-dependencies]\nhighwater.workspace = true\n"),
        0
    );
    assert_eq!(
        planted(server, "[dependencies]\ntonic.workspace = true\n"),
        0
    );
    assert_eq!(planted(server, "[dependencies]\nanyhow = \"1\"\n"), 1);
}

#[test]
fn a_runtime_in_the_engine_is_found() {
    let [_, _, engine, .., server, _, _] = &PACKAGES;
    let tokio = |features| {
        format!("[dependencies]\ntokio = {{ workspace = true, features = [{features}] }}\n")
    };
    assert_eq!(planted(engine, &tokio("\"sync\"")), 0);
    assert_eq!(planted(engine, &tokio("\"sync\", \"rt\"")), 1);
    assert_eq!(planted(server, &tokio("\"sync\", \"rt\"")), 0);
}

#[test]
fn a_wrong_head_is_found() {
    let judge =
        |path, text: &str| judge(path, &text.parse().expect("the planted text is TOML")).len();
    let right = "[package]\nname = \"highwater-wal\"\n[lints]\nworkspace = true\n";
    assert_eq!(judge("wal/Cargo.toml", right), 0);
    assert_eq!(judge("wall/Cargo.toml", right), 1);
    assert_eq!(judge("engine/Cargo.toml", right), 1);
    assert_eq!(
        judge("wal/Cargo.toml", "[package]\nname = \"highwater-wal\"\n"),
        1
    );
}
