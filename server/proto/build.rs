//! Generates the messages and stubs from the `.proto` files, without an installed `protoc`, and
//! what the codec has to know of the requests that it looks into before it decodes them.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::PathBuf;

use prost::Message;
use prost_types::field_descriptor_proto::Label;
use prost_types::{DescriptorProto, FieldDescriptorProto, FileDescriptorSet};

const FILES: [&str; 7] = [
    "highwater/v1/work.proto",
    "highwater/v1/types.proto",
    "highwater/v1/intent.proto",
    "highwater/v1/lease.proto",
    "highwater/v1/domain.proto",
    "highwater/v1/rejection.proto",
    "highwater/v1/highwater.proto",
];

/// The requests that only read and carry no authority. A server may leave out what it doesn't know
/// of them. Every other request is refused where it says something unknown, since that could be a
/// condition.
const PLAIN: [&str; 6] = [
    "GetDomainRequest",
    "GetFenceRequest",
    "GetLeaseRequest",
    "ListDomainsRequest",
    "StatusRequest",
    "WatchRequest",
];

/// What no plain request holds.
const AUTHORITY: &str = ".highwater.v1.Authority";

/// Every message by its full name, with the dot that the names of types begin with.
type Messages<'a> = BTreeMap<String, &'a DescriptorProto>;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=proto");
    let descriptors = protox::compile(FILES, ["proto"])?;
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    std::fs::write(
        out.join("highwater_descriptor.bin"),
        descriptors.encode_to_vec(),
    )?;
    std::fs::write(out.join("shapes.rs"), shapes(&descriptors)?)?;
    tonic_prost_build::configure()
        .bytes(".highwater.v1")
        .btree_map(".highwater.v1")
        .client_mod_attribute(".", "#[cfg(feature = \"client\")]")
        .server_mod_attribute(".", "#[cfg(feature = \"server\")]")
        .build_transport(false)
        .codec_path("crate::codec::BoundedCodec")
        .compile_fds(descriptors)?;
    Ok(())
}

/// The shape of every message that a checked request can hold, as constants in Rust, and for each
/// message that is sent by itself, which shape it must have.
fn shapes(descriptors: &FileDescriptorSet) -> Result<String, Box<dyn Error>> {
    let mut messages = Messages::new();
    for file in &descriptors.file {
        let scope = format!(".{}", file.package());
        collect(&scope, &file.message_type, &mut messages);
    }
    let services = descriptors.file.iter().flat_map(|file| &file.service);
    let mut written = BTreeMap::new();
    let mut sent = BTreeMap::new();
    for method in services.flat_map(|service| &service.method) {
        sent.insert(method.output_type(), None);
        let request = method.input_type();
        let mut parts = BTreeMap::new();
        write(request, &messages, &mut Vec::new(), &mut parts)?;
        let is_plain = PLAIN
            .iter()
            .any(|plain| request == format!(".highwater.v1.{plain}"));
        if is_plain && parts.contains_key(AUTHORITY) {
            return Err(format!("{request} carries an authority and isn't plain").into());
        }
        sent.insert(request, (!is_plain).then(|| constant(request)));
        if !is_plain {
            written.extend(parts);
        }
    }
    let sent = sent.into_iter().map(|(name, shape)| {
        let name = name.trim_start_matches(".highwater.v1.");
        let is = shape.map_or("None".into(), |shape| format!("Some(&{shape})"));
        format!(
            "impl Shaped for crate::v1::{name} {{ \
             const SHAPE: Option<&'static Shape> = {is}; }}\n"
        )
    });
    Ok(written.into_values().chain(sent).collect())
}

fn collect<'a>(scope: &str, found: &'a [DescriptorProto], messages: &mut Messages<'a>) {
    for message in found {
        let name = format!("{scope}.{}", message.name());
        collect(&name, &message.nested_type, messages);
        messages.insert(name, message);
    }
}

/// Writes the shape of a message and of all that is in it, each once. A message that can hold
/// itself would let a request decide how deep the look into it goes: refused.
fn write(
    name: &str,
    messages: &Messages<'_>,
    above: &mut Vec<String>,
    written: &mut BTreeMap<String, String>,
) -> Result<(), Box<dyn Error>> {
    if above.iter().any(|outer| outer == name) {
        return Err(format!("{name} can hold itself").into());
    }
    if written.contains_key(name) {
        return Ok(());
    }
    let message = messages
        .get(name)
        .ok_or_else(|| format!("no message {name}"))?;
    above.push(name.into());
    let mut fields = BTreeMap::new();
    for field in &message.field {
        if messages.contains_key(field.type_name()) {
            write(field.type_name(), messages, above, written)?;
        }
        fields.insert(field.number(), kind(field, messages));
    }
    above.pop();
    let last = fields.keys().next_back().copied().unwrap_or(0);
    let listed = (0..=last).map(|number| match fields.remove(&number) {
        Some(kind) => format!("{kind},"),
        None => "Field::Unknown,".into(),
    });
    let (constant, listed) = (constant(name), listed.collect::<String>());
    let full = name.trim_start_matches('.');
    let text = format!(
        "pub(crate) static {constant}: Shape = Shape {{ name: {full:?}, fields: &[{listed}] }};\n"
    );
    written.insert(name.into(), text);
    Ok(())
}

fn kind(field: &FieldDescriptorProto, messages: &Messages<'_>) -> String {
    if messages.contains_key(field.type_name()) {
        format!("Field::Message(&{})", constant(field.type_name()))
    } else if field.label() == Label::Repeated {
        "Field::Item".into()
    } else {
        "Field::Plain".into()
    }
}

/// `.highwater.v1.GetRequest` as `GET_REQUEST`.
fn constant(name: &str) -> String {
    let mut constant = String::new();
    for character in name.trim_start_matches(".highwater.v1.").chars() {
        if character.is_ascii_uppercase() && !constant.is_empty() {
            constant.push('_');
        }
        constant.push(if character == '.' {
            '_'
        } else {
            character.to_ascii_uppercase()
        });
    }
    constant
}
