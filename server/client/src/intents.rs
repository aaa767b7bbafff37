//! Looking at intents: one with all that is stored of it, and lists in brief.

use bytes::Bytes;
use highwater_core::{DomainName, IntentId, IntentRecord, IntentSummary, Malformed, Revision};
use highwater_proto::convert::{FromWire, ToWire, optional};
use highwater_proto::v1;

use crate::client::Client;
use crate::error::ClientError;

/// What a look at one intent found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundIntent {
    /// The revision that was read.
    pub revision: Revision,
    /// What is stored of it; `None` if nothing is. That nothing is says that it took no effect only
    /// where nobody can still send it: raise its guard's fence first, then look.
    pub record: Option<IntentRecord>,
}

/// Which intents are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntentFilter {
    /// All of them.
    All,
    /// Those that take their next step.
    Open,
    /// Those of which nobody knows what became of them.
    Indeterminate {
        /// Only those whose time of review is before this one, in milliseconds since 1970; `None`
        /// for every one.
        due_before_ms: Option<u64>,
    },
    /// Those that have ended.
    Ended,
}

/// A part of a list of intents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IntentPage {
    /// The revision that was read.
    pub revision: Revision,
    /// The intents in brief, ordered by id. They can be none though there is a token: the server
    /// looks at a bounded number for one page.
    pub intents: Vec<(IntentId, IntentSummary)>,
    /// Where the same list goes on; `None` on the last page.
    pub token: Option<Bytes>,
}

impl IntentFilter {
    /// How a request says it: the filter, and the time before which intents have to be due.
    #[must_use]
    pub const fn to_wire(self) -> (v1::IntentFilter, Option<u64>) {
        match self {
            Self::All => (v1::IntentFilter::All, None),
            Self::Open => (v1::IntentFilter::Open, None),
            Self::Indeterminate { due_before_ms } => {
                (v1::IntentFilter::Indeterminate, due_before_ms)
            }
            Self::Ended => (v1::IntentFilter::Ended, None),
        }
    }
}

impl FromWire<v1::GetIntentResponse> for FoundIntent {
    fn from_wire(wire: v1::GetIntentResponse) -> Result<Self, Malformed> {
        Ok(Self {
            revision: Revision::from_wire(wire.revision)?,
            record: optional(wire.intent)?,
        })
    }
}

impl FromWire<v1::ListIntentsResponse> for IntentPage {
    fn from_wire(wire: v1::ListIntentsResponse) -> Result<Self, Malformed> {
        let intents = wire.intents.into_iter().map(FromWire::from_wire);
        Ok(Self {
            revision: Revision::from_wire(wire.revision)?,
            intents: intents.collect::<Result<_, _>>()?,
            token: (!wire.page_token.is_empty()).then_some(wire.page_token),
        })
    }
}

impl Client {
    /// What is stored of an intent, with the receipts of its steps.
    ///
    /// # Errors
    ///
    /// [`ClientError`] as of any read.
    pub async fn intent(
        &self,
        domain: &DomainName,
        id: &IntentId,
    ) -> Result<FoundIntent, ClientError> {
        let message = v1::GetIntentRequest {
            destination: self.named(),
            domain: domain.as_str().into(),
            id: id.to_wire(),
        };
        let answer = self.read(message, async |mut rpc, request| {
            rpc.get_intent(request).await
        });
        Ok(FoundIntent::from_wire(answer.await?)?)
    }

    /// A page of the intents of a domain. `token` goes on where an earlier page of the same list
    /// ended, at a newer revision.
    ///
    /// # Errors
    ///
    /// [`ClientError`] as of any read.
    ///
    /// # Example
    ///
    /// ```no_run
    /// use highwater_client::{Client, ClientError, IntentFilter};
    /// use highwater_core::DomainName;
    ///
    /// # async fn run(client: Client, domain: DomainName, now_ms: u64) -> Result<(), ClientError> {
    /// let due_before_ms = Some(now_ms);
    /// let (overdue, mut token) = (IntentFilter::Indeterminate { due_before_ms }, None);
    /// loop {
    ///     let page = client.intents(&domain, overdue, token).await?;
    ///     for (id, intent) in page.intents {
    ///         println!("{id} is {}", intent.state);
    ///     }
    ///     token = page.token;
    ///     if token.is_none() {
    ///         return Ok(());
    ///     }
    /// }
    /// # }
    /// ```
    pub async fn intents(
        &self,
        domain: &DomainName,
        filter: IntentFilter,
        token: Option<Bytes>,
    ) -> Result<IntentPage, ClientError> {
        let (filter, due_before_ms) = filter.to_wire();
        let message = v1::ListIntentsRequest {
            destination: self.named(),
            domain: domain.as_str().into(),
            filter: i32::from(filter),
            due_before_ms,
            page_intents: 0,
            page_token: token.unwrap_or_default(),
        };
        let answer = self.read(message, async |mut rpc, request| {
            rpc.list_intents(request).await
        });
        Ok(IntentPage::from_wire(answer.await?)?)
    }
}
