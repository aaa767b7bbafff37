//! The walk over a request, checked against what encoding and decoding say.

use prost::Message;

use super::requests::{COMMIT_REQUEST, COMMIT_STREAM_REQUEST, GET_REQUEST, LIST_INTENTS_REQUEST};
use super::*;
use crate::codec::PARTS_MAX;
use crate::v1;

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
    let stream = &COMMIT_STREAM_REQUEST;
    assert_eq!(stream.check(&bytes, PARTS_MAX), Ok(expected));
    assert_eq!(stream.check(&bytes, expected), Ok(expected));
    let max = expected - 1;
    assert_eq!(stream.check(&bytes, max), Err(Misfit::TooMany { max }));
}

#[test]
fn items_of_lists_count_too() {
    let get = v1::GetRequest {
        guard: Some(v1::ReadGuard {
            authority: None,
            guards: vec!["g".into(); 9],
        }),
        ..v1::GetRequest::default()
    };
    assert_eq!(GET_REQUEST.check(&get.encode_to_vec(), 100), Ok(10));
}

#[test]
fn the_largest_commit_has_fewer_parts_than_the_bound() {
    let bytes = of_stream(1, 1_024, 64);
    // Beside the mutations: conditions, each with its kind and a term with an epoch, and as many
    // authorities of as many parts.
    let beside = 2 * 1_024 * 6;
    let parts = COMMIT_STREAM_REQUEST.check(&bytes, PARTS_MAX).unwrap();
    assert!(parts + beside < PARTS_MAX, "{parts}");
}

#[test]
fn what_is_cut_short_is_read_exactly_where_decoding_reads_it() {
    let bytes = of_stream(3, 4, 2);
    for end in 0..=bytes.len() {
        let cut = &bytes[..end];
        let walked = COMMIT_STREAM_REQUEST.check(cut, PARTS_MAX).is_ok();
        assert_eq!(
            walked,
            v1::CommitStreamRequest::decode(cut).is_ok(),
            "{end}"
        );
    }
}

#[test]
fn what_has_another_form_is_refused() {
    let message = "highwater.v1.CommitRequest";
    let unreadable = Err(Misfit::Unreadable { message });
    for bytes in [
        &[0x0B, 0x0C][..],
        &[0xFF; 100],
        &[0x08, 1],
        &[0x0D, 0, 0, 0, 0],
        &[0x00, 0x00],
        &[0x0A],
        &[0x0A, 1],
    ] {
        assert_eq!(
            COMMIT_REQUEST.check(bytes, PARTS_MAX),
            unreadable,
            "{bytes:02x?}"
        );
    }
}

#[test]
fn an_unknown_field_is_refused_whatever_its_number_and_its_form() {
    let message = "highwater.v1.CommitRequest";
    for field in [2, 3, 15, 16, 99, 18_999, (1 << 29) - 1] {
        for wire in 0..8 {
            let mut bytes = Vec::new();
            prost::encoding::encode_varint(field << 3 | wire, &mut bytes);
            bytes.extend([0; 8]);
            let unknown = Err(Misfit::Unknown { message, field });
            assert_eq!(COMMIT_REQUEST.check(&bytes, PARTS_MAX), unknown, "{wire}");
        }
    }
}

/// A field with a length.
fn nested(field: u8, content: &[u8]) -> Vec<u8> {
    let length = u8::try_from(content.len()).unwrap();
    [&[field << 3 | 2, length], content].concat()
}

#[test]
fn an_unknown_field_is_found_in_whatever_is_said_of_intents() {
    let unknown = [0x78, 0];
    let used = nested(1, &nested(7, &unknown));
    let in_mutation = |field, inner: &[u8]| nested(1, &nested(6, &nested(field, inner)));
    let work = in_mutation(5, &nested(2, &unknown));
    let input = in_mutation(5, &nested(2, &nested(2, &nested(1, &unknown))));
    let (close, suspend) = (in_mutation(6, &unknown), in_mutation(7, &unknown));
    for (bytes, message) in [
        (used, "highwater.v1.IntentUse"),
        (work, "highwater.v1.Work"),
        (input, "highwater.v1.KeyInput"),
        (close, "highwater.v1.CloseIntent"),
        (suspend, "highwater.v1.SuspendIntent"),
    ] {
        let found = Err(Misfit::Unknown { message, field: 15 });
        assert_eq!(COMMIT_REQUEST.check(&bytes, PARTS_MAX), found);
    }
    let found = LIST_INTENTS_REQUEST.check(&unknown, PARTS_MAX);
    let message = "highwater.v1.ListIntentsRequest";
    assert_eq!(found, Err(Misfit::Unknown { message, field: 15 }));
}
