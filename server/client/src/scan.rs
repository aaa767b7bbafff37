//! Scans and take-overs: pages of one revision.

use bytes::Bytes;
use highwater_core::{Guard, Key, KeyRange, Malformed, Prefix, Receipt, Record, Revision};
use highwater_proto::convert::{FromWire, ToWire, optional, parts, required};
use highwater_proto::v1;
use tonic::{Status, Streaming};

use crate::error::ClientError;
use crate::reconcile::{IntentOutcome, outcomes};

/// Which keys are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScanKeys {
    /// Those of a range.
    Range(KeyRange),
    /// Those that begin with a prefix.
    Prefix(Prefix),
    /// Those that a guard covers.
    Guard(Guard),
}

impl ScanKeys {
    pub(crate) fn to_wire(&self) -> v1::scan_request::Keys {
        match self {
            Self::Range(range) => v1::scan_request::Keys::Range(range.to_wire()),
            Self::Prefix(prefix) => v1::scan_request::Keys::Prefix(prefix.to_wire()),
            Self::Guard(guard) => v1::scan_request::Keys::Guard(guard.to_wire()),
        }
    }
}

/// A part of an ordered listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordPage {
    /// The revision that was read.
    pub revision: Revision,
    /// The records, ordered by key.
    pub records: Vec<(Key, Record)>,
    /// Where another scan of the same keys can go on; `None` on the last page.
    pub token: Option<Bytes>,
}

impl FromWire<v1::ScanResponse> for RecordPage {
    fn from_wire(wire: v1::ScanResponse) -> Result<Self, Malformed> {
        let records = wire.records.into_iter().map(FromWire::from_wire);
        Ok(Self {
            revision: Revision::from_wire(wire.revision)?,
            records: records.collect::<Result<_, _>>()?,
            token: (!wire.page_token.is_empty()).then_some(wire.page_token),
        })
    }
}

/// A scan under way.
#[derive(Debug)]
pub struct Scan(Streaming<v1::ScanResponse>);

impl Scan {
    pub(crate) const fn new(answers: Streaming<v1::ScanResponse>) -> Self {
        Self(answers)
    }

    /// The next page; `None` behind the last. All pages show the same revision.
    ///
    /// # Errors
    ///
    /// [`ClientError::ReadFailed`] when the scan broke; the last page's token goes on from there,
    /// at a newer revision.
    pub async fn next(&mut self) -> Result<Option<RecordPage>, ClientError> {
        let page = self.0.message().await.map_err(ClientError::of_read)?;
        Ok(page.map(RecordPage::from_wire).transpose()?)
    }
}

/// A take-over: the fence is raised, and the guard's records are being read.
#[derive(Debug)]
pub struct TakeOver {
    receipt: Receipt,
    acquired: Option<Receipt>,
    found: Vec<IntentOutcome>,
    first: Option<RecordPage>,
    answers: Streaming<v1::TakeOverResponse>,
}

impl TakeOver {
    pub(crate) async fn begin(
        mut answers: Streaming<v1::TakeOverResponse>,
    ) -> Result<Self, ClientError> {
        let first = answers.message().await.map_err(ClientError::of_write)?;
        let first = first.ok_or_else(|| {
            let cause = Status::data_loss("the take-over ended without an answer");
            ClientError::OutcomeUnknown {
                cause: Some(Box::new(cause)),
            }
        })?;
        let receipt = required(first.receipt, parts::RECEIPT)?;
        Ok(Self {
            receipt,
            acquired: optional(first.acquired)?,
            found: outcomes(first.found)?,
            first: optional(first.page)?,
            answers,
        })
    }

    /// The receipt of the lease that was acquired for it; `None` where an authority was given.
    #[must_use]
    pub const fn acquired(&self) -> Option<&Receipt> {
        self.acquired.as_ref()
    }

    /// What is known of the intents that were asked about, in that order, in brief.
    #[must_use]
    pub fn found(&self) -> &[IntentOutcome] {
        &self.found
    }

    /// What the destination states about the raised fence.
    #[must_use]
    pub const fn receipt(&self) -> &Receipt {
        &self.receipt
    }

    /// The next page of the guard's records; `None` behind the last. All show the same revision,
    /// at which the fence was this session's.
    ///
    /// # Errors
    ///
    /// As [`Scan::next`]. The fence stays raised.
    pub async fn next(&mut self) -> Result<Option<RecordPage>, ClientError> {
        if let Some(first) = self.first.take() {
            return Ok(Some(first));
        }
        match self.answers.message().await.map_err(ClientError::of_read)? {
            None => Ok(None),
            Some(answer) => Ok(Some(required(answer.page, parts::PAGE)?)),
        }
    }
}
