//! A connection to one destination, with one method per call.

use std::time::Duration;

use highwater_core::{
    Authority, Commit, Domain, DomainName, ExpectedDestination, Fence, Guard, Key, KeyRange,
    Policy, Receipt, Record, Revision,
};
use highwater_proto::convert::{FromWire, ToWire, optional, parts, required};
use highwater_proto::v1::highwater_client::HighwaterClient;
use highwater_proto::{MESSAGE_BYTES_MAX, v1};
use prost::Message;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Response, Status};

use crate::error::{ClientError, NotSent, is_unconnected};
use crate::options::ClientOptions;
use crate::scan::{Scan, ScanKeys, TakeOver};
use crate::session::Session;
use crate::watch::Watch;

type Rpc = HighwaterClient<Channel>;

/// What a read of one key found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The revision that was read.
    pub revision: Revision,
    /// The record; `None` if the key doesn't exist.
    pub record: Option<Record>,
}

/// A connection to one destination. Cheap to clone; it connects again by itself, but never repeats
/// a write. Every read names the destination that was seen when the client connected.
#[derive(Clone, Debug)]
pub struct Client {
    rpc: Rpc,
    destination: ExpectedDestination,
    options: ClientOptions,
}

impl Client {
    /// Connects and captures which destination and incarnation it is. That is kept for as long as
    /// the client lives: after a restore it is refused as `WrongDestination` until a new client
    /// is made, on purpose.
    ///
    /// # Errors
    ///
    /// [`ClientError::NotSent`] when the address is wrong or nobody listens,
    /// [`ClientError::ReadFailed`] or [`ClientError::Answer`] when what answers is no destination.
    pub async fn connect(address: &str, options: ClientOptions) -> Result<Self, ClientError> {
        let endpoint = Endpoint::from_shared(address.to_owned())
            .map_err(|_| NotSent::Address {
                address: address.into(),
            })?
            .connect_timeout(options.connect_timeout)
            .http2_keep_alive_interval(options.keepalive_interval)
            .keep_alive_timeout(options.keepalive_timeout)
            .tcp_nodelay(true);
        Self::over(endpoint.connect_lazy(), options).await
    }

    /// As [`Client::connect`], over a channel that the caller made (encrypted, proxied, simulated).
    ///
    /// # Errors
    ///
    /// As [`Client::connect`].
    pub async fn over(channel: Channel, options: ClientOptions) -> Result<Self, ClientError> {
        let rpc = HighwaterClient::new(channel)
            .max_decoding_message_size(options.message_bytes_max)
            .max_encoding_message_size(MESSAGE_BYTES_MAX);
        let answer = read(
            &rpc,
            &options,
            v1::StatusRequest {},
            async |mut rpc, request| rpc.status(request).await,
        );
        let destination = required(answer.await?.destination, parts::DESTINATION)?;
        Ok(Self {
            rpc,
            destination,
            options,
        })
    }

    /// The destination that was seen when the client connected.
    #[must_use]
    pub const fn destination(&self) -> ExpectedDestination {
        self.destination
    }

    /// The client's settings.
    #[must_use]
    pub const fn options(&self) -> &ClientOptions {
        &self.options
    }

    pub(crate) fn rpc(&self) -> Rpc {
        self.rpc.clone()
    }

    pub(crate) fn named(&self) -> Option<v1::Destination> {
        Some(self.destination.to_wire())
    }

    /// A session that writes to a domain under an authority, to the destination first seen.
    #[must_use]
    pub fn session(&self, domain: DomainName, authority: Authority) -> Session {
        Session::new(self.clone(), domain, authority, self.destination)
    }

    /// Makes a domain.
    ///
    /// # Errors
    ///
    /// [`ClientError::Domain`] where there is one of that name.
    pub async fn create_domain(
        &self,
        name: &DomainName,
        policy: &Policy,
    ) -> Result<Domain, ClientError> {
        let message = v1::CreateDomainRequest {
            destination: self.named(),
            name: name.as_str().into(),
            policy: Some(policy.to_wire()),
        };
        let request = timed(&self.options, message);
        let answer = self
            .rpc()
            .create_domain(request)
            .await
            .map_err(ClientError::of_write)?;
        Ok(required(answer.into_inner().domain, parts::DOMAIN)?)
    }

    /// One domain.
    ///
    /// # Errors
    ///
    /// [`ClientError::Domain`] where there is none of that name.
    pub async fn domain(&self, name: &DomainName) -> Result<Domain, ClientError> {
        let (destination, name) = (self.named(), name.as_str().into());
        let message = v1::GetDomainRequest { destination, name };
        let answer = self.read(message, async |mut rpc, request| {
            rpc.get_domain(request).await
        });
        Ok(required(answer.await?.domain, parts::DOMAIN)?)
    }

    /// Every domain, ordered by name, without retired epochs.
    ///
    /// # Errors
    ///
    /// [`ClientError`] as of any read.
    pub async fn domains(&self) -> Result<Vec<Domain>, ClientError> {
        let message = v1::ListDomainsRequest {
            destination: self.named(),
        };
        let answer = self.read(message, async |mut rpc, request| {
            rpc.list_domains(request).await
        });
        let domains = answer.await?.domains.into_iter().map(Domain::from_wire);
        Ok(domains.collect::<Result<_, _>>()?)
    }

    /// Sends a commit as it is, once. Nothing is filled in; a [`Session`] does that with what was
    /// captured, and sends a step of an intent again where that is safe.
    ///
    /// # Errors
    ///
    /// [`ClientError`]: a variant with a rejection, or [`ClientError::NotSent`], where nothing was
    /// done; [`ClientError::OutcomeUnknown`] or [`ClientError::Answer`] where that isn't known.
    pub async fn commit(&self, commit: &Commit) -> Result<Receipt, ClientError> {
        let message = v1::CommitRequest {
            commit: Some(commit.to_wire()),
        };
        within_bound(&message)?;
        self.send(message, self.options.deadline).await
    }

    /// Sends a commit that is within the bound, once, and waits so long for its verdict.
    pub(crate) async fn send(
        &self,
        message: v1::CommitRequest,
        limit: Duration,
    ) -> Result<Receipt, ClientError> {
        let mut request = Request::new(message);
        request.set_timeout(limit);
        let answer = self.rpc().commit(request).await;
        let answer = answer.map_err(ClientError::of_write)?.into_inner();
        Ok(required(answer.receipt, parts::RECEIPT)?)
    }

    /// What a commit would get now. Changes nothing.
    ///
    /// # Errors
    ///
    /// The rejection that the commit would get.
    pub async fn judge(&self, commit: &Commit) -> Result<Receipt, ClientError> {
        let message = v1::JudgeRequest {
            commit: Some(commit.to_wire()),
        };
        within_bound(&message)?;
        let answer = self.read(message, async |mut rpc, request| rpc.judge(request).await);
        Ok(required(answer.await?.receipt, parts::RECEIPT)?)
    }

    /// What is stored under a key; where an authority is given, only while it is the highest of the
    /// key's guard.
    ///
    /// # Errors
    ///
    /// [`ClientError::LostAuthority`] as a write would get it; others as of any read.
    pub async fn get(
        &self,
        domain: &DomainName,
        key: &Key,
        held: Option<&Authority>,
    ) -> Result<Found, ClientError> {
        let message = v1::GetRequest {
            destination: self.named(),
            domain: domain.as_str().into(),
            key: key.to_wire(),
            guard: held.map(read_guard),
        };
        let answer = self
            .read(message, async |mut rpc, request| rpc.get(request).await)
            .await?;
        let revision = Revision::from_wire(answer.revision)?;
        let record: Option<(Key, Record)> = optional(answer.record)?;
        Ok(Found {
            revision,
            record: record.map(|(_, record)| record),
        })
    }

    /// Reads a range, a prefix or a guard, page by page, at one revision. `token` goes on where an
    /// earlier scan of the same keys ended; an authority is checked as by [`Client::get`], for
    /// which the keys have to be those of a guard.
    ///
    /// # Errors
    ///
    /// [`ClientError`] as of any read.
    pub async fn scan(
        &self,
        domain: &DomainName,
        keys: ScanKeys,
        token: Option<bytes::Bytes>,
        held: Option<&Authority>,
    ) -> Result<Scan, ClientError> {
        let message = v1::ScanRequest {
            destination: self.named(),
            domain: domain.as_str().into(),
            keys: Some(keys.to_wire()),
            page_records: 0,
            pages: 0,
            page_token: token.unwrap_or_default(),
            read_guard: held.map(read_guard),
        };
        let answer = self
            .rpc()
            .scan(message)
            .await
            .map_err(ClientError::of_read)?;
        Ok(Scan::new(answer.into_inner()))
    }

    /// Follows the changes of a range after a revision (`None`: from now on), each commit whole and
    /// in order; with `fences` also raised fences of the domain.
    ///
    /// # Errors
    ///
    /// [`ClientError::WatchTooOld`] where the history doesn't reach back so far.
    pub async fn watch(
        &self,
        domain: &DomainName,
        range: &KeyRange,
        fences: bool,
        after: Option<Revision>,
    ) -> Result<Watch, ClientError> {
        let message = self.watching(domain, range, fences, after);
        self.follow(message, after).await
    }

    /// As [`Client::watch`], and tells changes of the domain's leases too: grants, renewals and
    /// ends.
    ///
    /// # Errors
    ///
    /// As [`Client::watch`].
    pub async fn watch_with_leases(
        &self,
        domain: &DomainName,
        range: &KeyRange,
        fences: bool,
        after: Option<Revision>,
    ) -> Result<Watch, ClientError> {
        let mut message = self.watching(domain, range, fences, after);
        message.leases = true;
        self.follow(message, after).await
    }

    fn watching(
        &self,
        domain: &DomainName,
        range: &KeyRange,
        fences: bool,
        after: Option<Revision>,
    ) -> v1::WatchRequest {
        v1::WatchRequest {
            destination: self.named(),
            domain: domain.as_str().into(),
            keys: Some(v1::watch_request::Keys::Range(range.to_wire())),
            fences,
            leases: false,
            after: after.map(Revision::get),
        }
    }

    async fn follow(
        &self,
        message: v1::WatchRequest,
        after: Option<Revision>,
    ) -> Result<Watch, ClientError> {
        let answer = self.rpc().watch(message).await;
        let answer = answer.map_err(ClientError::of_read)?;
        Ok(Watch::new(answer.into_inner(), after))
    }

    /// The fence of a guard; `None` where nothing was accepted under it in the current epoch.
    ///
    /// # Errors
    ///
    /// [`ClientError`] as of any read.
    pub async fn fence(
        &self,
        domain: &DomainName,
        guard: &Guard,
    ) -> Result<Option<Fence>, ClientError> {
        let message = v1::GetFenceRequest {
            destination: self.named(),
            domain: domain.as_str().into(),
            target: Some(v1::get_fence_request::Target::Guard(guard.to_wire())),
        };
        let answer = self.read(message, async |mut rpc, request| {
            rpc.get_fence(request).await
        });
        Ok(optional(answer.await?.fence)?)
    }

    /// What the destination says about itself, as it says it.
    ///
    /// # Errors
    ///
    /// [`ClientError`] as of any read.
    pub async fn status(&self) -> Result<v1::StatusResponse, ClientError> {
        self.read(v1::StatusRequest {}, async |mut rpc, request| {
            rpc.status(request).await
        })
        .await
    }

    pub(crate) async fn take_over(
        &self,
        message: v1::TakeOverRequest,
    ) -> Result<TakeOver, ClientError> {
        let answer = self.rpc().take_over(timed(&self.options, message)).await;
        TakeOver::begin(answer.map_err(ClientError::of_write)?.into_inner()).await
    }

    pub(crate) async fn read<M: Clone, T>(
        &self,
        message: M,
        call: impl AsyncFn(Rpc, Request<M>) -> Result<Response<T>, Status>,
    ) -> Result<T, ClientError> {
        read(&self.rpc, &self.options, message, call).await
    }
}

/// A guarded read of the key's or the scan's own guard.
fn read_guard(authority: &Authority) -> v1::ReadGuard {
    v1::ReadGuard {
        authority: Some(authority.to_wire()),
        guards: Vec::new(),
    }
}

pub(crate) fn timed<M>(options: &ClientOptions, message: M) -> Request<M> {
    let mut request = Request::new(message);
    request.set_timeout(options.deadline);
    request
}

/// Refuses a message that no server takes, before it is sent.
///
/// # Errors
///
/// [`NotSent::TooLarge`] above [`MESSAGE_BYTES_MAX`].
///
/// ```
/// use highwater_client::{ClientError, NotSent, within_bound};
/// use highwater_proto::v1;
///
/// assert!(within_bound(&v1::CommitRequest { commit: None }).is_ok());
/// let name = "n".repeat(32 << 20);
/// let refused = within_bound(&v1::GetDomainRequest { destination: None, name });
/// assert!(matches!(refused, Err(ClientError::NotSent(NotSent::TooLarge { .. }))));
/// ```
pub fn within_bound(message: &impl Message) -> Result<(), ClientError> {
    let (bytes, max) = (message.encoded_len(), MESSAGE_BYTES_MAX);
    if bytes > max {
        Err(NotSent::TooLarge { bytes, max }.into())
    } else {
        Ok(())
    }
}

/// Sends a read, again where no connection could be made.
async fn read<M: Clone, T>(
    rpc: &Rpc,
    options: &ClientOptions,
    message: M,
    call: impl AsyncFn(Rpc, Request<M>) -> Result<Response<T>, Status>,
) -> Result<T, ClientError> {
    let mut tries_left = options.read_tries;
    loop {
        tries_left = tries_left.saturating_sub(1);
        match call(rpc.clone(), timed(options, message.clone())).await {
            Ok(answer) => return Ok(answer.into_inner()),
            Err(status) if tries_left > 0 && is_unconnected(&status) => {}
            Err(status) => return Err(ClientError::of_read(status)),
        }
    }
}
