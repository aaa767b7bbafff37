//! What is stored under a key.

use crate::authority::Term;
use crate::counters::{Generation, Metageneration, Revision};
use crate::metadata::Metadata;
use crate::names::Value;

/// What is stored under a key that exists.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Record {
    /// The version of the value: the revision that last wrote it.
    pub generation: Generation,
    /// The version of the metadata inside that generation.
    pub metageneration: Metageneration,
    /// The revision that last changed value or metadata.
    pub changed_at: Revision,
    /// The term under which the value was last written; `None` where no authority was presented.
    pub written_under: Option<Term>,
    /// The value.
    pub value: Value,
    /// The metadata.
    pub metadata: Metadata,
}
