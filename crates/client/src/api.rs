//! Calling one server from a program, without a hub.

use plexus_mcp_core::Client;

use crate::child::Program;
use crate::connect::ConnectError;
use crate::definition::{Definition, HttpTarget, Target};
use crate::upstream::Upstream;

/// Connects a server, and gives a client with which it can be called. The connection, and the
/// process of a program, end with the last clone of the client.
///
/// To answer what the server asks during a call, see [`Client::with_handler`].
///
/// # Errors
/// See [`ConnectError`].
pub async fn connect(server: impl Into<Definition>) -> Result<Client, ConnectError> {
    let upstream = Upstream::new(server.into());
    upstream.connect().await?;
    Ok(upstream.client())
}

impl Upstream {
    /// A typed client of this server.
    pub fn client(&self) -> Client {
        Client::new(self.clone())
    }
}

impl From<Program> for Definition {
    fn from(program: Program) -> Self {
        Self::new(Target::Stdio(program))
    }
}

impl From<HttpTarget> for Definition {
    fn from(target: HttpTarget) -> Self {
        Self::new(Target::Http(target))
    }
}
