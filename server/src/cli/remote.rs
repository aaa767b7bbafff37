//! One connection to a server, and calls that say what their silence means.

use std::time::Duration;

use highwater::{Authorities, Commit, ExpectedDestination, Malformed, Receipt};
use highwater_client::within_bound;
use highwater_proto::MESSAGE_BYTES_MAX;
use highwater_proto::convert::{ToWire, required};
use highwater_proto::v1;
use highwater_proto::v1::highwater_client::HighwaterClient;
use tokio::time::timeout;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Response, Status, Streaming};

use super::args::Global;
use super::failure::{Effect, Failure};
use super::input::{Encoding, InputError};

/// A connection.
pub(crate) struct Remote {
    /// The calls.
    pub(crate) client: HighwaterClient<Channel>,
    /// How long each answer may take.
    pub(crate) timeout: Duration,
}

/// The URI of an endpoint as people write it.
pub(crate) fn uri(endpoint: &str) -> Result<String, InputError> {
    let form = "HOST:PORT or http://HOST:PORT (TLS isn't offered)";
    match endpoint.split_once("://") {
        None => Ok(format!("http://{endpoint}")),
        Some(("http", _)) => Ok(endpoint.into()),
        Some(_) => Err(InputError::Form { form }),
    }
}

impl Global {
    /// How keys are written.
    pub(crate) const fn keys(&self) -> Encoding {
        if self.key_base64 {
            Encoding::Base64
        } else {
            Encoding::Escaped
        }
    }

    /// The destination that is meant.
    pub(crate) fn expected(&self) -> Result<Option<ExpectedDestination>, InputError> {
        match (self.destination, self.incarnation) {
            (None, None) => Ok(None),
            (Some(id), Some(incarnation)) => Ok(Some(ExpectedDestination { id, incarnation })),
            (Some(_), None) => Err(InputError::Missing {
                what: "--incarnation",
            }),
            (None, Some(_)) => Err(InputError::Missing {
                what: "--destination",
            }),
        }
    }

    /// The same as a message.
    pub(crate) fn expected_to_wire(&self) -> Result<Option<v1::Destination>, InputError> {
        Ok(self.expected()?.as_ref().map(ToWire::to_wire))
    }

    /// Adds authority and destination to a commit. One that has its own keeps it; given twice, it
    /// would be a guess which one is meant.
    pub(crate) fn complete(&self, mut commit: Commit) -> Result<Commit, InputError> {
        if let Some(authority) = &self.authority {
            if commit.authority != Authorities::None {
                return Err(InputError::Both {
                    one: "--authority",
                    other: "an authority in the commit",
                });
            }
            commit.authority = Authorities::One(authority.clone());
        }
        if let Some(expected) = self.expected()? {
            if commit.destination.is_some() {
                return Err(InputError::Both {
                    one: "--destination",
                    other: "a destination in the commit",
                });
            }
            commit.destination = Some(expected);
        }
        Ok(commit)
    }
}

impl Remote {
    /// Connects.
    pub(crate) async fn connect(global: &Global) -> Result<Self, Failure> {
        let limit = global.timeout.0;
        let endpoint =
            Endpoint::from_shared(uri(&global.endpoint)?).map_err(|_| InputError::Form {
                form: "HOST:PORT or http://HOST:PORT",
            })?;
        let failed = |source| Failure::NoConnection {
            endpoint: global.endpoint.clone(),
            source,
        };
        let channel = match timeout(limit, endpoint.connect()).await {
            Ok(connected) => connected.map_err(|error| failed(Some(error)))?,
            Err(_) => return Err(failed(None)),
        };
        Ok(Self {
            client: HighwaterClient::new(channel)
                .max_decoding_message_size(MESSAGE_BYTES_MAX)
                .max_encoding_message_size(MESSAGE_BYTES_MAX),
            timeout: limit,
        })
    }

    /// A request that tells the server how long it is waited for.
    pub(crate) fn request<M>(&self, message: M) -> Request<M> {
        let mut request = Request::new(message);
        request.set_timeout(self.timeout);
        request
    }

    /// Waits for the answer of a call.
    pub(crate) async fn answer<M>(
        limit: Duration,
        effect: Effect,
        call: impl Future<Output = Result<Response<M>, Status>>,
    ) -> Result<M, Failure> {
        match timeout(limit, call).await {
            Ok(Ok(response)) => Ok(response.into_inner()),
            Ok(Err(status)) => Err(Failure::of_status(status, effect)),
            Err(_) => Err(Failure::of_timeout(effect)),
        }
    }

    /// Waits for the next message of a read; `None` at the end.
    pub(crate) async fn next<M>(
        limit: Duration,
        stream: &mut Streaming<M>,
    ) -> Result<Option<M>, Failure> {
        match timeout(limit, stream.message()).await {
            Ok(Ok(message)) => Ok(message),
            Ok(Err(status)) => Err(Failure::of_status(status, Effect::Reads)),
            Err(_) => Err(Failure::of_timeout(Effect::Reads)),
        }
    }

    /// Commits, or asks what the commit would get.
    pub(crate) async fn commit(
        &mut self,
        commit: &Commit,
        dry_run: bool,
    ) -> Result<Receipt, Failure> {
        let wire = Some(commit.to_wire());
        let unsent = |error| Failure::of_call(error, Effect::Reads);
        let (limit, effect) = (
            self.timeout,
            if dry_run {
                Effect::Reads
            } else {
                Effect::Writes
            },
        );
        let receipt = if dry_run {
            let message = v1::JudgeRequest { commit: wire };
            within_bound(&message).map_err(unsent)?;
            let request = self.request(message);
            Self::answer(limit, effect, self.client.judge(request))
                .await?
                .receipt
        } else {
            let message = v1::CommitRequest { commit: wire };
            within_bound(&message).map_err(unsent)?;
            let request = self.request(message);
            Self::answer(limit, effect, self.client.commit(request))
                .await?
                .receipt
        };
        stated(receipt, effect)
    }
}

/// The receipt of an answer.
pub(crate) fn stated(receipt: Option<v1::Receipt>, effect: Effect) -> Result<Receipt, Failure> {
    let read: Result<Receipt, Malformed> = required(receipt, "receipt");
    read.map_err(|malformed| Failure::of_answer(malformed, effect))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_plain_http_and_nothing_else() {
        assert_eq!(uri("127.0.0.1:7171").unwrap(), "http://127.0.0.1:7171");
        assert_eq!(uri("http://[::1]:7171").unwrap(), "http://[::1]:7171");
        assert!(uri("https://example.com").is_err());
        assert!(uri("unix:///tmp/socket").is_err());
    }
}
