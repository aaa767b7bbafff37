//! The codec of the calls. It counts the parts of a request before it decodes them: an empty part
//! is two bytes on the wire and a hundred times that in memory, so a bound on bytes is none on
//! memory.

use std::marker::PhantomData;

use bytes::Buf;
use prost::Message;
use tonic::codec::{Codec, DecodeBuf, Decoder};
use tonic::{Code, Status};
use tonic_prost::{ProstDecoder, ProstEncoder};

use crate::status::not_executed;
use crate::v1;

/// Most parts of one request: commits, mutations, conditions, labels, authorities and guards, all
/// together. The largest commit has about half as many.
pub(crate) const PARTS_MAX: usize = 128 << 10;

/// The fields of a message that matter for counting: those that repeat, and the way to them.
pub(crate) struct Shape(&'static [(u64, &'static Shape)]);

const LEAF: Shape = Shape(&[]);
const METADATA: Shape = Shape(&[(2, &LEAF)]);
const PUT: Shape = Shape(&[(3, &METADATA)]);
const SET_METADATA: Shape = Shape(&[(2, &METADATA)]);
const MUTATION: Shape = Shape(&[(1, &PUT), (3, &SET_METADATA)]);
const AUTHORITIES: Shape = Shape(&[(1, &LEAF)]);
const COMMIT: Shape = Shape(&[(4, &AUTHORITIES), (5, &LEAF), (6, &MUTATION)]);
const WITH_COMMIT: Shape = Shape(&[(1, &COMMIT)]);
const STREAMED: Shape = Shape(&[(2, &COMMIT)]);
const STREAM: Shape = Shape(&[(1, &STREAMED)]);
const READ_GUARD: Shape = Shape(&[(2, &LEAF)]);
const GET: Shape = Shape(&[(4, &READ_GUARD)]);
const SCAN: Shape = Shape(&[(9, &READ_GUARD)]);

/// A message that the codec can take.
pub(crate) trait Shaped {
    /// What of it repeats. Answers come from a server that keeps its own bounds: nothing.
    const SHAPE: Shape = LEAF;
}

macro_rules! shaped {
    ($($name:ident $(= $shape:ident)?),* $(,)?) => {
        $(impl Shaped for v1::$name { $(const SHAPE: Shape = $shape;)? })*
    };
}

shaped!(
    CommitRequest = WITH_COMMIT,
    JudgeRequest = WITH_COMMIT,
    CommitStreamRequest = STREAM,
    GetRequest = GET,
    ScanRequest = SCAN,
    CreateDomainRequest,
    GetDomainRequest,
    ListDomainsRequest,
    WatchRequest,
    GetFenceRequest,
    AdvanceFenceRequest,
    TakeOverRequest,
    StatusRequest,
    CreateDomainResponse,
    GetDomainResponse,
    ListDomainsResponse,
    CommitResponse,
    CommitStreamResponse,
    JudgeResponse,
    GetResponse,
    ScanResponse,
    WatchResponse,
    GetFenceResponse,
    AdvanceFenceResponse,
    TakeOverResponse,
    StatusResponse,
);

/// How many counted parts the message has, up to one more than `max`. What isn't well formed ends
/// the count: decoding ends there, too.
fn parts(mut bytes: &[u8], shape: &Shape, max: usize) -> usize {
    let mut count = 0_usize;
    while count <= max && bytes.has_remaining() {
        let Some((field, content)) = next_field(&mut bytes) else {
            break;
        };
        let known = shape.0.iter().find(|(number, _)| *number == field);
        if let (Some((_, inner)), Some(content)) = (known, content) {
            count += 1;
            count += parts(content, inner, max.saturating_sub(count));
        }
    }
    count
}

/// Takes one field: its number, and its content where it has a length. `None` for what can't be
/// read, groups among it: no message has any.
fn next_field<'a>(bytes: &mut &'a [u8]) -> Option<(u64, Option<&'a [u8]>)> {
    let tag = varint(bytes)?;
    let fixed = match tag & 7 {
        0 => {
            varint(bytes)?;
            0
        }
        1 => 8,
        5 => 4,
        2 => {
            let length = usize::try_from(varint(bytes)?).ok()?;
            let (content, rest) = bytes.split_at_checked(length)?;
            *bytes = rest;
            return Some((tag >> 3, Some(content)));
        }
        _ => return None,
    };
    *bytes = bytes.get(fixed..)?;
    Some((tag >> 3, None))
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    prost::encoding::decode_varint(bytes).ok()
}

/// Encodes as Protobuf, and decodes what has no more than [`PARTS_MAX`] parts.
#[derive(Debug)]
pub(crate) struct BoundedCodec<T, U>(PhantomData<(T, U)>);

impl<T, U> Default for BoundedCodec<T, U> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

/// The deciding half of [`BoundedCodec`].
#[derive(Debug)]
pub(crate) struct BoundedDecoder<U>(ProstDecoder<U>);

impl<T, U> Codec for BoundedCodec<T, U>
where
    T: Message + Send + 'static,
    U: Message + Default + Shaped + Send + 'static,
{
    type Encode = T;
    type Decode = U;
    type Encoder = ProstEncoder<T>;
    type Decoder = BoundedDecoder<U>;

    fn encoder(&mut self) -> Self::Encoder {
        ProstEncoder::default()
    }

    fn decoder(&mut self) -> Self::Decoder {
        BoundedDecoder(ProstDecoder::default())
    }
}

impl<U: Message + Default + Shaped> Decoder for BoundedDecoder<U> {
    type Item = U;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<U>, Status> {
        // A message lies in one piece; were it not to, nothing could be said of it.
        let is_whole = buffer.chunk().len() == buffer.remaining();
        if !is_whole || parts(buffer.chunk(), &U::SHAPE, PARTS_MAX) > PARTS_MAX {
            let message = format!("a message has at most {PARTS_MAX} parts, all commits together");
            return Err(not_executed(Code::ResourceExhausted, &message));
        }
        self.0.decode(buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commit(mutations: usize, labels: usize) -> v1::Commit {
        let labels = (0..labels).map(|number| (number.to_string(), String::new()));
        let metadata = v1::Metadata {
            labels: labels.collect(),
            ..v1::Metadata::default()
        };
        let put = v1::Put {
            // What a value looks like doesn't matter.
            value: vec![0x0A, 0, 0x32, 0].into(),
            metadata: Some(metadata),
            ..v1::Put::default()
        };
        let kind = Some(v1::mutation::Kind::Put(put));
        v1::Commit {
            mutations: vec![v1::Mutation { kind }; mutations],
            conditions: vec![v1::Condition::default(); 5],
            ..v1::Commit::default()
        }
    }

    fn of_stream(commits: usize, mutations: usize, labels: usize) -> Vec<u8> {
        let one = v1::StreamedCommit {
            id: 7,
            commit: Some(commit(mutations, labels)),
        };
        let commits = vec![one; commits];
        v1::CommitStreamRequest { commits }.encode_to_vec()
    }

    #[test]
    fn every_part_counts_once_and_nothing_else_does() {
        // Of each: the streamed commit, the commit, conditions, and per mutation itself, the put,
        // its metadata and the labels.
        let expected = 3 * (1 + 1 + 5 + 4 * (3 + 2));
        let bytes = of_stream(3, 4, 2);
        assert_eq!(parts(&bytes, &STREAM, PARTS_MAX), expected);
        assert_eq!(parts(&bytes, &LEAF, PARTS_MAX), 0);
        assert_eq!(parts(&bytes, &STREAM, 10), 11, "it stops behind the bound");
    }

    #[test]
    fn the_largest_commit_has_fewer_parts_than_the_bound() {
        let bytes = of_stream(1, 1_024, 64);
        assert!(parts(&bytes, &STREAM, PARTS_MAX) + 2 * 1_024 < PARTS_MAX);
    }

    #[test]
    fn what_cannot_be_read_ends_the_count() {
        let bytes = of_stream(3, 4, 2);
        for end in 0..bytes.len() {
            assert!(parts(&bytes[..end], &STREAM, PARTS_MAX) <= 3 * 27);
        }
        assert_eq!(parts(&[0x0B; 100], &STREAM, PARTS_MAX), 0, "groups");
        assert_eq!(parts(&[0xFF; 100], &STREAM, PARTS_MAX), 0, "no varint");
    }
}
