//! Opening a trail: where it ends, and what a crash has left behind that.

use std::collections::VecDeque;
use std::io::{self, BufReader};
use std::sync::Arc;

use highwater_core::{DestinationId, Incarnation};
use highwater_wal::{Disk, DiskFile};

use super::line::{End, Line, Removed, file_name, first_of};
use super::scan::{FileReader, Found, Lines, follows};
use super::settings::AuditConfig;
use super::trail::{Active, Full, Trail};
use super::verify::in_order;
use crate::error::OpenError;

fn io_error(what: &'static str, file: &str) -> impl FnOnce(io::Error) -> OpenError {
    let file = file.to_owned();
    move |source| OpenError::Io { what, file, source }
}

/// What one file was found to be.
struct Scanned {
    file: Box<dyn DiskFile>,
    first: Option<Line>,
    last: Option<Line>,
    /// How far its lines are whole and follow one another, in bytes.
    len: u64,
    bytes: u64,
}

impl Trail {
    /// Opens the trail on a disk, or begins one. An end that a crash has torn is cut off; it was
    /// never relied on. What is there afterwards is durable.
    ///
    /// # Errors
    ///
    /// [`OpenError::Corrupt`] if a line is wrong that no crash can have torn.
    pub(crate) fn open(
        disk: Arc<dyn Disk>,
        config: AuditConfig,
        destination: DestinationId,
        incarnation: Incarnation,
    ) -> Result<Self, OpenError> {
        let list = |disk: &dyn Disk| disk.list();
        let names = list(&*disk).map_err(io_error("list the directory of", "the audit trail"))?;
        let names: Vec<_> = in_order(names).collect();
        let mut trail = Self {
            disk,
            config,
            destination: destination.to_string(),
            incarnation: incarnation.to_string(),
            end: End::default(),
            full: VecDeque::new(),
            active: None,
        };
        trail.find_end(&names)?;
        let sync = trail.disk.sync_dir();
        sync.map_err(io_error("sync the directory of", "the audit trail"))?;
        Ok(trail)
    }

    fn find_end(&mut self, names: &[String]) -> Result<(), OpenError> {
        let Some((newest, older)) = names.split_last() else {
            return Ok(());
        };
        let scanned = scan(&*self.disk, newest)?;
        let mut before = scanned.first.as_ref().map(Line::end_before);
        let mut after_ms = scanned.first.as_ref().map(|line| line.time_ms);
        if let Some(last) = &scanned.last {
            self.end = last.end();
        } else if let Some(name) = older.last() {
            let last = scan(&*self.disk, name)?;
            let whole = last.last.filter(|_| last.len == last.bytes);
            let line = whole.ok_or_else(|| corrupt(name, last.len, "its end is wrong"))?;
            self.end = line.end();
            before = Some(line.end());
            after_ms = Some(line.time_ms);
        }
        self.adopt(newest, scanned)?;
        for name in older.iter().rev() {
            let (Some(end), Some(newest_ms)) = (before, after_ms) else {
                break;
            };
            let file = self.disk.open(name).map_err(io_error("open", name))?;
            let bytes = file.len().map_err(io_error("measure", name))?;
            let line = first_line(&*file, name)?;
            self.full.push_front(Full {
                name: name.clone(),
                removed: Removed {
                    first: line.seq.to_string(),
                    last: end.seq.to_string(),
                    digest: end.digest,
                },
                bytes,
                newest_ms,
            });
            before = Some(line.end_before());
            after_ms = Some(line.time_ms);
        }
        Ok(())
    }

    /// Goes on with the newest file, behind its last whole line.
    fn adopt(&mut self, name: &str, scanned: Scanned) -> Result<(), OpenError> {
        let Scanned {
            file,
            first,
            last,
            len,
            bytes,
        } = scanned;
        let begins = first
            .as_ref()
            .map_or(self.end.seq.saturating_add(1), |line| line.seq);
        if first_of(name) != Some(begins) {
            return Err(corrupt(
                name,
                0,
                "its name isn't the sequence of its first line",
            ));
        }
        if len < bytes {
            tracing::info!(
                file = name,
                offset = len,
                "cut an unfinished end of the audit trail"
            );
            file.set_len(len).map_err(io_error("cut", name))?;
        }
        file.sync_data().map_err(io_error("sync", name))?;
        self.active = Some(Active {
            file,
            first: begins,
            len,
            oldest_ms: first.map_or(0, |line| line.time_ms),
            newest_ms: last.map_or(0, |line| line.time_ms),
            named: true,
            dirty: false,
        });
        Ok(())
    }
}

impl Line {
    /// Where the trail ended before this line, as far as it says.
    fn end_before(&self) -> End {
        End {
            seq: self.seq.saturating_sub(1),
            digest: self.prev.clone(),
            audited: match self.accounts_from {
                Some(_) => None,
                None => self.audited,
            },
        }
    }
}

fn corrupt(file: &str, offset: u64, detail: &str) -> OpenError {
    OpenError::Corrupt {
        file: file.into(),
        offset,
        detail: format!("{detail}; or move the files of the audit trail away to begin another"),
    }
}

fn first_line(file: &dyn DiskFile, name: &str) -> Result<Line, OpenError> {
    let found = Lines::new(BufReader::new(FileReader::new(file))).next();
    let found = found.map_err(io_error("read", name))?;
    let line = found.and_then(|found| found.line);
    let line = line.filter(|line| file_name(line.seq) == name);
    line.ok_or_else(|| corrupt(name, 0, "its first line is wrong"))
}

/// Reads a file up to its end, or up to where a crash has torn it. Only one batch is ever written
/// before it is synced, and every line names its batch: a whole line of a later batch behind a
/// wrong one proves that the wrong one was durable once.
fn scan(disk: &dyn Disk, name: &str) -> Result<Scanned, OpenError> {
    let file = disk.open(name).map_err(io_error("open", name))?;
    let bytes = file.len().map_err(io_error("measure", name))?;
    let mut lines = Lines::new(BufReader::new(FileReader::new(&*file)));
    let (mut first, mut last): (Option<Line>, Option<Line>) = (None, None);
    let mut len = 0;
    let mut torn = false;
    while let Some(found) = lines.next().map_err(io_error("read", name))? {
        let Found { line, offset, .. } = found;
        let end = last.as_ref().map(Line::end);
        let next = end
            .as_ref()
            .map_or(first_of(name), |end| end.seq.checked_add(1));
        match line {
            Some(line) if torn => {
                if next.is_some_and(|next| line.batch > next) {
                    return Err(corrupt(name, len, "a line that was durable is wrong"));
                }
            }
            Some(line) => match &end {
                Some(end) if follows(end, &line).is_err() => {
                    if line.batch > end.seq.saturating_add(1) {
                        return Err(corrupt(name, offset, "lines are missing before it"));
                    }
                    torn = true;
                }
                _ => {
                    len = lines.offset();
                    first.get_or_insert_with(|| line.clone());
                    last = Some(line);
                }
            },
            None => torn = true,
        }
    }
    drop(lines);
    Ok(Scanned {
        file,
        first,
        last,
        len,
        bytes,
    })
}
