//! The bytes on the disk, built a second time from the description of the format alone.

use super::sim::SimDisk;
use super::support::{LOG_ID, SEGMENT_BYTES, append, open, segment};

/// CRC-32 of IEEE 802.3, bit by bit.
fn crc(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg());
        }
    }
    !crc
}

/// A frame and its checksum.
pub(crate) fn frame(
    salt: u64,
    lsn: u64,
    kind: u32,
    payload: &[u8],
    previous: u32,
) -> (u32, Vec<u8>) {
    let mut bytes = Vec::new();
    bytes.extend(salt.to_be_bytes());
    bytes.extend(lsn.to_be_bytes());
    bytes.extend(kind.to_be_bytes());
    bytes.extend(u32::try_from(payload.len()).unwrap().to_be_bytes());
    bytes.extend(previous.to_be_bytes());
    let mut body = payload.to_vec();
    body.resize(body.len().next_multiple_of(8), 0);
    let sum = crc(&[bytes.clone(), body.clone()].concat());
    bytes.extend(sum.to_be_bytes());
    (sum, [bytes, body].concat())
}

/// The header block of a segment.
pub(crate) fn header(number: u64, first: u64, salt: u64, previous: u32) -> Vec<u8> {
    let mut bytes = b"HWLOGSEG".to_vec();
    bytes.extend(1_u32.to_be_bytes());
    bytes.extend(LOG_ID);
    bytes.extend(number.to_be_bytes());
    bytes.extend(first.to_be_bytes());
    bytes.extend(salt.to_be_bytes());
    bytes.extend((SEGMENT_BYTES as u64).to_be_bytes());
    bytes.extend(previous.to_be_bytes());
    bytes.resize(4092, 0);
    bytes.extend(crc(&bytes).to_be_bytes());
    bytes
}

#[test]
fn every_byte_of_two_segments_is_as_described() {
    let disk = SimDisk::default();
    let (mut log, _) = open(&disk).unwrap();
    append(&mut log, b"first").unwrap();
    append(&mut log, &[2; 40_000]).unwrap();
    append(&mut log, &[3; 39_999]).unwrap();
    log.close().unwrap();
    let files = disk.files();
    assert_eq!(files.len(), 2);
    let (one, two) = (&files[&segment(1)], &files[&segment(2)]);
    // The salts are the only thing that cannot be known beforehand.
    let salt = |file: &[u8]| u64::from_be_bytes(file[44..52].try_into().unwrap());
    let (salt_one, salt_two) = (salt(one), salt(two));
    assert!(salt_one != salt_two && salt_one != 0 && salt_two != 0);

    let (sum, first) = frame(salt_one, 1, 1, b"first", 0);
    let (sum, second) = frame(salt_one, 2, 1, &[2; 40_000], sum);
    let named = [2_u64.to_be_bytes(), salt_two.to_be_bytes()].concat();
    let (seal_sum, seal) = frame(salt_one, 3, 2, &named, sum);
    let mut expected = [header(1, 1, salt_one, 0), first, second, seal].concat();
    expected.resize(SEGMENT_BYTES, 0);
    assert!(*one == expected, "the first segment");

    let (sum, third) = frame(salt_two, 3, 1, &[3; 39_999], seal_sum);
    let (_, closed) = frame(salt_two, 4, 3, b"", sum);
    let mut expected = [header(2, 3, salt_two, seal_sum), third, closed].concat();
    expected.resize(SEGMENT_BYTES, 0);
    assert!(*two == expected, "the second segment");
}
