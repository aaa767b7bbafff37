//! The small facts that go with a value: a content type and labels.

use alloc::collections::BTreeMap;
use alloc::string::String;
use core::fmt;

use crate::limits::{
    CONTENT_TYPE_BYTES_MAX, LABEL_NAME_BYTES_MAX, LABEL_VALUE_BYTES_MAX, LABELS_MAX,
};

/// A key's metadata: a content type and labels, both optional and bounded.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Metadata {
    content_type: Option<String>,
    labels: BTreeMap<String, String>,
}

/// Why metadata is refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MetadataError {
    /// The content type is longer than 256 bytes.
    ContentType {
        /// How long it is, in bytes.
        bytes: usize,
    },
    /// There would be more than 64 labels.
    TooManyLabels,
    /// A label's name is empty or longer than 128 bytes.
    LabelName {
        /// How long it is, in bytes.
        bytes: usize,
    },
    /// A label's value is longer than 1,024 bytes.
    LabelValue {
        /// How long it is, in bytes.
        bytes: usize,
    },
    /// A label is given twice.
    DuplicateLabel,
}

impl fmt::Display for MetadataError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ContentType { bytes } => {
                write!(
                    f,
                    "the content type has {bytes} bytes; at most {CONTENT_TYPE_BYTES_MAX}"
                )
            }
            Self::TooManyLabels => write!(f, "a key has at most {LABELS_MAX} labels"),
            Self::LabelName { bytes } => {
                write!(
                    f,
                    "a label's name has {bytes} bytes; 1 to {LABEL_NAME_BYTES_MAX}"
                )
            }
            Self::LabelValue { bytes } => {
                write!(
                    f,
                    "a label's value has {bytes} bytes; at most {LABEL_VALUE_BYTES_MAX}"
                )
            }
            Self::DuplicateLabel => f.write_str("a label is given twice"),
        }
    }
}

impl core::error::Error for MetadataError {}

impl Metadata {
    /// This metadata with a content type.
    ///
    /// # Errors
    ///
    /// [`MetadataError::ContentType`] above 256 bytes.
    pub fn with_content_type(mut self, content_type: &str) -> Result<Self, MetadataError> {
        let bytes = content_type.len();
        if bytes > CONTENT_TYPE_BYTES_MAX {
            return Err(MetadataError::ContentType { bytes });
        }
        self.content_type = Some(content_type.into());
        Ok(self)
    }

    /// This metadata with one more label.
    ///
    /// # Errors
    ///
    /// [`MetadataError`] when it is too long, already there, or one too many.
    pub fn with_label(mut self, name: &str, value: &str) -> Result<Self, MetadataError> {
        if name.is_empty() || name.len() > LABEL_NAME_BYTES_MAX {
            return Err(MetadataError::LabelName { bytes: name.len() });
        }
        if value.len() > LABEL_VALUE_BYTES_MAX {
            return Err(MetadataError::LabelValue { bytes: value.len() });
        }
        if self.labels.contains_key(name) {
            return Err(MetadataError::DuplicateLabel);
        }
        if self.labels.len() >= LABELS_MAX {
            return Err(MetadataError::TooManyLabels);
        }
        self.labels.insert(name.into(), value.into());
        Ok(self)
    }

    /// The content type.
    #[must_use]
    pub fn content_type(&self) -> Option<&str> {
        self.content_type.as_deref()
    }

    /// The labels, ordered by name.
    #[must_use]
    pub const fn labels(&self) -> &BTreeMap<String, String> {
        &self.labels
    }

    /// How many bytes it counts towards the size of a commit.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let labels = self
            .labels
            .iter()
            .map(|(name, value)| name.len().saturating_add(value.len()));
        let content_type = self.content_type.as_ref().map_or(0, String::len);
        labels.fold(content_type, usize::saturating_add)
    }
}
