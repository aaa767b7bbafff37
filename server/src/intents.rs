//! Looking at intents: one with all that is stored of it, and lists in brief.

use bytes::Bytes;
use highwater::{Error, Snapshot};
use highwater_core::{
    DomainName, ExpectedDestination, IntentId, IntentRecord, IntentState, Malformed, Reason,
};
use highwater_proto::convert::{FromWire, ToWire, parts};
use highwater_proto::v1;
use prost::Message;

use crate::options::{PAGE_OVERHEAD_BYTES, ServeOptions};

/// What one intent adds to a page beside its own encoding: its tag and its length.
const INTENT_FRAMING_BYTES: usize = 8;

/// Most intents that one call looks at.
const LOOKED_AT_MAX: usize = 4_096;

/// What a token holds. Clients take it as opaque; it gives no right that its request hasn't.
#[derive(Clone, PartialEq, Message)]
struct Token {
    /// The destination that gave it.
    #[prost(message, optional, tag = "1")]
    destination: Option<v1::Destination>,
    /// The domain that was listed.
    #[prost(string, tag = "2")]
    domain: String,
    /// Which intents were listed.
    #[prost(enumeration = "v1::IntentFilter", tag = "3")]
    filter: i32,
    /// Before which time they had to be due.
    #[prost(uint64, optional, tag = "4")]
    due_before_ms: Option<u64>,
    /// The last intent that was looked at.
    #[prost(bytes = "bytes", tag = "5")]
    last: Bytes,
}

/// Which intents are listed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Filter {
    All,
    Open,
    Indeterminate { due_before_ms: Option<u64> },
    Ended,
}

/// A list of intents: a token holds for the same only.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct IntentList {
    destination: ExpectedDestination,
    domain: DomainName,
    filter: Filter,
    page_intents: usize,
    page_bytes: usize,
}

impl Filter {
    fn read(filter: i32, due_before_ms: Option<u64>) -> Result<Self, Malformed> {
        let what = parts::FILTER;
        let wrong = Malformed::Number { what };
        let filter = v1::IntentFilter::try_from(filter).map_err(|_| wrong.clone())?;
        match (filter, due_before_ms) {
            (v1::IntentFilter::Unspecified, _) => Err(Malformed::Missing { what }),
            (v1::IntentFilter::All, None) => Ok(Self::All),
            (v1::IntentFilter::Open, None) => Ok(Self::Open),
            (v1::IntentFilter::Ended, None) => Ok(Self::Ended),
            (v1::IntentFilter::Indeterminate, due_before_ms) => {
                Ok(Self::Indeterminate { due_before_ms })
            }
            (v1::IntentFilter::All | v1::IntentFilter::Open | v1::IntentFilter::Ended, Some(_)) => {
                Err(wrong)
            }
        }
    }

    const fn to_wire(self) -> (v1::IntentFilter, Option<u64>) {
        match self {
            Self::All => (v1::IntentFilter::All, None),
            Self::Open => (v1::IntentFilter::Open, None),
            Self::Indeterminate { due_before_ms } => {
                (v1::IntentFilter::Indeterminate, due_before_ms)
            }
            Self::Ended => (v1::IntentFilter::Ended, None),
        }
    }

    fn holds(self, state: &IntentState) -> bool {
        match (self, state) {
            (Self::All, _)
            | (Self::Open, IntentState::Open)
            | (Self::Ended, IntentState::Ended(_)) => true,
            (
                Self::Indeterminate { due_before_ms },
                IntentState::Indeterminate { review_at_ms, .. },
            ) => due_before_ms.is_none_or(|due| *review_at_ms < due),
            (
                Self::Open | Self::Indeterminate { .. } | Self::Ended,
                IntentState::Open | IntentState::Indeterminate { .. } | IntentState::Ended(_),
            ) => false,
        }
    }
}

impl IntentList {
    /// What a request lists, of this destination.
    pub(crate) fn read(
        request: &v1::ListIntentsRequest,
        destination: ExpectedDestination,
        domain: DomainName,
        options: &ServeOptions,
    ) -> Result<Self, Malformed> {
        let max = options.page_records_max;
        let page_intents = match usize::try_from(request.page_intents) {
            Ok(0) | Err(_) => max,
            Ok(wish) => wish.min(max),
        };
        Ok(Self {
            destination,
            domain,
            filter: Filter::read(request.filter, request.due_before_ms)?,
            page_intents,
            page_bytes: options.page_bytes,
        })
    }

    fn token(&self, last: Bytes) -> Token {
        let (filter, due_before_ms) = self.filter.to_wire();
        Token {
            destination: Some(self.destination.to_wire()),
            domain: self.domain.as_str().into(),
            filter: i32::from(filter),
            due_before_ms,
            last,
        }
    }

    /// The intent to go on behind; `None` for an empty token, which begins.
    ///
    /// # Errors
    ///
    /// `WrongDestination` for a token of another destination or incarnation; `Malformed` for one of
    /// another list, or none at all.
    pub(crate) fn resume(&self, token: Bytes) -> Result<Option<IntentId>, Reason> {
        if token.is_empty() {
            return Ok(None);
        }
        let foreign = || {
            Reason::Malformed(Malformed::Number {
                what: parts::PAGE_TOKEN,
            })
        };
        let token = Token::decode(token).map_err(|_| foreign())?;
        let expected = self.token(token.last.clone());
        let destination = token.destination.clone();
        match destination.map(ExpectedDestination::from_wire) {
            Some(Ok(_)) if token.destination != expected.destination => {
                return Err(Reason::WrongDestination);
            }
            Some(Ok(_)) if token == expected => {}
            Some(_) | None => return Err(foreign()),
        }
        IntentId::from_wire(token.last)
            .map(Some)
            .map_err(|_| foreign())
    }

    /// The page behind an intent, read from the store. Blocks while the store reads.
    pub(crate) fn page(
        &self,
        snapshot: &Snapshot,
        after: Option<IntentId>,
    ) -> Result<v1::ListIntentsResponse, Error> {
        let page = snapshot.intents(&self.domain, after.as_ref(), LOOKED_AT_MAX)?;
        let mut more = page.more;
        let mut last = after;
        let mut intents = Vec::new();
        let mut bytes = PAGE_OVERHEAD_BYTES;
        for (id, record) in page.intents {
            if self.filter.holds(&record.state) {
                let wire = listed(&id, &record);
                bytes = bytes
                    .saturating_add(wire.encoded_len())
                    .saturating_add(INTENT_FRAMING_BYTES);
                let full = intents.len() >= self.page_intents || bytes > self.page_bytes;
                if full && !intents.is_empty() {
                    more = true;
                    break;
                }
                intents.push(wire);
            }
            last = Some(id);
        }
        let last = last.filter(|_| more);
        Ok(v1::ListIntentsResponse {
            revision: page.revision.get(),
            intents,
            page_token: last.map_or_else(Bytes::new, |id| {
                self.token(id.to_wire()).encode_to_vec().into()
            }),
        })
    }
}

fn listed(id: &IntentId, record: &IntentRecord) -> v1::ListedIntent {
    v1::ListedIntent {
        id: id.to_wire(),
        summary: Some(record.summary().to_wire()),
    }
}

#[cfg(test)]
mod tests;
