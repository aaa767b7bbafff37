//! The arguments about intents, and the mutations that they make.

use clap::{Args, Subcommand, ValueEnum};
use highwater::{
    Commit, Configuration, Digest, DomainName, Ending, Generation, Guard, Input, InputName,
    IntentId, Key, Mutation, Owner, Step, Work, unescape,
};
use highwater_client::IntentFilter;

use super::input::{self, Encoding, InputError};

/// Which step of which intent a commit is.
#[derive(Args, Debug, Default)]
#[command(next_help_heading = "Intent")]
pub(crate) struct StepArgs {
    /// Make this a step of an intent: sent again, it takes effect once at most and gets the first
    /// receipt again
    #[arg(long, value_name = "ID", value_parser = intent)]
    pub(crate) intent: Option<IntentId>,
    /// With --intent: which step, 1 to 64 [default: 1]
    #[arg(long, value_name = "N", requires = "intent", value_parser = step)]
    pub(crate) step: Option<Step>,
    /// With --intent: the intent is completed by it
    #[arg(long, requires = "intent")]
    pub(crate) complete: bool,
}

/// What to do with intents.
#[derive(Subcommand, Debug)]
pub(crate) enum IntentCommand {
    /// Record, under --authority, which work an intent is for, before that starts
    Bind(BindArgs),
    /// Show an intent: its state, its binding, and the receipts of its steps
    Show {
        /// The domain
        domain: String,
        /// The intent
        #[arg(value_parser = intent)]
        intent: IntentId,
    },
    /// List intents in brief, ordered by id
    List(ListArgs),
    /// End an intent, for ever
    Close(CloseArgs),
    /// Make an intent indeterminate, or give an indeterminate one another owner and time of review
    Suspend(SuspendArgs),
    /// Say what became of intents; with --authority and --guard that guard is fenced first, so that
    /// what is absent stays so
    Reconcile(ReconcileArgs),
    /// End an indeterminate intent as it is known by now to have gone; refuses an open one
    Resolve(CloseArgs),
}

/// Intents to find out about.
#[derive(Args, Debug)]
pub(crate) struct ReconcileArgs {
    /// The domain
    pub(crate) domain: String,
    /// The intents
    #[arg(required = true, value_parser = intent)]
    pub(crate) intents: Vec<IntentId>,
    /// The guard that their effects lie under, to be fenced with --authority (empty for that of a
    /// whole domain); without it this is a plain look
    #[arg(long)]
    pub(crate) guard: Option<String>,
}

/// An intent and its work.
#[derive(Args, Debug)]
pub(crate) struct BindArgs {
    /// The domain
    pub(crate) domain: String,
    /// The intent
    #[arg(value_parser = intent)]
    pub(crate) intent: IntentId,
    /// The guard that the work is done under (empty for that of a whole domain)
    #[arg(long)]
    pub(crate) guard: String,
    /// A key that the work starts from, and its generation (0: it doesn't exist; repeat)
    #[arg(long, value_name = "KEY=N", value_parser = input_key)]
    pub(crate) input_key: Vec<(String, Version)>,
    /// Something else that it starts from, and its digest of 64 hexadecimal digits (repeat)
    #[arg(long, value_name = "NAME=HEX", value_parser = input_named)]
    pub(crate) input: Vec<(InputName, Digest)>,
    /// The version of the configuration that it is done under
    #[arg(long, value_name = "VERSION", value_parser = configuration)]
    pub(crate) configuration: Option<Configuration>,
    /// Only say what it would get
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// Which intents are listed.
#[derive(Args, Debug)]
pub(crate) struct ListArgs {
    /// The domain
    pub(crate) domain: String,
    /// Only those in this state
    #[arg(long, value_enum)]
    pub(crate) state: Option<StateChoice>,
    /// Only indeterminate ones whose review is due before this time, in milliseconds since 1970
    #[arg(long, value_name = "MS", value_parser = milliseconds)]
    pub(crate) due_before: Option<u64>,
    /// Most intents
    #[arg(long)]
    pub(crate) limit: Option<u64>,
}

/// A state to list.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum StateChoice {
    /// Takes its next step
    Open,
    /// Nobody knows what became of it
    Indeterminate,
    /// Has ended
    Ended,
}

/// How an intent ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum EndingChoice {
    /// Everything that it meant was done
    Completed,
    /// Another intent took its place
    Superseded,
    /// Who wanted it doesn't want it any more
    Cancelled,
    /// It can't or mustn't be done
    Rejected,
}

/// An intent to end.
#[derive(Args, Debug)]
pub(crate) struct CloseArgs {
    /// The domain
    pub(crate) domain: String,
    /// The intent
    #[arg(value_parser = intent)]
    pub(crate) intent: IntentId,
    /// How it ends
    #[arg(long = "as", value_name = "ENDING", value_enum)]
    pub(crate) ending: EndingChoice,
    /// The guard that it is bound to, where it is bound
    #[arg(long)]
    pub(crate) guard: Option<String>,
    /// Only say what it would get
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// An intent to make indeterminate.
#[derive(Args, Debug)]
pub(crate) struct SuspendArgs {
    /// The domain
    pub(crate) domain: String,
    /// The intent
    #[arg(value_parser = intent)]
    pub(crate) intent: IntentId,
    /// Who has to resolve it
    #[arg(long, value_parser = owner)]
    pub(crate) owner: Owner,
    /// When it is to be looked at again, in milliseconds since 1970
    #[arg(long, value_name = "MS", value_parser = milliseconds)]
    pub(crate) review_at: u64,
    /// The guard that it is bound to, where it is bound
    #[arg(long)]
    pub(crate) guard: Option<String>,
    /// Only say what it would get
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// A generation, or `None` for "does not exist".
pub(crate) type Version = super::args::OrAbsent<Generation>;

fn bytes(text: &str) -> Result<Vec<u8>, InputError> {
    unescape(text).ok_or(InputError::Escape)
}

/// The id of an intent, in which `%XX` is a byte.
pub(crate) fn intent(text: &str) -> Result<IntentId, InputError> {
    Ok(IntentId::new(bytes(text)?)?)
}

/// The owner of an indeterminate intent.
pub(crate) fn owner(text: &str) -> Result<Owner, InputError> {
    Ok(Owner::new(bytes(text)?)?)
}

/// The version of a configuration.
pub(crate) fn configuration(text: &str) -> Result<Configuration, InputError> {
    Ok(Configuration::new(bytes(text)?)?)
}

/// The name of an input that isn't a key.
pub(crate) fn input_name(text: &str) -> Result<InputName, InputError> {
    Ok(InputName::new(bytes(text)?)?)
}

/// A time in milliseconds since 1970.
pub(crate) fn milliseconds(text: &str) -> Result<u64, InputError> {
    input::number("time", text)
}

fn step(text: &str) -> Result<Step, InputError> {
    let what = "step";
    let number = u32::try_from(input::number(what, text)?).ok();
    number
        .and_then(Step::new)
        .ok_or(InputError::Number { what })
}

/// `KEY=GENERATION`, divided at the last `=`.
fn input_key(text: &str) -> Result<(String, Version), InputError> {
    let form = "KEY=GENERATION";
    let (key, version) = text.rsplit_once('=').ok_or(InputError::Form { form })?;
    Ok((key.into(), super::args::generation(version)?))
}

/// `NAME=DIGEST`, divided at the last `=`.
fn input_named(text: &str) -> Result<(InputName, Digest), InputError> {
    let form = "NAME=DIGEST";
    let (name, digest) = text.rsplit_once('=').ok_or(InputError::Form { form })?;
    Ok((input_name(name)?, input::digest(digest)?))
}

fn guard(keys: Encoding, text: &str) -> Result<Guard, InputError> {
    Ok(Guard::new(keys.bytes(text)?)?)
}

fn named(keys: Encoding, text: Option<&String>) -> Result<Option<Guard>, InputError> {
    text.map(|text| guard(keys, text)).transpose()
}

fn only(domain: &str, mutation: Mutation) -> Result<Commit, InputError> {
    Ok(Commit::new(DomainName::new(domain)?).with(mutation))
}

impl StepArgs {
    /// The commit as the step that is named.
    pub(crate) fn apply(&self, commit: Commit) -> Result<Commit, InputError> {
        let Some(id) = &self.intent else {
            return Ok(commit);
        };
        if commit.intent.is_some() {
            return Err(InputError::Both {
                one: "--intent",
                other: "an intent in the commit",
            });
        }
        let commit = commit.for_intent(id.clone(), self.step.unwrap_or(Step::FIRST));
        Ok(if self.complete {
            commit.completing()
        } else {
            commit
        })
    }
}

impl BindArgs {
    /// The commit, without authority and destination.
    pub(crate) fn commit(&self, keys: Encoding) -> Result<Commit, InputError> {
        let mut work = Work::under(guard(keys, &self.guard)?);
        work.configuration.clone_from(&self.configuration);
        for (key, version) in &self.input_key {
            work = work.from_input(Input::Key {
                key: Key::new(keys.bytes(key)?)?,
                generation: version.0,
            });
        }
        for (name, digest) in self.input.iter().cloned() {
            work = work.from_input(Input::Named { name, digest });
        }
        let intent = self.intent.clone();
        only(&self.domain, Mutation::BindIntent { intent, work })
    }
}

impl CloseArgs {
    /// The commit, without authority and destination.
    pub(crate) fn commit(&self, keys: Encoding) -> Result<Commit, InputError> {
        let (intent, guard) = (self.intent.clone(), named(keys, self.guard.as_ref())?);
        let ending = match self.ending {
            EndingChoice::Completed => Ending::Completed,
            EndingChoice::Superseded => Ending::Superseded,
            EndingChoice::Cancelled => Ending::Cancelled,
            EndingChoice::Rejected => Ending::Rejected,
        };
        only(
            &self.domain,
            Mutation::CloseIntent {
                intent,
                guard,
                ending,
            },
        )
    }
}

impl SuspendArgs {
    /// The commit, without authority and destination.
    pub(crate) fn commit(&self, keys: Encoding) -> Result<Commit, InputError> {
        let mutation = Mutation::SuspendIntent {
            intent: self.intent.clone(),
            guard: named(keys, self.guard.as_ref())?,
            owner: self.owner.clone(),
            review_at_ms: self.review_at,
        };
        only(&self.domain, mutation)
    }
}

impl ListArgs {
    /// The filter. A time alone means the intents that it can be about.
    pub(crate) fn filter(&self) -> Result<IntentFilter, InputError> {
        let due_before_ms = self.due_before;
        match (self.state, due_before_ms) {
            (None, None) => Ok(IntentFilter::All),
            (Some(StateChoice::Open), None) => Ok(IntentFilter::Open),
            (Some(StateChoice::Ended), None) => Ok(IntentFilter::Ended),
            (Some(StateChoice::Indeterminate), _) | (None, Some(_)) => {
                Ok(IntentFilter::Indeterminate { due_before_ms })
            }
            (Some(StateChoice::Open | StateChoice::Ended), Some(_)) => Err(InputError::Both {
                one: "--due-before",
                other: "a --state other than indeterminate",
            }),
        }
    }
}
