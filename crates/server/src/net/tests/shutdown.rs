//! Shutdown: idle connections are closed, and answers in progress are finished.

use super::*;

#[tokio::test]
async fn idle_connections_close_and_answers_finish() {
    let (server, address) = Server::tcp(Limits::default()).await;
    let mut idle = TcpStream::connect(address).await.unwrap();
    echo(&mut idle).await;
    let mut busy = TcpStream::connect(address).await.unwrap();
    send(&mut busy, &post("/wait", "")).await;
    soon(server.stage.waiting.notified()).await;

    server.shutdown.cancel();
    assert_eq!(read_to_end(&mut idle).await, "");
    drop(idle);
    assert!(!server.serving.is_finished());
    assert!(TcpStream::connect(address).await.is_err());

    server.stage.proceed.notify_one();
    let answer = read_to_end(&mut busy).await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert!(answer.ends_with("waited"), "{answer}");
    drop(busy);
    soon(server.serving).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn requests_that_exceed_the_drain_time_are_dropped() {
    let limits = Limits::default();
    let (server, connections) = Server::in_memory(limits.clone());
    let mut client = connect(&connections).await;
    send(&mut client, &post("/wait", "")).await;
    server.stage.waiting.notified().await;

    let start = Instant::now();
    server.shutdown.cancel();
    server.serving.await.unwrap();
    assert_eq!(start.elapsed(), limits.drain);
    assert!(server.stage.dropped.is_cancelled());
    assert_eq!(client.read(&mut [0; 1]).await.unwrap(), 0);
}

/// A client that does not close its connection does not delay the shutdown.
#[tokio::test(start_paused = true)]
async fn a_client_that_stays_is_left_behind() {
    let (server, connections) = Server::in_memory(Limits::default());
    let mut client = connect(&connections).await;
    echo(&mut client).await;
    let start = Instant::now();
    server.shutdown.cancel();
    server.serving.await.unwrap();
    assert!(start.elapsed() < Limits::default().drain);
}

#[tokio::test]
async fn dropping_the_server_drops_its_connections() {
    let (server, address) = Server::tcp(Limits::default()).await;
    let mut client = TcpStream::connect(address).await.unwrap();
    send(&mut client, &post("/wait", "")).await;
    soon(server.stage.waiting.notified()).await;
    server.serving.abort();
    soon(server.stage.dropped.cancelled()).await;
    assert_eq!(read_to_end(&mut client).await, "");
}
