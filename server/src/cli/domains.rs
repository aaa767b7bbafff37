//! The commands of domains, and the destination's status.

use highwater::{
    Admission, Domain, DomainName, ExpectedDestination, GuardRule, HolderBinding, Policy, Terms,
};
use highwater_proto::convert::{FromWire, ToWire, required};
use highwater_proto::v1;

use super::args::{
    AdmissionChoice, BindingChoice, CreateArgs, DomainCommand, Format, Global, GuardChoice,
    TermsChoice,
};
use super::failure::{Effect, Failure};
use super::input::{Encoding, InputError};
use super::output::Output;
use super::remote::Remote;
use super::{json, text};

/// Makes or shows domains.
pub(crate) async fn domain(
    global: &Global,
    command: &DomainCommand,
    out: &mut Output,
) -> Result<(), Failure> {
    match command {
        DomainCommand::Create(args) => create(global, args, out).await,
        DomainCommand::List => list(global, out).await,
        DomainCommand::Show { domain } => show(global, domain, out).await,
    }
}

impl CreateArgs {
    /// The policy that is asked for.
    fn policy(&self) -> Result<Policy, InputError> {
        let guard = match self.guard {
            GuardChoice::Key => GuardRule::Key,
            GuardChoice::Domain => GuardRule::Domain,
            GuardChoice::Prefix => {
                let form = "one byte, such as / or %00";
                let bytes = Encoding::Escaped.bytes(&self.delimiter)?;
                let [delimiter] = bytes.as_slice() else {
                    return Err(InputError::Form { form });
                };
                GuardRule::Prefix {
                    delimiter: *delimiter,
                    depth: self.depth,
                }
            }
        };
        let admission = match self.admission {
            AdmissionChoice::Fenced => Admission::Fenced,
            AdmissionChoice::Versioned => Admission::Versioned,
            AdmissionChoice::Open => Admission::Open,
        };
        let binding = match self.holder_binding {
            BindingChoice::None => HolderBinding::None,
            BindingChoice::Prefix => HolderBinding::Prefix,
            BindingChoice::Exact => HolderBinding::Exact,
        };
        let terms = match self.terms {
            TermsChoice::External => Terms::External,
            TermsChoice::Issued => Terms::Issued,
        };
        let grace_ms = u64::try_from(self.grace.0.as_millis()).unwrap_or(u64::MAX);
        Ok(Policy::default()
            .with_guard(guard)?
            .with_grace_ms(grace_ms)?
            .with_terms(terms)
            .with_strict(self.strict)
            .with_admission(admission)
            .with_holder_binding(binding)
            .with_max_sequence_step(self.max_sequence_step))
    }
}

fn read(wire: Option<v1::Domain>, effect: Effect) -> Result<Domain, Failure> {
    required(wire, "domain").map_err(|malformed| Failure::of_answer(malformed, effect))
}

async fn create(global: &Global, args: &CreateArgs, out: &mut Output) -> Result<(), Failure> {
    let name = DomainName::new(&args.domain).map_err(InputError::from)?;
    let message = v1::CreateDomainRequest {
        destination: global.expected_to_wire()?,
        name: name.as_str().into(),
        policy: Some(args.policy()?.to_wire()),
    };
    let mut remote = Remote::connect(global).await?;
    let request = remote.request(message);
    let call = remote.client.create_domain(request);
    let answer = Remote::answer(remote.timeout, Effect::Writes, call).await?;
    let domain = read(answer.domain, Effect::Writes)?;
    out.tell_accepted(
        domain.created_at,
        || json::domain(&domain),
        || text::domain(&domain),
    )
}

async fn show(global: &Global, name: &str, out: &mut Output) -> Result<(), Failure> {
    let name = DomainName::new(name).map_err(InputError::from)?;
    let message = v1::GetDomainRequest {
        destination: global.expected_to_wire()?,
        name: name.as_str().into(),
    };
    let mut remote = Remote::connect(global).await?;
    let request = remote.request(message);
    let call = remote.client.get_domain(request);
    let answer = Remote::answer(remote.timeout, Effect::Reads, call).await?;
    let domain = read(answer.domain, Effect::Reads)?;
    out.tell(|| json::domain(&domain), || text::domain(&domain))
}

async fn list(global: &Global, out: &mut Output) -> Result<(), Failure> {
    let message = v1::ListDomainsRequest {
        destination: global.expected_to_wire()?,
    };
    let mut remote = Remote::connect(global).await?;
    let request = remote.request(message);
    let call = remote.client.list_domains(request);
    let answer = Remote::answer(remote.timeout, Effect::Reads, call).await?;
    let domains: Result<Vec<Domain>, _> = answer
        .domains
        .into_iter()
        .map(FromWire::from_wire)
        .collect();
    let domains = domains.map_err(Failure::of_odd_read)?;
    match out.format() {
        Format::Table => out.tell(|| serde_json::Value::Null, || text::domains(&domains)),
        Format::Json => {
            let mut each = domains.iter();
            each.try_for_each(|domain| out.tell(|| json::domain(domain), String::new))
        }
    }
}

/// Shows what the destination says about itself.
pub(crate) async fn status(global: &Global, out: &mut Output) -> Result<(), Failure> {
    let mut remote = Remote::connect(global).await?;
    let request = remote.request(v1::StatusRequest {});
    let call = remote.client.status(request);
    let answer = Remote::answer(remote.timeout, Effect::Reads, call).await?;
    let own: ExpectedDestination =
        required(answer.destination.clone(), "destination").map_err(Failure::of_odd_read)?;
    let (id, incarnation) = (own.id.to_string(), own.incarnation.to_string());
    out.tell(
        || json::status(&id, &incarnation, &answer),
        || text::status(&id, &incarnation, &answer),
    )
}
