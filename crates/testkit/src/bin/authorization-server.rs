//! The authorization server of the tests as a separate process, for third-party clients.
//!
//! It listens on a free port, prints its URL on standard error, and runs until it is killed. Its
//! only user, alice, consents to everything.

use std::io::{self, Write};

use plexus_testkit::authorization_server::{AuthorizationServer, Behaviour};

#[tokio::main]
async fn main() -> io::Result<()> {
    let behaviour = Behaviour {
        // Clients before 2026-07-28 do not send the application type.
        wants_application_type: false,
        ..Behaviour::default()
    };
    let server = AuthorizationServer::start(behaviour).await;
    writeln!(io::stderr(), "listening on {}", server.issuer())?;
    std::future::pending().await
}
