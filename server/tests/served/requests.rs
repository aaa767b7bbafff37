//! Requests that can't be read, or say more than the server knows: refused as not executed.

use bytes::{Buf, BufMut, Bytes};
use highwater_client::{ClientError, NotSent};
use highwater_core::{Commit, Policy};
use highwater_proto::convert::ToWire;
use highwater_proto::{status, v1};
use prost::Message;
use tonic::body::Body;
use tonic::client::{Grpc, GrpcService};
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::codegen::http;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};

use crate::harness::{Served, jobs, key, options, value};

/// Sends and receives bytes as they are.
#[derive(Clone, Copy, Default)]
struct Raw;

impl Codec for Raw {
    type Encode = Vec<u8>;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for Raw {
    type Item = Vec<u8>;
    type Error = Status;

    fn encode(&mut self, item: Vec<u8>, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.put_slice(&item);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(buffer.copy_to_bytes(buffer.remaining())))
    }
}

async fn channel(served: &Served) -> Channel {
    let address = format!("http://{}", served.address);
    Endpoint::from_shared(address)
        .unwrap()
        .connect()
        .await
        .unwrap()
}

/// The first answer to messages that are sent as they are.
async fn send(channel: &Channel, method: &str, messages: Vec<Vec<u8>>) -> Result<Bytes, Status> {
    let mut calls = Grpc::new(channel.clone());
    calls.ready().await.unwrap();
    let path = format!("/highwater.v1.Highwater/{method}");
    let request = Request::new(tokio_stream::iter(messages));
    let answers = calls.streaming(request, path.parse().unwrap(), Raw).await?;
    let first = answers.into_inner().message().await?;
    Ok(first.expect("a call ends with an answer or a status"))
}

/// That a status is the server's word that nothing was done because of the request.
fn assert_refused(refused: &Status, about: &str) {
    assert_eq!(
        refused.code(),
        Code::InvalidArgument,
        "{about}: {refused:?}"
    );
    assert!(status::is_not_executed(refused), "{about}: {refused:?}");
    let error = ClientError::of_write(refused.clone());
    assert!(
        matches!(error, ClientError::NotSent(NotSent::Refused(_))),
        "{about}: {error:?}"
    );
}

fn put(served: &Served) -> v1::Commit {
    let commit = Commit::new(jobs()).under(served.authority(7, "w"));
    commit.put(key("j/r"), value("v")).to_wire()
}

fn reconcile(served: &Served) -> v1::ReconcileRequest {
    v1::ReconcileRequest {
        domain: "jobs".into(),
        intents: vec!["i".into()],
        fence: Some(v1::GuardAuthority {
            guard: "j".into(),
            authority: Some(served.authority(7, "w").to_wire()),
        }),
        ..v1::ReconcileRequest::default()
    }
}

fn acquire() -> v1::AcquireRequest {
    v1::AcquireRequest {
        domain: "jobs".into(),
        guard: "l".into(),
        holder: "w".into(),
        ttl_ms: 60_000,
        ..v1::AcquireRequest::default()
    }
}

/// A request of every kind that carries an authority or asks for an effect, by its method; each
/// would be answered without a refusal.
fn requests(served: &Served) -> Vec<(&'static str, Vec<u8>)> {
    let commit = Some(put(served));
    let authority = Some(served.authority(7, "w").to_wire());
    let streamed = v1::StreamedCommit {
        id: 1,
        commit: commit.clone(),
    };
    let advance = v1::AdvanceFenceRequest {
        domain: "jobs".into(),
        guard: "j".into(),
        authority: authority.clone(),
        ..v1::AdvanceFenceRequest::default()
    };
    let take_over = v1::TakeOverRequest {
        domain: "jobs".into(),
        guard: "j".into(),
        by: authority.clone().map(v1::take_over_request::By::Authority),
        ..v1::TakeOverRequest::default()
    };
    let create = v1::CreateDomainRequest {
        name: "more".into(),
        policy: Some(Policy::default().to_wire()),
        ..v1::CreateDomainRequest::default()
    };
    let guard = Some(v1::ReadGuard {
        authority,
        guards: vec!["j".into()],
    });
    let get = v1::GetRequest {
        domain: "jobs".into(),
        key: "j/r".into(),
        guard: guard.clone(),
        ..v1::GetRequest::default()
    };
    let scan = v1::ScanRequest {
        domain: "jobs".into(),
        keys: Some(v1::scan_request::Keys::Guard("j".into())),
        read_guard: guard,
        ..v1::ScanRequest::default()
    };
    vec![
        ("CreateDomain", create.encode_to_vec()),
        (
            "Judge",
            v1::JudgeRequest {
                commit: commit.clone(),
            }
            .encode_to_vec(),
        ),
        ("Commit", v1::CommitRequest { commit }.encode_to_vec()),
        (
            "CommitStream",
            v1::CommitStreamRequest {
                commits: vec![streamed],
            }
            .encode_to_vec(),
        ),
        ("AdvanceFence", advance.encode_to_vec()),
        ("TakeOver", take_over.encode_to_vec()),
        ("Reconcile", reconcile(served).encode_to_vec()),
        ("Acquire", acquire().encode_to_vec()),
        ("Get", get.encode_to_vec()),
        ("Scan", scan.encode_to_vec()),
    ]
}

#[tokio::test]
async fn what_cannot_be_decoded_is_refused_as_not_executed() {
    let served = Served::start(options()).await;
    let channel = channel(&served).await;
    let before = served.store.status().revision;
    for (method, whole) in requests(&served) {
        let first = whole[0];
        let broken = [
            ("cut short", whole[..whole.len() - 1].to_vec()),
            ("a length behind the end", vec![first | 2, 0x7F, 0]),
            ("a number in the place of a message", vec![first & !7, 1]),
            ("an endless number", vec![0xFF; 16]),
            ("a group", vec![first | 3, first | 4]),
            ("no field", vec![0, 0]),
            ("text", b"put jobs".to_vec()),
        ];
        for (how, bytes) in broken {
            let refused = send(&channel, method, vec![bytes]).await.unwrap_err();
            assert_refused(&refused, &format!("{method}: {how}"));
        }
    }
    // Reads, too, though their refusal needs no such word.
    let reads = [
        "GetDomain",
        "ListDomains",
        "Watch",
        "GetFence",
        "GetLease",
        "Status",
    ];
    for method in reads {
        let refused = send(&channel, method, vec![vec![0xFF; 16]]).await;
        assert_refused(&refused.unwrap_err(), method);
    }
    let name = vec![0x12, 1, 0xFF];
    let refused = send(&channel, "CreateDomain", vec![name])
        .await
        .unwrap_err();
    assert_refused(&refused, "a name that isn't UTF-8");
    assert_eq!(served.store.status().revision, before);
    // None of that ended the connection, and what is whole is taken.
    for (method, whole) in requests(&served) {
        send(&channel, method, vec![whole]).await.unwrap();
    }
    served.stop().await.unwrap();
}

#[tokio::test]
async fn a_call_without_its_message_is_refused_as_not_executed() {
    let served = Served::start(options()).await;
    let mut channel = channel(&served).await;
    let frames = [
        ("nothing at all", ""),
        ("half a frame's head", "\0\0\0"),
        ("a frame that ends early", "\0\0\0\0\x09put"),
        (
            "a compressed frame that no header speaks of",
            "\x01\0\0\0\x03put",
        ),
        ("a frame of an unknown kind", "\x07\0\0\0\x03put"),
    ];
    for (how, body) in frames {
        for method in ["Commit", "AdvanceFence", "TakeOver", "CreateDomain"] {
            let request = http::Request::post(format!(
                "http://{}/highwater.v1.Highwater/{method}",
                served.address
            ))
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .body(Body::new(String::from(body)))
            .unwrap();
            std::future::poll_fn(|context| GrpcService::poll_ready(&mut channel, context))
                .await
                .unwrap();
            let answer = GrpcService::call(&mut channel, request).await.unwrap();
            let refused = Status::from_header_map(answer.headers());
            assert_refused(&refused.expect("a status"), &format!("{method}: {how}"));
        }
    }
    let unknown = send(&channel, "Burn", vec![Vec::new()]).await.unwrap_err();
    assert_eq!(unknown.code(), Code::Unimplemented);
    assert!(status::is_not_executed(&unknown), "{unknown:?}");
    served.stop().await.unwrap();
}

#[tokio::test]
async fn a_stream_answers_what_came_before_a_message_that_cannot_be_read() {
    let served = Served::start(options()).await;
    let channel = channel(&served).await;
    let streamed = |id| v1::StreamedCommit {
        id,
        commit: Some(put(&served)),
    };
    let whole = v1::CommitStreamRequest {
        commits: vec![streamed(1), streamed(2)],
    };
    let whole = whole.encode_to_vec();
    // The first of the two commits of the broken message is whole; still, none of it is executed.
    for broken in [whole[..whole.len() - 1].to_vec(), with_unknown(&whole)] {
        let mut calls = Grpc::new(channel.clone());
        calls.ready().await.unwrap();
        let path = "/highwater.v1.Highwater/CommitStream".parse().unwrap();
        let messages = tokio_stream::iter([whole.clone(), broken]);
        let before = served.store.status().revision.get();
        let answers = calls.streaming(Request::new(messages), path, Raw).await;
        let mut answers = answers.unwrap().into_inner();
        let mut verdicts = 0;
        let end = loop {
            match answers.message().await {
                Ok(Some(answer)) => {
                    let answer = v1::CommitStreamResponse::decode(answer).unwrap();
                    verdicts += answer.verdicts.len();
                }
                Ok(None) => panic!("it must end with a status"),
                Err(status) => break status,
            }
        };
        assert_eq!(verdicts, 2);
        assert_refused(&end, "the end of the stream");
        assert_eq!(served.store.status().revision.get(), before + 2);
    }
    served.stop().await.unwrap();
}

/// The same message with a field that nobody knows: number 99, the text "no".
fn with_unknown(message: &[u8]) -> Vec<u8> {
    [message, &[0x9A, 0x06, 2, b'n', b'o']].concat()
}

/// Every variant of a message in which one embedded message, or itself, has an unknown field.
fn with_unknown_somewhere(message: &[u8], depth: usize) -> Vec<Vec<u8>> {
    let mut variants = vec![with_unknown(message)];
    let mut rest = message;
    while depth > 0 && rest.has_remaining() {
        let begin = message.len() - rest.len();
        let tag = prost::encoding::decode_varint(&mut rest).unwrap();
        let length = prost::encoding::decode_varint(&mut rest).unwrap();
        if tag & 7 != 2 {
            continue;
        }
        let (content, behind) = rest.split_at(usize::try_from(length).unwrap());
        rest = behind;
        // What isn't a message looks like one now and then; then it is none with an unknown field.
        if !is_message(content) {
            continue;
        }
        for inner in with_unknown_somewhere(content, depth - 1) {
            let mut variant = message[..begin].to_vec();
            prost::encoding::encode_varint(tag, &mut variant);
            prost::encoding::encode_varint(inner.len() as u64, &mut variant);
            variant.extend([&inner[..], behind].concat());
            variants.push(variant);
        }
    }
    variants
}

/// Whether bytes are fields of numbers and lengths with nothing left over, and aren't text.
fn is_message(mut bytes: &[u8]) -> bool {
    if bytes.is_empty() || bytes.iter().all(u8::is_ascii_graphic) {
        return false;
    }
    while bytes.has_remaining() {
        let Ok(tag) = prost::encoding::decode_varint(&mut bytes) else {
            return false;
        };
        let Ok(number) = prost::encoding::decode_varint(&mut bytes) else {
            return false;
        };
        let skipped = match tag & 7 {
            0 => 0,
            2 => usize::try_from(number).unwrap(),
            _ => return false,
        };
        if skipped > bytes.len() {
            return false;
        }
        bytes.advance(skipped);
    }
    true
}

#[tokio::test]
async fn a_request_that_says_more_than_the_server_knows_is_not_executed() {
    let served = Served::start(options()).await;
    let channel = channel(&served).await;
    let before = served.store.status().revision;
    let mut depths = 0;
    for (method, whole) in requests(&served) {
        let variants = with_unknown_somewhere(&whole, 8);
        depths += variants.len();
        for variant in variants {
            let refused = send(&channel, method, vec![variant]).await.unwrap_err();
            assert_refused(&refused, method);
            assert!(refused.message().contains("field 99"), "{refused:?}");
            assert!(refused.message().contains("highwater.v1."), "{refused:?}");
        }
    }
    assert!(
        depths > 30,
        "commit, mutation, authority, term and epoch: {depths}"
    );
    assert_eq!(served.store.status().revision, before);
    // Plain reads of a newer client are answered as far as the server knows.
    let status = with_unknown(&v1::StatusRequest {}.encode_to_vec());
    send(&channel, "Status", vec![status]).await.unwrap();
    served.stop().await.unwrap();
}

#[tokio::test]
async fn a_refusal_names_the_message_and_the_field() {
    let served = Served::start(options()).await;
    let channel = channel(&served).await;
    let mut commit = v1::CommitRequest { commit: None }.encode_to_vec();
    let inner = with_unknown(&put(&served).encode_to_vec());
    prost::encoding::encode_key(1, prost::encoding::WireType::LengthDelimited, &mut commit);
    prost::encoding::encode_varint(inner.len() as u64, &mut commit);
    commit.extend(inner);
    let refused = send(&channel, "Commit", vec![commit]).await.unwrap_err();
    let expected = "highwater.v1.Commit has field 99";
    assert!(refused.message().contains(expected), "{refused:?}");
    served.stop().await.unwrap();
}
