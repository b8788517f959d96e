//! The limits of connections: slow clients, large requests, many connections.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_slow_head_is_cut_off() {
    let limits = Limits::default();
    let (server, connections) = Server::in_memory(limits.clone());
    let mut client = connect(&connections).await;
    let start = Instant::now();
    let head = "POST /echo HTTP/1.1\r\nHost: localhost\r\nX-Slow: ";
    let mut ticks = tokio::time::interval(limits.head_time / 100);
    for byte in head.bytes() {
        send(&mut client, std::str::from_utf8(&[byte]).unwrap()).await;
        ticks.tick().await;
    }
    assert_eq!(client.read(&mut [0; 1]).await.unwrap(), 0);
    assert_eq!(start.elapsed(), limits.head_time);
    assert_eq!(server.stage.requests.load(Ordering::Relaxed), 0);
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_is_closed() {
    let limits = Limits::default();
    let (_server, connections) = Server::in_memory(limits.clone());
    let mut client = connect(&connections).await;
    echo(&mut client).await;
    let start = Instant::now();
    assert_eq!(client.read(&mut [0; 1]).await.unwrap(), 0);
    assert_eq!(start.elapsed(), limits.head_time);
}

#[tokio::test]
async fn a_large_head_is_431() {
    let limits = Limits {
        head_bytes: 4096,
        ..Limits::default()
    };
    let (server, address) = Server::tcp(limits).await;
    let one_large = format!("X-Large: {}\r\n", "x".repeat(5000));
    let many_small = "X-Small: x\r\n".repeat(101);
    for fields in [one_large, many_small] {
        let mut client = TcpStream::connect(address).await.unwrap();
        let head = format!("POST /echo HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n");
        send(&mut client, &head).await;
        let answer = read_to_end(&mut client).await;
        assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
    }
    assert_eq!(server.stage.requests.load(Ordering::Relaxed), 0);
    echo(&mut TcpStream::connect(address).await.unwrap()).await;
}

#[tokio::test]
async fn a_body_announced_as_too_large_is_413_unread() {
    let (_server, address) = Server::tcp(Limits::default()).await;
    let mut client = TcpStream::connect(address).await.unwrap();
    let head = "POST /echo HTTP/1.1\r\nHost: localhost\r\n\
                Expect: 100-continue\r\nContent-Length: 1001\r\n\r\n";
    send(&mut client, head).await;
    let answer = read_to_end(&mut client).await;
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
    assert!(answer.contains("\r\nconnection: close\r\n"), "{answer}");
    assert!(answer.ends_with("larger than 1000 bytes"), "{answer}");
}

/// Clients that write all before they read still get the answer, not a reset.
#[tokio::test]
async fn a_body_that_turns_out_too_large_is_413() {
    let (_server, address) = Server::tcp(Limits::default()).await;
    let content = "x".repeat(8 << 20);
    let announced = post("/echo", &content);
    let chunked = format!(
        "POST /echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n\
         {:x}\r\n{content}\r\n0\r\n\r\n",
        content.len()
    );
    for request in [announced, chunked] {
        let mut client = TcpStream::connect(address).await.unwrap();
        send(&mut client, &request).await;
        let answer = read_to_end(&mut client).await;
        assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_that_stops_is_408() {
    let (_server, connections) = Server::in_memory(Limits::default());
    let mut client = connect(&connections).await;
    let start = Instant::now();
    let request = post("/echo", "{\"unfinished\":true}");
    send(&mut client, request.strip_suffix('}').unwrap()).await;
    let answer = read_to_end(&mut client).await;
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    assert!(answer.contains("\r\nconnection: close\r\n"), "{answer}");
    assert_eq!(start.elapsed(), BODY_LIMITS.idle);
}

#[tokio::test(start_paused = true)]
async fn a_body_without_end_is_408() {
    let (_server, connections) = Server::in_memory(Limits::default());
    let client = connect(&connections).await;
    let (mut answers, mut requests) = tokio::io::split(client);
    let start = Instant::now();
    let head = "POST /echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
    send(&mut requests, head).await;
    let trickle = async {
        // Each piece comes before the idle limit, so only the limit on the whole can end this.
        let mut ticks = tokio::time::interval(BODY_LIMITS.idle / 2);
        while requests.write_all(b"1\r\nx\r\n").await.is_ok() {
            ticks.tick().await;
        }
    };
    let mut answer = [0; 13];
    tokio::select! {
        () = trickle => panic!("the connection was closed without an answer"),
        read = answers.read_exact(&mut answer) => read.unwrap(),
    };
    assert_eq!(&answer, b"HTTP/1.1 408 ");
    assert_eq!(start.elapsed(), BODY_LIMITS.total);
}

#[tokio::test]
async fn a_truncated_body_is_refused_and_the_server_continues() {
    let (_server, address) = Server::tcp(Limits::default()).await;
    let mut client = TcpStream::connect(address).await.unwrap();
    let request = post("/echo", "{\"unfinished\":true}");
    send(&mut client, request.strip_suffix('}').unwrap()).await;
    client.shutdown().await.unwrap();
    let answer = read_to_end(&mut client).await;
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    echo(&mut TcpStream::connect(address).await.unwrap()).await;
}

#[tokio::test]
async fn connections_beyond_the_cap_wait_their_turn() {
    let limits = Limits {
        connections: 1,
        ..Limits::default()
    };
    let (server, address) = Server::tcp(limits).await;
    let mut first = TcpStream::connect(address).await.unwrap();
    send(&mut first, &post("/wait", "")).await;
    soon(server.stage.waiting.notified()).await;
    let mut second = TcpStream::connect(address).await.unwrap();
    send(&mut second, &post("/echo", "{}")).await;
    // Long enough for the first connection to be evicted, if that were possible.
    let waited = timeout(Duration::from_millis(300), second.read_u8()).await;
    assert!(
        waited.is_err(),
        "a connection with a request is not evicted"
    );
    server.stage.proceed.notify_one();
    assert!(read_answer(&mut first).await.ends_with("waited"));
    assert!(read_answer(&mut second).await.ends_with("{}"));
}

/// A client that sends many requests without reading a response makes room for a new one.
#[tokio::test]
async fn pipelined_requests_make_room() {
    let limits = Limits {
        connections: 1,
        ..Limits::default()
    };
    let (server, address) = Server::tcp(limits).await;
    let mut pipelining = TcpStream::connect(address).await.unwrap();
    let requests = post("/echo", "{}") + &post("/wait", "");
    send(&mut pipelining, &requests).await;
    soon(server.stage.waiting.notified()).await;
    let mut client = TcpStream::connect(address).await.unwrap();
    echo(&mut client).await;
}

/// A burst of connections waits to be accepted; the system does not drop a part of it.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_burst_of_connections_is_not_dropped() {
    let listener = Listener::bind(&["127.0.0.1:0".parse().unwrap()])
        .await
        .unwrap();
    let mut waiting = Vec::new();
    for _ in 0..300 {
        let connecting = TcpStream::connect(listener.addresses()[0]);
        waiting.push(soon(connecting).await.unwrap());
    }
}

/// After a failure to accept, for example without free descriptors, the server pauses and goes on.
#[tokio::test(start_paused = true)]
async fn failures_to_accept_are_waited_out() {
    let (_server, connections) = Server::in_memory(Limits::default());
    let start = Instant::now();
    for _ in 0..3 {
        let failure = io::Error::other("too many open files");
        connections.send(Err(failure)).await.unwrap();
    }
    let aborted = io::Error::from(io::ErrorKind::ConnectionAborted);
    connections.send(Err(aborted)).await.unwrap();
    let mut client = connect(&connections).await;
    echo(&mut client).await;
    let pauses = [10, 20, 40].map(Duration::from_millis);
    assert_eq!(start.elapsed(), pauses.iter().sum());
}

/// A connection that is idle, or whose client does not read, makes room for a new one.
#[tokio::test(start_paused = true)]
async fn idle_and_unread_connections_make_room() {
    let limits = Limits {
        connections: 2,
        ..Limits::default()
    };
    let (_server, connections) = Server::in_memory(limits);
    let mut unread = connect(&connections).await;
    send(&mut unread, &post("/large", "")).await;
    let mut idle = connect(&connections).await;
    echo(&mut idle).await;
    let start = Instant::now();
    let mut held = Vec::new();
    for _ in 0..4 {
        let mut client = connect(&connections).await;
        echo(&mut client).await;
        held.push(client);
    }
    assert!(
        start.elapsed() < Duration::from_secs(1),
        "{:?}",
        start.elapsed()
    );
    let received = read_to_end(&mut unread).await;
    assert!(received.len() < LARGE_BODY_BYTES, "it was closed unread");
    assert_eq!(idle.read(&mut [0; 1]).await.unwrap(), 0);
}

/// The time for reading a response begins again with each piece that the client reads.
#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_is_disconnected() {
    let limits = Limits::default();
    let (_server, connections) = Server::in_memory(limits.clone());
    let mut slow = connect(&connections).await;
    let mut silent = connect(&connections).await;
    for client in [&mut slow, &mut silent] {
        send(client, &post("/large", "")).await;
    }
    let mut received = 0;
    while received < LARGE_BODY_BYTES / 2 {
        tokio::time::sleep(limits.write_stall * 9 / 10).await;
        let mut piece = vec![0; 32 * 1024];
        received += slow.read(&mut piece).await.unwrap();
    }
    let mut rest = Vec::new();
    slow.read_to_end(&mut rest).await.unwrap();
    assert!(
        received + rest.len() > LARGE_BODY_BYTES,
        "a slow client gets all"
    );
    let received = read_to_end(&mut silent).await;
    assert!(received.len() < LARGE_BODY_BYTES, "{}", received.len());
}

/// Responses that are not read are limited together. The client that did not read for the longest time
/// is disconnected, and the newest gets its response.
#[tokio::test(start_paused = true)]
async fn unread_responses_are_limited_in_bytes() {
    let limits = Limits {
        unread_bytes: 2 * LARGE_BODY_BYTES,
        ..Limits::default()
    };
    let (_server, connections) = Server::in_memory(limits);
    let mut clients = Vec::new();
    for _ in 0..3 {
        let mut client = connect(&connections).await;
        send(&mut client, &post("/large", "")).await;
        tokio::time::sleep(Duration::from_millis(10)).await;
        clients.push(client);
    }
    let mut complete = Vec::new();
    for client in &mut clients {
        complete.push(read_to_end_or_idle(client).await > LARGE_BODY_BYTES);
    }
    assert_eq!(complete, [false, false, true]);
}

/// How many bytes come before the connection is closed or idle.
async fn read_to_end_or_idle(client: &mut DuplexStream) -> usize {
    let mut received = Vec::new();
    let read = client.read_to_end(&mut received);
    drop(timeout(Duration::from_secs(5), read).await);
    received.len()
}
