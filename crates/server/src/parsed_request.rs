//! A request with its parameters parsed.

use plexus_mcp_core::Fault;
use plexus_mcp_protocol::RequestMeta;
use plexus_mcp_wire::{DecodeError, Id, Object, Raw, Request};

/// A request whose parameters and metadata are parsed, once for all code that reads them.
pub(crate) struct ParsedRequest {
    pub(crate) id: Id,
    pub(crate) method: Box<str>,
    /// The parameters as they arrived.
    pub(crate) raw: Option<Raw>,
    pub(crate) params: Object,
    pub(crate) meta: RequestMeta,
}

impl ParsedRequest {
    /// Parses a request.
    ///
    /// # Errors
    /// The parameters or their metadata are malformed. The error comes with the id of the request.
    pub(crate) fn read(request: Request) -> Result<Self, (Id, Fault)> {
        let Request { id, method, params } = request;
        match read(params.as_ref()) {
            Ok((members, meta)) => Ok(Self {
                id,
                method,
                raw: params,
                params: members,
                meta,
            }),
            Err(fault) => Err((id, fault)),
        }
    }

    /// A request whose parameters are an array (native view).
    pub(crate) fn positional(request: Request) -> Self {
        let Request { id, method, params } = request;
        Self {
            id,
            method,
            raw: params,
            params: Object::new(),
            meta: RequestMeta::default(),
        }
    }
}

fn read(params: Option<&Raw>) -> Result<(Object, RequestMeta), Fault> {
    let Some(params) = params else {
        return Ok((Object::new(), RequestMeta::default()));
    };
    let malformed = |error| Fault::InvalidParams(format!("params: {error}"));
    let params = Object::parse(params).map_err(malformed)?;
    let meta = RequestMeta::read(&params)?;
    Ok((params, meta))
}

/// The error that answers bytes which are not a JSON-RPC message.
pub(crate) fn decode_fault(error: DecodeError) -> Fault {
    match error {
        DecodeError::TooLarge { limit } => Fault::TooLarge { limit },
        DecodeError::NotUtf8 | DecodeError::Syntax { .. } => Fault::Parse(error.to_string()),
        other => Fault::InvalidRequest(other.to_string()),
    }
}
