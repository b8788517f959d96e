//! The authorization server of the tests, as a process of its own: for clients that are not ours.
//!
//! It listens on a port that the system chooses, says so on standard error, and serves until it is
//! ended. Its one user, who agrees to everything, is alice.

use std::io::{self, Write};

use plexus_testkit::authorization_server::{AuthorizationServer, Behaviour};

#[tokio::main]
async fn main() -> io::Result<()> {
    let behaviour = Behaviour {
        // Clients of before 2026-07-28 do not say it.
        wants_application_type: false,
        ..Behaviour::default()
    };
    let server = AuthorizationServer::start(behaviour).await;
    writeln!(io::stderr(), "listening on {}", server.issuer())?;
    std::future::pending().await
}
