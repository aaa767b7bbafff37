//! Deadlines of calls with one answer.

use std::time::Duration;

use highwater_proto::status::not_executed;
use tonic::metadata::MetadataMap;
use tonic::{Code, Status};

/// The header in which a client says how long it will wait.
const HEADER: &str = "grpc-timeout";
/// How much earlier than the client's deadline the answer is given, so that it can still be read.
/// The transport cuts calls off at the deadline itself, under a code that says less.
const MARGIN: Duration = Duration::from_millis(5);

/// How long a call may take: the shorter of the client's wish and the server's bound.
///
/// # Errors
///
/// `INVALID_ARGUMENT` for a header that isn't of the form; `DEADLINE_EXCEEDED` where no time is
/// left. Nothing was done in either case.
pub(crate) fn limit(metadata: &MetadataMap, max: Duration) -> Result<Duration, Status> {
    let Some(header) = metadata.get(HEADER) else {
        return Ok(max);
    };
    let wish = header.to_str().ok().and_then(parse).ok_or_else(|| {
        not_executed(
            Code::InvalidArgument,
            "the header grpc-timeout isn't a number and a unit",
        )
    })?;
    if wish.is_zero() {
        let message = "the deadline passed before the call began; nothing was done";
        return Err(not_executed(Code::DeadlineExceeded, message));
    }
    let earlier = wish.saturating_sub(MARGIN).max(wish / 2);
    Ok(earlier.min(max))
}

/// Reads one to eight digits and a unit.
fn parse(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if digits.is_empty() || digits.len() > 8 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number: u64 = digits.parse().ok()?;
    match unit {
        "H" => Some(Duration::from_secs(number.checked_mul(3_600)?)),
        "M" => Some(Duration::from_secs(number.checked_mul(60)?)),
        "S" => Some(Duration::from_secs(number)),
        "m" => Some(Duration::from_millis(number)),
        "u" => Some(Duration::from_micros(number)),
        "n" => Some(Duration::from_nanos(number)),
        _ => None,
    }
}

/// Waits for an answer, for at most the limit.
///
/// # Errors
///
/// The call's own; `DEADLINE_EXCEEDED` at the limit. A write that was begun goes on, and its
/// outcome isn't known to the caller.
pub(crate) async fn within<T>(
    limit: Duration,
    call: impl Future<Output = Result<T, Status>>,
) -> Result<T, Status> {
    tokio::time::timeout(limit, call).await.unwrap_or_else(|_| {
        let message = "the deadline passed before the answer; whether a write happened isn't known";
        Err(Status::deadline_exceeded(message))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_is_read_and_nothing_else() {
        let seconds = |text| parse(text).map(|limit| limit.as_secs());
        assert_eq!(seconds("2H"), Some(7_200));
        assert_eq!(seconds("2M"), Some(120));
        assert_eq!(seconds("99999999S"), Some(99_999_999));
        assert_eq!(parse("3m"), Some(Duration::from_millis(3)));
        assert_eq!(parse("4u"), Some(Duration::from_micros(4)));
        assert_eq!(parse("5n"), Some(Duration::from_nanos(5)));
        for wrong in [
            "",
            "S",
            "1",
            "1s",
            "-1S",
            "+1S",
            "1.5S",
            "100000000S",
            "1 S",
            "1é",
        ] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn the_shorter_limit_holds() {
        let max = Duration::from_secs(1);
        let with = |header: &'static str| {
            let mut metadata = MetadataMap::new();
            metadata.insert(HEADER, header.parse().unwrap());
            limit(&metadata, max)
        };
        assert_eq!(limit(&MetadataMap::new(), max).unwrap(), max);
        assert_eq!(with("2S").unwrap(), max);
        assert_eq!(with("105m").unwrap(), Duration::from_millis(100));
        assert_eq!(with("2m").unwrap(), Duration::from_millis(1));
        assert_eq!(with("0S").unwrap_err().code(), Code::DeadlineExceeded);
        assert_eq!(with("soon").unwrap_err().code(), Code::InvalidArgument);
    }
}
