//! A bare reverse proxy: bytes go both ways, and nobody looks at them.

use std::net::SocketAddr;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::LocalSet;

use super::runtime;

/// Gives each connection one of its own to `upstream`.
pub(crate) fn serve(address: SocketAddr, upstream: SocketAddr) -> anyhow::Result<()> {
    let runtime = runtime()?;
    LocalSet::new().block_on(&runtime, async {
        let listener = TcpListener::bind(address).await?;
        loop {
            let (client, _) = listener.accept().await?;
            // Whoever hangs up has what he wanted.
            tokio::task::spawn_local(async move { drop(join(client, upstream).await) });
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
