//! Calls that end before the service sees them: their message is missing, cut short or not of the
//! form. The transport tells them by a bare code, which after a write would mean an unknown
//! outcome; here they get the word that nothing was done.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use highwater_proto::status::not_executed;
use tonic::body::Body;
use tonic::codegen::Service;
use tonic::codegen::http::{Extensions, Request, Response};
use tonic::server::NamedService;
use tonic::{Code, Status};

/// Set once the service sees a call.
#[derive(Clone, Debug, Default)]
struct Begun(Arc<AtomicBool>);

/// Notes that the service sees a call: whatever it ends with from now on is the service's own word.
pub(crate) fn begin(extensions: &Extensions) {
    if let Some(Begun(begun)) = extensions.get() {
        begun.store(true, Ordering::Relaxed);
    }
}

/// The status of a request that the transport couldn't read, with the word that it, and what a
/// stream sent behind it, was not executed.
pub(crate) fn refusal(status: &Status) -> Status {
    let code = match status.code() {
        Code::Internal | Code::Unknown => Code::InvalidArgument,
        // The transport's code for a message that is too long.
        Code::OutOfRange => Code::ResourceExhausted,
        code => code,
    };
    not_executed(code, status.message())
}

/// A service whose calls all end with its own word, or with the word that it didn't see them.
#[derive(Clone, Debug)]
pub(crate) struct Attentive<S>(pub(crate) S);

impl<S: NamedService> NamedService for Attentive<S> {
    const NAME: &'static str = S::NAME;
}

impl<S> Service<Request<Body>> for Attentive<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
    S::Future: Unpin,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Answering<S::Future>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let begun = Begun::default();
        request.extensions_mut().insert(begun.clone());
        Answering {
            answer: self.0.call(request),
            begun,
        }
    }
}

/// A call on its way to its answer.
pub(crate) struct Answering<F> {
    answer: F,
    begun: Begun,
}

impl<F> Future for Answering<F>
where
    F: Future<Output = Result<Response<Body>, Infallible>> + Unpin,
{
    type Output = Result<Response<Body>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Poll::Ready(Ok(answer)) = Pin::new(&mut self.answer).poll(context) else {
            return Poll::Pending;
        };
        if self.begun.0.load(Ordering::Relaxed) {
            return Poll::Ready(Ok(answer));
        }
        Poll::Ready(Ok(match Status::from_header_map(answer.headers()) {
            Some(status) if status.details().is_empty() => refusal(&status).into_http(),
            _ => answer,
        }))
    }
}

#[cfg(test)]
mod tests {
    use highwater::{Config, Store};
    use highwater_proto::FILE_DESCRIPTOR_SET;
    use highwater_proto::v1::highwater_server::HighwaterServer;
    use prost::Message;
    use prost_types::FileDescriptorSet;

    use super::*;
    use crate::options::ServeOptions;
    use crate::service::Service as Highwater;
    use crate::shutdown::Shutdown;

    /// Every call of the service that is described.
    fn methods() -> Vec<String> {
        let set = FileDescriptorSet::decode(FILE_DESCRIPTOR_SET).unwrap();
        let services = set.file.into_iter().flat_map(|file| file.service);
        let methods = services.flat_map(|service| service.method);
        methods.map(|method| method.name().to_owned()).collect()
    }

    #[tokio::test]
    async fn every_call_that_the_service_sees_is_noted_and_no_other_is() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path(), Config::default()).unwrap();
        let (_ends, ending) = Shutdown::new();
        let service = Highwater::new(store.clone(), &ServeOptions::default(), ending);
        let mut service = HighwaterServer::new(service);
        let methods = methods();
        assert!(methods.len() > 10, "{methods:?}");
        for method in methods {
            // A frame with an empty message, which every decoder takes, and half of one.
            for (body, is_seen) in [("\0\0\0\0\0", true), ("\0\0", false)] {
                let begun = Begun::default();
                let path = format!("/highwater.v1.Highwater/{method}");
                let mut request = Request::post(path)
                    .body(Body::new(body.to_owned()))
                    .unwrap();
                request.extensions_mut().insert(begun.clone());
                service.call(request).await.unwrap();
                let is_stream = method == "CommitStream";
                let noted = begun.0.load(Ordering::Relaxed);
                assert_eq!(noted, is_seen || is_stream, "{method}");
            }
        }
        drop(service);
        store.close().unwrap();
    }
}
