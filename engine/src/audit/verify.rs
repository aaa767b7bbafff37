//! Walking a whole trail, without a store.

use std::collections::BTreeSet;
use std::fmt;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use highwater_wal::Disk;

use super::line::{End, NO_DIGEST, first_of};
use super::scan::{AuditFault, FileReader, Lines, follows};

/// What a trail that is in order consists of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AuditVerified {
    /// How many files.
    pub files: usize,
    /// How many lines.
    pub lines: u64,
    /// The sequence of the first line; above 1 where retention has removed the ones before.
    pub first: u64,
    /// The sequence of the last line.
    pub last: u64,
    /// The digest of the last line: whoever keeps it elsewhere can tell later that nothing up to
    /// there was changed or cut.
    pub digest: String,
    /// The revision up to which the trail tells of every change, or of a gap.
    pub revision: Option<u64>,
    /// How many revisions lie in gaps.
    pub gaps: u64,
    /// Whether the last line is that of an orderly end. Else lines may be missing behind it, which
    /// the files alone can't tell.
    pub closed: bool,
}

/// Why a trail isn't in order, or can't be told to be.
#[derive(Debug)]
pub enum AuditVerifyError {
    /// There is no file of a trail.
    Empty,
    /// A file can't be read.
    Io {
        /// The file.
        file: String,
        /// What the storage said.
        source: io::Error,
    },
    /// A line is wrong: the first one that is.
    Wrong {
        /// The file.
        file: String,
        /// The line in it, from 1 on.
        line: u64,
        /// What is wrong.
        fault: AuditFault,
    },
}

impl fmt::Display for AuditVerifyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("there is no audit trail"),
            Self::Io { file, source } => write!(f, "can't read '{file}': {source}"),
            Self::Wrong { file, line, fault } => write!(f, "{file}, line {line}: {fault}"),
        }
    }
}

impl std::error::Error for AuditVerifyError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            Self::Empty | Self::Wrong { .. } => None,
        }
    }
}

/// The files of the trail in a directory, oldest first.
///
/// # Errors
///
/// What the operating system says.
pub fn audit_files(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        names.extend(entry?.file_name().into_string());
    }
    Ok(in_order(names).map(|name| dir.join(name)).collect())
}

/// Walks the audit trail in a directory from its first line to its last, and changes nothing. The
/// store may be open meanwhile; a line that is just being written is then found to be cut.
///
/// A trail proves that nothing between its first and its last line was changed, taken out or put
/// in, by whoever can't make its digests anew. It can't tell what was cut off its very end, nor
/// that somebody wrote all of it anew: for both, keep [`AuditVerified::digest`] elsewhere.
///
/// # Errors
///
/// [`AuditVerifyError`], with the file and the line where there is one.
pub fn verify_audit(dir: impl AsRef<Path>) -> Result<AuditVerified, AuditVerifyError> {
    let dir = dir.as_ref();
    let files = audit_files(dir).map_err(|source| AuditVerifyError::Io {
        file: dir.display().to_string(),
        source,
    })?;
    let names = files.iter().filter_map(|path| path.file_name()?.to_str());
    let names = names.map(str::to_owned).collect();
    walk(names, &|name| {
        Ok(Box::new(std::fs::File::open(dir.join(name))?))
    })
}

/// As [`verify_audit`], on a disk of the caller's.
///
/// # Errors
///
/// As [`verify_audit`].
pub fn verify_audit_on(disk: &dyn Disk) -> Result<AuditVerified, AuditVerifyError> {
    let names = disk.list().map_err(|source| AuditVerifyError::Io {
        file: "the directory".into(),
        source,
    })?;
    walk(in_order(names).collect(), &|name| {
        let mut bytes = Vec::new();
        FileReader::new(&*disk.open(name)?).read_to_end(&mut bytes)?;
        Ok(Box::new(io::Cursor::new(bytes)))
    })
}

/// The names that are files of a trail, oldest first.
pub(crate) fn in_order(names: Vec<String>) -> impl Iterator<Item = String> {
    let mut found: Vec<_> = names
        .into_iter()
        .filter_map(|name| Some((first_of(&name)?, name)))
        .collect();
    found.sort_unstable();
    found.into_iter().map(|(_, name)| name)
}

type Open<'a> = &'a dyn Fn(&str) -> io::Result<Box<dyn Read>>;

fn walk(names: Vec<String>, open: Open<'_>) -> Result<AuditVerified, AuditVerifyError> {
    let Some(oldest) = names.first().cloned() else {
        return Err(AuditVerifyError::Empty);
    };
    let mut walk = Walk::default();
    for name in &names {
        let read = || -> io::Result<Option<(u64, AuditFault)>> {
            walk.file(name, Lines::new(BufReader::new(open(name)?)))
        };
        let wrong = { read }().map_err(|source| AuditVerifyError::Io {
            file: name.clone(),
            source,
        })?;
        if let Some((line, fault)) = wrong {
            let file = name.clone();
            return Err(AuditVerifyError::Wrong { file, line, fault });
        }
    }
    let (Some(first), Some(end)) = (walk.before_first, walk.end) else {
        return Err(AuditVerifyError::Empty);
    };
    let begins = first.0 == 0 && first.1 == NO_DIGEST;
    if !begins && !walk.removed.contains(&first) {
        return Err(AuditVerifyError::Wrong {
            file: oldest,
            line: 1,
            fault: AuditFault::Beginning,
        });
    }
    Ok(AuditVerified {
        files: names.len(),
        lines: end.seq.saturating_sub(first.0),
        first: first.0.saturating_add(1),
        last: end.seq,
        digest: end.digest,
        revision: end.audited,
        gaps: walk.gaps,
        closed: walk.closed,
    })
}

/// How far a walk has come.
#[derive(Debug, Default)]
struct Walk {
    /// Sequence and digest of the line before the first that is there.
    before_first: Option<(u64, String)>,
    end: Option<End>,
    /// Last sequence and digest of every file that a retention says it removed.
    removed: BTreeSet<(u64, String)>,
    gaps: u64,
    closed: bool,
}

impl Walk {
    /// Walks one file. The first line that is wrong, and why.
    fn file(
        &mut self,
        name: &str,
        mut lines: Lines<BufReader<Box<dyn Read>>>,
    ) -> io::Result<Option<(u64, AuditFault)>> {
        while let Some(found) = lines.next()? {
            let Some(line) = found.line else {
                return Ok(Some((found.number, AuditFault::Line)));
            };
            if found.number == 1 && first_of(name) != Some(line.seq) {
                return Ok(Some((1, AuditFault::Name)));
            }
            let start = || End {
                seq: line.seq.saturating_sub(1),
                digest: line.prev.clone(),
                // What was audited before isn't known; the first line says what is with it.
                audited: match line.accounts_from {
                    Some(_) => None,
                    None => line.audited,
                },
            };
            let end = self.end.take().unwrap_or_else(start);
            if let Err(fault) = follows(&end, &line) {
                return Ok(Some((found.number, fault)));
            }
            if line.kind == "gap"
                && let (Some(from), Some(to)) = (line.accounts_from, line.audited)
            {
                let count = to.saturating_sub(from).saturating_add(1);
                self.gaps = self.gaps.saturating_add(count);
            }
            let removed = line.removed.iter();
            self.removed.extend(removed.filter_map(|file| {
                let last = file.last.parse().ok()?;
                Some((last, file.digest.clone()))
            }));
            self.before_first.get_or_insert((end.seq, end.digest));
            self.closed = line.kind == "closed";
            self.end = Some(line.end());
        }
        Ok(None)
    }
}
