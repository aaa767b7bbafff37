//! Page tokens: where a listing goes on, and what it was a listing of.

use bytes::Bytes;
use highwater_core::{DomainName, ExpectedDestination, Key, Malformed, Reason};
use highwater_proto::convert::{FromWire, ToWire, parts};
use highwater_proto::v1;
use prost::Message;

use crate::pages::Keys;

/// What a token holds. Clients take it as opaque; it gives no right that its request hasn't.
#[derive(Clone, PartialEq, Message)]
struct Token {
    /// The destination that gave it.
    #[prost(message, optional, tag = "1")]
    destination: Option<v1::Destination>,
    /// The domain that was listed.
    #[prost(string, tag = "2")]
    domain: String,
    /// The guard that was listed.
    #[prost(bytes = "bytes", optional, tag = "3")]
    guard: Option<Bytes>,
    /// The range that was listed.
    #[prost(message, optional, tag = "4")]
    range: Option<v1::KeyRange>,
    /// The first key that wasn't sent.
    #[prost(bytes = "bytes", tag = "5")]
    next: Bytes,
}

/// What a listing is of: a token holds for the same only.
#[derive(Clone, Debug)]
pub(crate) struct Listing {
    /// The destination.
    pub(crate) destination: ExpectedDestination,
    /// The domain.
    pub(crate) domain: DomainName,
    /// The keys.
    pub(crate) keys: Keys,
}

impl Listing {
    fn token(&self, next: Bytes) -> Token {
        let (guard, range) = match &self.keys {
            Keys::Guard(guard) => (Some(guard.to_wire()), None),
            Keys::Range(range) => (None, Some(range.to_wire())),
        };
        Token {
            destination: Some(self.destination.to_wire()),
            domain: self.domain.as_str().into(),
            guard,
            range,
            next,
        }
    }

    /// The token to go on with this key.
    pub(crate) fn token_of(&self, next: &Key) -> Bytes {
        self.token(next.to_wire()).encode_to_vec().into()
    }

    /// The key to go on with; `None` for an empty token, which begins.
    ///
    /// # Errors
    ///
    /// `WrongDestination` for a token of another destination or incarnation; `Malformed` for one of
    /// another listing, or none at all.
    pub(crate) fn resume(&self, token: Bytes) -> Result<Option<Key>, Reason> {
        if token.is_empty() {
            return Ok(None);
        }
        let foreign = || {
            Reason::Malformed(Malformed::Number {
                what: parts::PAGE_TOKEN,
            })
        };
        let token = Token::decode(token).map_err(|_| foreign())?;
        let expected = self.token(token.next.clone());
        let is_ours = token.destination == expected.destination;
        let destination = token
            .destination
            .clone()
            .map(ExpectedDestination::from_wire);
        match destination {
            Some(Ok(_)) if !is_ours => return Err(Reason::WrongDestination),
            Some(Ok(_)) if token == expected => {}
            Some(_) | None => return Err(foreign()),
        }
        Key::from_wire(token.next).map(Some).map_err(|_| foreign())
    }
}

#[cfg(test)]
mod tests {
    use highwater_core::{
        DestinationId, Guard, Incarnation, IncarnationMark, IncarnationNumber, KeyRange,
    };

    use super::*;

    fn listing(id: u8, mark: u64, domain: &str, keys: Keys) -> Listing {
        let mark = IncarnationMark::new(mark);
        Listing {
            destination: ExpectedDestination {
                id: DestinationId::new([id; 16]),
                incarnation: Incarnation::new(IncarnationNumber::FIRST, mark),
            },
            domain: DomainName::new(domain).unwrap(),
            keys,
        }
    }

    fn range(end: Option<&[u8]>) -> Keys {
        Keys::Range(KeyRange::between(b"a".to_vec(), end.map(<[u8]>::to_vec)))
    }

    #[test]
    fn a_token_holds_for_its_own_listing_only() {
        let guard = |name: &[u8]| Keys::Guard(Guard::new(name).unwrap());
        let listings = [
            listing(1, 1, "d", range(None)),
            listing(2, 1, "d", range(None)),
            listing(1, 2, "d", range(None)),
            listing(1, 1, "e", range(None)),
            listing(1, 1, "d", range(Some(b""))),
            listing(1, 1, "d", range(Some(b"b"))),
            listing(1, 1, "d", guard(b"")),
            listing(1, 1, "d", guard(b"a")),
        ];
        let key = Key::new(b"k\xff").unwrap();
        for (at, of) in listings.iter().enumerate() {
            let token = of.token_of(&key);
            for (other, listing) in listings.iter().enumerate() {
                let resumed = listing.resume(token.clone());
                if at == other {
                    assert_eq!(resumed, Ok(Some(key.clone())));
                } else if of.destination == listing.destination {
                    assert!(matches!(resumed, Err(Reason::Malformed(_))), "{at} {other}");
                } else {
                    assert_eq!(resumed, Err(Reason::WrongDestination), "{at} {other}");
                }
            }
        }
    }

    #[test]
    fn what_is_no_token_is_malformed() {
        let listing = listing(1, 1, "d", range(None));
        assert_eq!(listing.resume(Bytes::new()), Ok(None));
        let token = listing.token_of(&Key::new(b"k").unwrap());
        for length in 1..token.len() {
            let cut = listing.resume(token.slice(..length));
            assert!(matches!(cut, Err(Reason::Malformed(_))), "{length}");
        }
        let empty = listing.token(Bytes::new()).encode_to_vec();
        assert!(matches!(
            listing.resume(empty.into()),
            Err(Reason::Malformed(_))
        ));
    }
}
