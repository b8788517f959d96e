//! A request on its way to whoever answers it.

use std::borrow::Cow;

use plexus_mcp::{RequestMeta, method};
use plexus_service::Fault;
use plexus_wire::{Id, Object, Params, Raw, Request};

/// A request whose parameters are taken apart, once for everybody who looks into them.
pub(crate) struct Asked {
    pub(crate) id: Id,
    pub(crate) method: Cow<'static, str>,
    /// The parameters as they arrived.
    pub(crate) raw: Option<Raw>,
    pub(crate) params: Object,
    pub(crate) meta: RequestMeta,
}

impl Asked {
    /// Takes a request apart.
    ///
    /// # Errors
    /// The parameters or their metadata are malformed; then the request's id is told as well.
    pub(crate) fn read(request: Request) -> Result<Self, (Id, Fault)> {
        let Request { id, method, params } = request;
        let raw = params.as_deref().cloned();
        match read(params) {
            Ok((params, meta)) => Ok(Self {
                id,
                method: method::named(&method),
                raw,
                params,
                meta,
            }),
            Err(fault) => Err((id, fault)),
        }
    }

    /// A request whose parameters have places instead of names.
    pub(crate) fn positional(request: Request) -> Self {
        let Request { id, method, params } = request;
        Self {
            id,
            method: method::named(&method),
            raw: params.map(Params::into_raw),
            params: Object::new(),
            meta: RequestMeta::default(),
        }
    }
}

fn read(params: Option<Params>) -> Result<(Object, RequestMeta), Fault> {
    let Some(params) = params else {
        return Ok((Object::new(), RequestMeta::default()));
    };
    let malformed = |error| Fault::InvalidParams(format!("params: {error}"));
    let mut params = params.into_object().map_err(malformed)?;
    let meta = RequestMeta::read(&mut params)?;
    Ok((params, meta))
}
