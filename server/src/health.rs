//! The standard health service: whether the store takes effects.

use highwater::Store;
use highwater_core::Availability;
use tokio::time::{MissedTickBehavior, interval};
use tonic::server::NamedService;
use tonic_health::ServingStatus;
use tonic_health::server::HealthReporter;

use crate::options::ServeOptions;
use crate::service::Service;
use crate::shutdown::Ending;

type Served = highwater_proto::v1::highwater_server::HighwaterServer<Service>;

/// Whether a store in this state is worth sending writes to. A full queue or disk passes by itself.
const fn serving(availability: Availability) -> ServingStatus {
    match availability {
        Availability::Ready | Availability::Overloaded | Availability::DiskFull => {
            ServingStatus::Serving
        }
        Availability::Poisoned | Availability::RecoveryRequired => ServingStatus::NotServing,
    }
}

/// The same, and not while every change is refused because the audit trail can't be written: that
/// may last until somebody does something.
fn health_of(status: &highwater::Status) -> ServingStatus {
    if status.audit.is_some_and(|audit| audit.refusing) {
        return ServingStatus::NotServing;
    }
    serving(status.availability)
}

/// Tells the service and the server as a whole.
pub(crate) async fn tell(reporter: &HealthReporter, status: ServingStatus) {
    reporter.set_service_status("", status).await;
    reporter
        .set_service_status(<Served as NamedService>::NAME, status)
        .await;
}

/// Looks at the store from time to time and tells what it sees, until the server begins to end.
pub(crate) async fn follow(
    store: Store,
    reporter: HealthReporter,
    options: ServeOptions,
    mut ending: Ending,
) {
    let mut ticks = interval(options.health_interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            biased;
            () = ending.begun() => break,
            _ = ticks.tick() => tell(&reporter, health_of(&store.status())).await,
        }
    }
    tell(&reporter, ServingStatus::NotServing).await;
}
