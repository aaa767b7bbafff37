//! `highwater audit`: the trail in a directory, read without a server.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::PathBuf;

use clap::{Args, Subcommand};
use highwater::{AuditVerified, AuditVerifyError, audit_files, escape, verify_audit};
use serde_json::{Value, json};

use super::args::Format;
use super::failure::Failure;
use super::output::Output;
use super::text::table;

/// Most lines that are shown at once.
const LINES_MAX: u32 = 1_000_000;

/// What to do with an audit trail.
#[derive(Subcommand, Debug)]
pub(crate) enum AuditCommand {
    /// Show the last lines
    Tail(TailArgs),
    /// Check that nothing was changed, taken out or put in
    Verify {
        #[command(flatten)]
        place: Place,
    },
}

/// Where a trail is.
#[derive(Args, Debug)]
pub(crate) struct Place {
    /// The directory of the store
    #[arg(long, env = "HIGHWATER_DATA_DIR", value_name = "DIR")]
    data_dir: PathBuf,
}

/// The last lines of a trail.
#[derive(Args, Debug)]
pub(crate) struct TailArgs {
    #[command(flatten)]
    place: Place,
    /// How many
    #[arg(long, short = 'n', default_value_t = 10)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=i64::from(LINES_MAX)))]
    count: u32,
}

/// Reads a trail.
pub(crate) fn run(command: &AuditCommand, out: &mut Output) -> Result<(), Failure> {
    match command {
        AuditCommand::Tail(args) => tail(args, out),
        AuditCommand::Verify { place } => {
            let verified = verify_audit(&place.data_dir).map_err(Failure::Audit)?;
            out.tell(|| verified_json(&verified), || verified_text(&verified))
        }
    }
}

/// The last lines of the files, oldest first; an unfinished one at the end isn't shown.
fn last_lines(args: &TailArgs) -> Result<VecDeque<String>, AuditVerifyError> {
    let dir = args.place.data_dir.as_path();
    let failed = |path: &std::path::Path| {
        let file = escape(path.as_os_str().as_encoded_bytes());
        move |source| AuditVerifyError::Io { file, source }
    };
    let files = audit_files(dir).map_err(failed(dir))?;
    if files.is_empty() {
        return Err(AuditVerifyError::Empty);
    }
    let wanted = usize::try_from(args.count).unwrap_or(usize::MAX);
    let mut lines = VecDeque::new();
    for path in files.iter().rev() {
        let left = wanted.saturating_sub(lines.len());
        if left == 0 {
            break;
        }
        for line in last_of(path, left).map_err(failed(path))?.into_iter().rev() {
            lines.push_front(line);
        }
    }
    Ok(lines)
}

/// The last lines of one file, at most so many.
fn last_of(path: &std::path::Path, most: usize) -> io::Result<VecDeque<String>> {
    let mut reader = BufReader::new(File::open(path)?);
    let mut lines = VecDeque::new();
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        reader.read_until(b'\n', &mut bytes)?;
        let Some(line) = bytes.strip_suffix(b"\n") else {
            return Ok(lines);
        };
        if lines.len() == most {
            lines.pop_front();
        }
        // Every line that a store writes is printable; of another one no byte reaches a terminal.
        let printable = line.iter().all(|byte| (b' '..=b'~').contains(byte));
        lines.push_back(if printable {
            String::from_utf8_lossy(line).into_owned()
        } else {
            escape(line)
        });
    }
}

fn tail(args: &TailArgs, out: &mut Output) -> Result<(), Failure> {
    let lines = last_lines(args).map_err(Failure::Audit)?;
    if out.format() == Format::Json {
        for line in &lines {
            out.raw(format!("{line}\n").as_bytes())?;
        }
        return Ok(());
    }
    let mut rows = table(&["sequence", "revision", "kind", "domain", "what"]);
    for line in &lines {
        match serde_json::from_str::<Value>(line) {
            Ok(line) => rows.add_row(row(&line)),
            Err(_) => rows.add_row(["", "", "wrong line", "", line]),
        };
    }
    out.raw(format!("{rows}\n").as_bytes())
}

fn row(line: &Value) -> [String; 5] {
    let text = |name: &str| {
        let value = line.get(name).and_then(Value::as_str);
        value.unwrap_or_default().to_owned()
    };
    let each = |list: &str, name: &str| {
        let items = line.get(list).and_then(Value::as_array);
        let items = items.into_iter().flatten();
        let names = items.filter_map(|item| item.get(name)?.as_str().map(str::to_owned));
        names.collect::<Vec<_>>().join(" ")
    };
    let what = match text("kind").as_str() {
        "commit" => [
            each("guards", "authority"),
            each("writes", "key"),
            each("intents", "intent"),
            each("leases", "event"),
        ]
        .join(" "),
        "refused" => format!("{} {} {}", text("reason"), text("presented"), text("guard")),
        "refusals_suppressed" => {
            format!("{}: {}", each("counts", "reason"), each("counts", "count"))
        }
        "gap" => format!(
            "{} revisions from {} to {}",
            text("count"),
            text("from"),
            text("to")
        ),
        "retention" => format!("removed up to {}", each("files", "last")),
        "domain" => text("epoch"),
        _ => String::new(),
    };
    let revision = ["revision", "at", "to"].iter().map(|name| text(name));
    let revision = revision.into_iter().find(|text| !text.is_empty());
    [
        text("seq"),
        revision.unwrap_or_default(),
        text("kind"),
        text("domain"),
        what.trim().to_owned(),
    ]
}

fn verified_json(found: &AuditVerified) -> Value {
    json!({
        "verified": true,
        "files": found.files.to_string(),
        "lines": found.lines.to_string(),
        "first": found.first.to_string(),
        "last": found.last.to_string(),
        "digest": found.digest,
        "revision": found.revision.map(|revision| revision.to_string()),
        "gaps": found.gaps.to_string(),
        "closed": found.closed,
    })
}

fn verified_text(found: &AuditVerified) -> String {
    let AuditVerified {
        files,
        lines,
        first,
        last,
        digest,
        gaps,
        ..
    } = found;
    let revision = found.revision.unwrap_or(0);
    let end = if found.closed {
        "the store was closed in good order"
    } else {
        "the store is open or wasn't closed in good order: what is cut off the end can't be told"
    };
    format!(
        "{lines} lines in {files} files are in order, from {first} to {last}, up to revision \
         {revision}; {gaps} revisions lie in gaps; {end}\nlast digest: {digest}"
    )
}
