//! The codec of the calls. It looks at a request before it decodes it, and refuses what says more
//! than is known here, and what has too many parts: an empty part is two bytes on the wire and a
//! hundred times that in memory, so a bound on bytes is none on memory.

use std::marker::PhantomData;

use bytes::Buf;
use prost::Message;
use tonic::codec::{Codec, DecodeBuf, Decoder};
use tonic::{Code, Status};
use tonic_prost::{ProstDecoder, ProstEncoder};

use crate::shape::{Misfit, Shaped};
use crate::status::not_executed;

/// Most parts of one request: its messages and items of lists, such as commits, mutations,
/// conditions, labels, authorities and guards, all together. The largest commit has about half as
/// many.
pub(crate) const PARTS_MAX: usize = 128 << 10;

/// Encodes as Protobuf, and decodes what is of the shape and has no more than [`PARTS_MAX`] parts.
#[derive(Debug)]
pub(crate) struct BoundedCodec<T, U>(PhantomData<(T, U)>);

impl<T, U> Default for BoundedCodec<T, U> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

/// The deciding half of [`BoundedCodec`].
#[derive(Debug)]
pub(crate) struct BoundedDecoder<U>(ProstDecoder<U>);

impl<T, U> Codec for BoundedCodec<T, U>
where
    T: Message + Send + 'static,
    U: Message + Default + Shaped + Send + 'static,
{
    type Encode = T;
    type Decode = U;
    type Encoder = ProstEncoder<T>;
    type Decoder = BoundedDecoder<U>;

    fn encoder(&mut self) -> Self::Encoder {
        ProstEncoder::default()
    }

    fn decoder(&mut self) -> Self::Decoder {
        BoundedDecoder(ProstDecoder::default())
    }
}

impl<U: Message + Default + Shaped> Decoder for BoundedDecoder<U> {
    type Item = U;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<U>, Status> {
        if let Some(shape) = U::SHAPE {
            // A message lies in one piece; were it not to, nothing could be said of it.
            let is_whole = buffer.chunk().len() == buffer.remaining();
            let (message, max) = (shape.name, PARTS_MAX);
            if !is_whole {
                return Err(refusal(Misfit::Unreadable { message }));
            }
            shape.check(buffer.chunk(), max).map_err(refusal)?;
        }
        self.0.decode(buffer)
    }
}

fn refusal(misfit: Misfit) -> Status {
    let code = match misfit {
        Misfit::TooMany { .. } => Code::ResourceExhausted,
        Misfit::Unknown { .. } | Misfit::Unreadable { .. } => Code::InvalidArgument,
    };
    not_executed(code, &misfit.to_string())
}
