//! Standard output: one result at a time, in the form that was asked for.

use std::io::{self, BufWriter, Write};

use highwater::Revision;
use serde_json::Value;

use super::args::Format;
use super::failure::Failure;

/// Where results go.
pub(crate) struct Output {
    format: Format,
    out: BufWriter<Box<dyn Write>>,
}

impl Output {
    /// Results in this form, on standard output.
    pub(crate) fn new(format: Format) -> Self {
        Self::to(format, Box::new(io::stdout().lock()))
    }

    /// Results in this form, to somewhere else.
    pub(crate) fn to(format: Format, out: Box<dyn Write>) -> Self {
        Self {
            format,
            out: BufWriter::new(out),
        }
    }

    /// The form.
    pub(crate) const fn format(&self) -> Format {
        self.format
    }

    /// Writes a result: as one line of JSON, or as text.
    pub(crate) fn tell(
        &mut self,
        json: impl FnOnce() -> Value,
        text: impl FnOnce() -> String,
    ) -> Result<(), Failure> {
        match self.format {
            Format::Json => writeln!(self.out, "{}", json())?,
            Format::Table => writeln!(self.out, "{}", text())?,
        }
        Ok(self.out.flush()?)
    }

    /// Writes what the destination said of a write that it accepted at this revision; that it did
    /// is told even where this can't be.
    pub(crate) fn tell_accepted(
        &mut self,
        revision: Revision,
        json: impl FnOnce() -> Value,
        text: impl FnOnce() -> String,
    ) -> Result<(), Failure> {
        self.tell(json, text)
            .map_err(|failure| failure.after_acceptance(revision))
    }

    /// Writes bytes as they are.
    pub(crate) fn raw(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.out.write_all(bytes)?;
        Ok(self.out.flush()?)
    }
}

/// Writes a line to standard error. Where nobody reads that, there is nobody to tell.
pub(crate) fn complain(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}
