//! Changes of the configuration under load.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use plexus_testkit::server::{Process, StdioServer};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::servers::{TEST_TIMEOUT, call, echoing, hub, server, tool_params};

const CHANGES: usize = 100;
const CALLS: usize = 50;

/// S001-36, S004-13, S004-53, C38, C35: a hundred changes while fifty calls are in flight. Every
/// call gets its own result; none reaches a server twice; no process is left.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_call_is_lost_or_made_twice() {
    let (steady, changing, passing) = (echoing().await, echoing().await, echoing().await);
    let hub = hub();
    let members = |change: usize| {
        let fingerprint = u8::try_from(change % 250).unwrap() + 1;
        let mut members = vec![server("steady", &steady, 0)];
        members.push(server("changing", &changing, fingerprint));
        if change.is_multiple_of(2) {
            members.push(server("passing", &passing, 0));
        }
        members
    };
    hub.set_members(members(0)).await;
    hub.connect_all().await;

    let numbers = Arc::new(AtomicUsize::new(0));
    let over = Arc::new(AtomicBool::new(false));
    let mut callers = JoinSet::new();
    for caller in 0..CALLS {
        let (hub, numbers, over) = (hub.clone(), Arc::clone(&numbers), Arc::clone(&over));
        callers.spawn(async move {
            let tool = ["steady__work", "changing__work"][caller % 2];
            let mut made = Vec::new();
            while !over.load(Ordering::Relaxed) {
                let n = numbers.fetch_add(1, Ordering::Relaxed);
                let said = call(&hub, "tools/call", &tool_params(tool, n)).await;
                let said = said.unwrap_or_else(|fault| panic!("{tool}: {fault}"));
                assert!(said.contains(&format!("\"n\":{n}}}")), "{n}: {said}");
                made.push(n);
            }
            made
        });
    }
    // Every generation has its own process, which reports the messages it received.
    let mut processes = vec![steady.process().await];
    for change in 1..=CHANGES {
        // The last one has been used, so there is a process that must end.
        processes.push(timeout(TEST_TIMEOUT, changing.process()).await.unwrap());
        hub.set_members(members(change)).await;
    }
    processes.push(timeout(TEST_TIMEOUT, changing.process()).await.unwrap());
    over.store(true, Ordering::Relaxed);
    let made: Vec<usize> = callers.join_all().await.concat();
    hub.close().await;

    let mut received: HashMap<u64, usize> = HashMap::new();
    for process in &processes {
        process.ended().await;
        for n in numbers_of(process).await {
            *received.entry(n).or_default() += 1;
        }
    }
    passing.process().await.ended().await;
    assert_not_started(&changing).await;
    assert_eq!(received.len(), made.len());
    assert!(
        received.values().all(|times| *times == 1),
        "a call was made twice"
    );
    assert!(made.len() > CHANGES, "only {} calls were made", made.len());
}

async fn numbers_of(process: &Process) -> Vec<u64> {
    let messages = process.all().await;
    let calls = messages
        .iter()
        .filter(|message| message["method"] == "tools/call");
    calls
        .map(|call| call["params"]["arguments"]["n"].as_u64().unwrap())
        .collect()
}

async fn assert_not_started(server: &StdioServer) {
    server.assert_not_started_again().await;
}
