//! Lists of leases, in pages.

use bytes::Bytes;
use highwater::{Error, Snapshot};
use highwater_core::{
    DomainName, ExpectedDestination, Guard, LeaseRecord, LeaseStanding, Malformed, Reason,
};
use highwater_proto::convert::{FromWire, ToWire, parts};
use highwater_proto::v1;
use prost::Message;

use crate::options::{PAGE_OVERHEAD_BYTES, ServeOptions};

/// What one guard adds to a page beside its own encoding: its tag and its length.
const LEASE_FRAMING_BYTES: usize = 8;

/// Most guards that one call looks at.
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
    /// Which guards were listed.
    #[prost(enumeration = "v1::LeaseFilter", tag = "3")]
    filter: i32,
    /// The last guard that was looked at; it can be the empty one.
    #[prost(bytes = "bytes", optional, tag = "4")]
    last: Option<Bytes>,
}

/// Which guards are listed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Filter {
    All,
    Live,
}

/// A list of leases: a token holds for the same only.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct LeaseList {
    destination: ExpectedDestination,
    domain: DomainName,
    filter: Filter,
    page_leases: usize,
    page_bytes: usize,
}

impl Filter {
    fn read(filter: i32) -> Result<Self, Malformed> {
        let what = parts::FILTER;
        match v1::LeaseFilter::try_from(filter).map_err(|_| Malformed::Number { what })? {
            v1::LeaseFilter::Unspecified => Err(Malformed::Missing { what }),
            v1::LeaseFilter::All => Ok(Self::All),
            v1::LeaseFilter::Live => Ok(Self::Live),
        }
    }

    const fn to_wire(self) -> v1::LeaseFilter {
        match self {
            Self::All => v1::LeaseFilter::All,
            Self::Live => v1::LeaseFilter::Live,
        }
    }

    const fn holds(self, standing: Option<LeaseStanding>) -> bool {
        match (self, standing) {
            (Self::All, _) | (Self::Live, Some(LeaseStanding::Live { .. })) => true,
            (Self::Live, Some(LeaseStanding::Lapsed { .. } | LeaseStanding::Retired) | None) => {
                false
            }
        }
    }
}

impl LeaseList {
    /// What a request lists, of this destination.
    pub(crate) fn read(
        request: &v1::ListLeasesRequest,
        destination: ExpectedDestination,
        domain: DomainName,
        options: &ServeOptions,
    ) -> Result<Self, Malformed> {
        let max = options.page_records_max;
        let page_leases = match usize::try_from(request.page_leases) {
            Ok(0) | Err(_) => max,
            Ok(wish) => wish.min(max),
        };
        Ok(Self {
            destination,
            domain,
            filter: Filter::read(request.filter)?,
            page_leases,
            page_bytes: options.page_bytes,
        })
    }

    fn token(&self, last: Option<Bytes>) -> Token {
        Token {
            destination: Some(self.destination.to_wire()),
            domain: self.domain.as_str().into(),
            filter: i32::from(self.filter.to_wire()),
            last,
        }
    }

    /// The guard to go on behind; `None` for an empty token, which begins.
    ///
    /// # Errors
    ///
    /// `WrongDestination` for a token of another destination or incarnation; `Malformed` for one of
    /// another list, or none at all.
    pub(crate) fn resume(&self, token: Bytes) -> Result<Option<Guard>, Reason> {
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
        let last = token.last.ok_or_else(foreign)?;
        Guard::from_wire(last).map(Some).map_err(|_| foreign())
    }

    /// The page behind a guard, read from the store. Blocks while the store reads.
    pub(crate) fn page(
        &self,
        snapshot: &Snapshot,
        after: Option<Guard>,
    ) -> Result<v1::ListLeasesResponse, Error> {
        let epoch = snapshot.domain(&self.domain)?.epochs.current().epoch;
        let clock = snapshot.lease_clock()?;
        let page = snapshot.leases(&self.domain, after.as_ref(), LOOKED_AT_MAX)?;
        let mut more = page.more;
        let mut last = after;
        let mut leases = Vec::new();
        let mut bytes = PAGE_OVERHEAD_BYTES;
        for (guard, record) in page.leases {
            let standing = record.standing(&epoch, &clock);
            if self.filter.holds(standing) {
                let wire = listed(&guard, &record, standing);
                bytes = bytes
                    .saturating_add(wire.encoded_len())
                    .saturating_add(LEASE_FRAMING_BYTES);
                let full = leases.len() >= self.page_leases || bytes > self.page_bytes;
                if full && !leases.is_empty() {
                    more = true;
                    break;
                }
                leases.push(wire);
            }
            last = Some(guard);
        }
        let last = last.filter(|_| more);
        Ok(v1::ListLeasesResponse {
            revision: page.revision.get(),
            leases,
            page_token: last.map_or_else(Bytes::new, |guard| {
                self.token(Some(guard.to_wire())).encode_to_vec().into()
            }),
        })
    }
}

fn listed(guard: &Guard, record: &LeaseRecord, standing: Option<LeaseStanding>) -> v1::ListedLease {
    v1::ListedLease {
        guard: guard.to_wire(),
        record: Some(record.to_wire()),
        standing: standing.as_ref().map(ToWire::to_wire),
    }
}

#[cfg(test)]
mod tests {
    use highwater_core::{DestinationId, Incarnation, IncarnationMark, IncarnationNumber};

    use super::*;

    fn list(id: u8, mark: u64, domain: &str, filter: Filter) -> LeaseList {
        let mark = IncarnationMark::new(mark);
        LeaseList {
            destination: ExpectedDestination {
                id: DestinationId::new([id; 16]),
                incarnation: Incarnation::new(IncarnationNumber::FIRST, mark),
            },
            domain: DomainName::new(domain).unwrap(),
            filter,
            page_leases: 10,
            page_bytes: 1 << 20,
        }
    }

    #[test]
    fn a_filter_is_stated_and_known() {
        let what = parts::FILTER;
        assert_eq!(Filter::read(0), Err(Malformed::Missing { what }));
        assert_eq!(Filter::read(1), Ok(Filter::All));
        assert_eq!(Filter::read(2), Ok(Filter::Live));
        for unknown in [3, -1] {
            assert_eq!(Filter::read(unknown), Err(Malformed::Number { what }));
        }
    }

    #[test]
    fn a_token_holds_for_its_own_list_only() {
        let lists = [
            list(1, 1, "d", Filter::All),
            list(2, 1, "d", Filter::All),
            list(1, 2, "d", Filter::All),
            list(1, 1, "e", Filter::All),
            list(1, 1, "d", Filter::Live),
        ];
        for last in [&b"g\xff"[..], b""] {
            let last = Guard::new(last).unwrap();
            for (at, of) in lists.iter().enumerate() {
                let token: Bytes = of.token(Some(last.to_wire())).encode_to_vec().into();
                for (other, list) in lists.iter().enumerate() {
                    let resumed = list.resume(token.clone());
                    if at == other {
                        assert_eq!(resumed, Ok(Some(last.clone())));
                    } else if of.destination == list.destination {
                        assert!(matches!(resumed, Err(Reason::Malformed(_))), "{at} {other}");
                    } else {
                        assert_eq!(resumed, Err(Reason::WrongDestination), "{at} {other}");
                    }
                }
            }
        }
    }

    #[test]
    fn what_is_no_token_is_malformed() {
        let list = list(1, 1, "d", Filter::Live);
        assert_eq!(list.resume(Bytes::new()), Ok(None));
        let last = Guard::new("g").unwrap();
        let token: Bytes = list.token(Some(last.to_wire())).encode_to_vec().into();
        for length in 1..token.len() {
            let cut = list.resume(token.slice(..length));
            assert!(matches!(cut, Err(Reason::Malformed(_))), "{length}");
        }
        let none = list.token(None).encode_to_vec();
        assert!(matches!(
            list.resume(none.into()),
            Err(Reason::Malformed(_))
        ));
    }
}
