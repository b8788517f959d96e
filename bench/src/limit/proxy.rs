//! A bare TCP reverse proxy: it forwards bytes both ways without parsing them.

use std::net::SocketAddr;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};

use super::{runtime, spawn};

/// Opens a connection to `upstream` for each client connection.
pub(crate) fn serve(address: SocketAddr, upstream: SocketAddr) -> anyhow::Result<()> {
    runtime()?.block_on(async {
        let listener = TcpListener::bind(address).await?;
        loop {
            let (client, _) = listener.accept().await?;
            // A client that closes the connection is not an error.
            spawn(async move { drop(join(client, upstream).await) });
        }
    })
}

async fn join(mut client: TcpStream, upstream: SocketAddr) -> std::io::Result<()> {
    client.set_nodelay(true)?;
    let mut server = TcpStream::connect(upstream).await?;
    server.set_nodelay(true)?;
    copy_bidirectional(&mut client, &mut server).await?;
    Ok(())
}
