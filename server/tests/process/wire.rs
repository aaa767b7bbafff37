//! The wire: reasons, bounds and keys at their edges, against a real server through generated code.

mod bounds;
mod conditions;
mod keys;
mod reasons;

use highwater_core::{Commit, DomainName, Epoch, Policy};
use highwater_proto::convert::ToWire;
use highwater_proto::v1;
use highwater_proto::v1::highwater_client::HighwaterClient;
use tonic::transport::Channel;
use tonic::{Code, Status};
use tonic_types::StatusExt;

use crate::support::Server;

type Raw = HighwaterClient<Channel>;

/// Makes a domain and gives its epoch.
async fn domain(server: &Server, name: &str, policy: &Policy) -> Epoch {
    let client = server.client().await;
    let name = DomainName::new(name).unwrap();
    let made = client.create_domain(&name, policy).await.unwrap();
    made.epochs.current().epoch
}

fn request(commit: &Commit) -> v1::CommitRequest {
    let commit = Some(commit.to_wire());
    v1::CommitRequest { commit }
}

/// The reason that a refusal names for those who know no messages of ours, and its code.
fn told(status: &Status) -> (Code, String) {
    let info = status.get_details_error_info();
    let info = info.unwrap_or_else(|| panic!("{status:?}"));
    assert_eq!(info.domain, "highwater.v1");
    (status.code(), info.reason)
}

/// Whether a call was refused as malformed.
fn is_malformed<T>(result: Result<T, Status>) -> bool {
    result.is_err_and(|status| told(&status) == (Code::InvalidArgument, "Malformed".into()))
}
