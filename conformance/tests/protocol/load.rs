//! Many concurrent sessions and calls: a small run of `plexus-load`.

use plexus_mcp_protocol::Revision;
use plexus_testkit::{HttpClient, run};

use crate::support::listening;

#[tokio::test]
async fn many_sessions_and_calls_do_not_mix() {
    let server = listening(&[]).await;
    let address = HttpClient::new(server.url(), Revision::V2025_06_18).address();
    let pid = server.pid().unwrap().to_string();
    let arguments = [
        &address.to_string(),
        "--sessions=200",
        "--streams=50",
        "--calls=100",
        "--takes=400",
        "--pid",
        &pid,
    ];
    let finished = run(env!("CARGO_BIN_EXE_plexus-load"), &arguments).await;
    let (code, output, log) = (finished.code, finished.output, finished.log);
    assert_eq!(code, Some(0), "{output}\n{log}");
    for line in [
        "200 idle sessions",
        "50 of them with an open stream",
        "100 calls in flight",
        "every answer matched its request; every session lives",
    ] {
        assert!(output.contains(line), "{output}");
    }
}
