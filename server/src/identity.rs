//! Who calls, as the transport authenticated it.

use highwater_core::Identity;
use tonic::Extensions;

/// The authenticated name of a caller. A layer that authenticates puts it into the extensions of
/// the request; nothing in a request itself can.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller(pub Identity);

/// The caller of a request; `None` where nothing authenticated it.
pub(crate) fn caller(extensions: &Extensions) -> Option<Identity> {
    extensions.get::<Caller>().map(|caller| caller.0.clone())
}
