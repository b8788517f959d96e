//! Tests of the task list through its tools and resources, as clients use them.

#[cfg(test)]
mod task {
    use std::sync::Arc;
    use std::time::Duration;

    use plexus_mcp_builtins::task::{METHODS, MIGRATIONS, Tasks, task};
    use plexus_mcp_builtins::{Data, DataPaths, Names};
    use plexus_mcp_core::{
        Call, EventSender, Fault, LocalService, Object, Peer, Principal, Raw, Section, Service,
        Updates,
    };
    use plexus_mcp_protocol::Revision;
    use plexus_mcp_protocol::messages::ClientCapabilities;
    use plexus_mcp_store::rusqlite::Connection;
    use plexus_mcp_store::{Store, StoreError};
    use serde_json::{Value, json};
    use tempfile::TempDir;
    use tokio_util::sync::CancellationToken;

    /// A client of a service that has only a task list.
    struct Client {
        _folder: TempDir,
        store: Store,
        service: LocalService,
        peer: Arc<Peer>,
    }

    impl Client {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let store = Store::open(&folder.path().join("plexus.db"), &[MIGRATIONS]).unwrap();
            let builder = LocalService::builder("bossman", "0.1.0");
            let builder = task(builder, Names::Dotted, &Tasks::new(store.clone()));
            let peer = Peer::new(
                Revision::V2025_11_25,
                ClientCapabilities::none(),
                None,
                Principal::anonymous(),
            );
            Self {
                _folder: folder,
                store,
                service: builder.build().unwrap(),
                peer: Arc::new(peer),
            }
        }

        async fn request(&self, method: &str, params: Value) -> Result<Value, Fault> {
            let (sender, _events) = EventSender::channel(Arc::clone(&self.peer), false, None);
            let params = Raw::encode(&params).unwrap();
            let call = Call::new(
                method,
                Object::parse(&params).unwrap(),
                sender,
                CancellationToken::new(),
            );
            let result = self.service.call(call).await?;
            Ok(result.decode().unwrap())
        }

        async fn call(&self, method: &str, arguments: Value) -> Result<Value, Fault> {
            let name = format!("task.{method}");
            let params = json!({ "name": name, "arguments": arguments });
            self.request("tools/call", params).await
        }

        /// Makes a call that succeeds. Checks that text and structured content are equal and that
        /// `isError` is false (S002-21), and returns the content.
        async fn done(&self, method: &str, arguments: Value) -> Value {
            let result = self.call(method, arguments).await.unwrap();
            assert_eq!(result["isError"], false, "{result}");
            let text = result["content"][0]["text"].as_str().unwrap();
            let read: Value = serde_json::from_str(text).unwrap();
            assert_eq!(read, result["structuredContent"]);
            assert_eq!(result["content"].as_array().unwrap().len(), 1);
            read
        }

        /// Makes a call that fails with `isError`; returns the error text (S002-22, S002-32).
        async fn failed(&self, method: &str, arguments: Value) -> String {
            let result = self.call(method, arguments).await.unwrap();
            assert_eq!(result["isError"], true, "{result}");
            assert_eq!(result.get("structuredContent"), None);
            result["content"][0]["text"].as_str().unwrap().to_owned()
        }

        async fn create(&self, description: &str) -> String {
            let task = self
                .done("create_task", json!({ "description": description }))
                .await;
            task["id"].as_str().unwrap().to_owned()
        }

        async fn read(&self, uri: &str) -> Result<Value, Fault> {
            let result = self
                .request("resources/read", json!({ "uri": uri }))
                .await?;
            let contents = &result["contents"][0];
            assert_eq!(
                (&contents["uri"], &contents["mimeType"]),
                (&json!(uri), &json!("application/json"))
            );
            Ok(serde_json::from_str(contents["text"].as_str().unwrap()).unwrap())
        }

        async fn watch(&self, uri: &str) -> Updates {
            self.service.subscribe(&self.peer, uri).await.unwrap()
        }

        fn definitions(&self, section: Section) -> Vec<Value> {
            let catalogue = self.service.catalogue();
            let catalogue = catalogue.borrow();
            let entries = catalogue.list(section).entries().iter();
            entries
                .map(|entry| entry.definition.decode().unwrap())
                .collect()
        }

        fn tool(&self, method: &str) -> Value {
            let name = format!("task.{method}");
            let mut tools = self.definitions(Section::Tools).into_iter();
            tools.find(|tool| tool["name"] == *name).unwrap()
        }
    }

    /// Whether there was an update since the last call. Updates are sent before a call returns.
    fn has_news(updates: &mut Updates) -> bool {
        let next = std::pin::pin!(updates.next());
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        next.poll(&mut context).is_ready()
    }

    /// S002-20: the tool has the descriptions and the required argument of the specification, and
    /// the range of priorities of the original program.
    #[test]
    fn create_task_is_as_it_was_written() {
        let tool = Client::new().tool("create_task");
        assert_eq!(tool["description"], "Create a new task");
        let schema = &tool["inputSchema"];
        assert_eq!(schema["type"], "object");
        assert_eq!(schema["required"], json!(["description"]));
        assert_eq!(schema["additionalProperties"], false);
        let description = &schema["properties"]["description"];
        assert_eq!(description["type"], "string");
        assert_eq!(description["description"], "Task description");
        let priority = &schema["properties"]["priority"];
        assert_eq!(
            [
                &priority["minimum"],
                &priority["maximum"],
                &priority["default"]
            ],
            [1, 5, 3]
        );
    }

    /// S002-30, S002-31: every tool has the specified arguments, and the same of them are required.
    /// `status` allows the specified states.
    #[test]
    fn arguments_are_those_of_the_founding_system() {
        let client = Client::new();
        let cases = [
            (
                "create_task",
                &["context", "description", "parent_id", "priority"][..],
                json!(["description"]),
            ),
            ("list_tasks", &["limit", "parent_id", "status"], Value::Null),
            ("get_task", &["id"], json!(["id"])),
            (
                "update_task",
                &[
                    "context",
                    "description",
                    "id",
                    "priority",
                    "result",
                    "status",
                ],
                json!(["id"]),
            ),
            ("delete_task", &["cascade", "id"], json!(["id"])),
            (
                "add_blocker",
                &["blocked_by_id", "task_id"],
                json!(["task_id", "blocked_by_id"]),
            ),
            (
                "remove_blocker",
                &["blocked_by_id", "task_id"],
                json!(["task_id", "blocked_by_id"]),
            ),
            ("get_blockers", &["task_id"], json!(["task_id"])),
            ("next_tasks", &["limit"], Value::Null),
            (
                "claim_task",
                &["id", "lease_seconds", "owner"],
                json!(["owner"]),
            ),
            (
                "renew_claim",
                &["id", "lease_seconds", "owner"],
                json!(["id", "owner"]),
            ),
            ("release_claim", &["id", "owner"], json!(["id", "owner"])),
        ];
        for (method, arguments, required) in cases {
            let schema = &client.tool(method)["inputSchema"];
            let mut names: Vec<_> = schema["properties"].as_object().unwrap().keys().collect();
            names.sort_unstable();
            assert_eq!(names, arguments, "{method}");
            assert_eq!(schema["required"], required, "{method}");
        }
        for method in ["list_tasks", "update_task"] {
            let status = &client.tool(method)["inputSchema"]["properties"]["status"];
            let states = ["pending", "in_progress", "completed", "failed"];
            for state in states {
                assert!(
                    status["enum"].as_array().unwrap().contains(&json!(state)),
                    "{status}"
                );
            }
        }
    }

    /// The order of tools/list is always the same.
    #[test]
    fn tools_are_always_in_the_same_order() {
        let names: Vec<_> = Client::new()
            .definitions(Section::Tools)
            .iter()
            .map(|tool| tool["name"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(names, METHODS.map(|method| format!("task.{method}")));
    }

    /// S002-21: exactly three members, with these names, in this order.
    #[tokio::test]
    async fn a_new_task_is_shown_as_it_was_written() {
        let client = Client::new();
        let arguments = json!({ "description": "Grüße \"alle\"\n" });
        let result = client.call("create_task", arguments).await.unwrap();
        let id = result["structuredContent"]["id"].as_str().unwrap();
        assert!(id.starts_with("task_"));
        let text = result["content"][0]["text"].as_str().unwrap();
        let expected =
            format!(r#"{{"id":"{id}","description":"Grüße \"alle\"\n","status":"pending"}}"#);
        assert_eq!(text, expected);
        assert_eq!(result["isError"], false);
    }

    /// S002-22: the error for an unknown task is a failed result that names the id.
    #[tokio::test]
    async fn an_unknown_task_is_an_execution_error() {
        let client = Client::new();
        let known = client.create("known").await;
        let cases = [
            ("get_task", json!({ "id": "task_xyz" })),
            (
                "update_task",
                json!({ "id": "task_xyz", "status": "completed" }),
            ),
            ("delete_task", json!({ "id": "task_xyz" })),
            ("list_tasks", json!({ "parent_id": "task_xyz" })),
            (
                "create_task",
                json!({ "description": "x", "parent_id": "task_xyz" }),
            ),
            (
                "add_blocker",
                json!({ "task_id": known, "blocked_by_id": "task_xyz" }),
            ),
            (
                "remove_blocker",
                json!({ "task_id": "task_xyz", "blocked_by_id": known }),
            ),
            ("get_blockers", json!({ "task_id": "task_xyz" })),
            ("claim_task", json!({ "id": "task_xyz", "owner": "ann" })),
            ("renew_claim", json!({ "id": "task_xyz", "owner": "ann" })),
            ("release_claim", json!({ "id": "task_xyz", "owner": "ann" })),
        ];
        for (method, arguments) in cases {
            let text = client.failed(method, arguments).await;
            assert_eq!(text, "error: task not found: task_xyz", "{method}");
        }
    }

    /// S002-23, S002-32, C10: arguments that violate the schema are refused, and change nothing.
    /// Whether the client gets an error or a failed result depends on its revision.
    #[tokio::test]
    async fn bad_arguments_are_never_run() {
        let client = Client::new();
        let id = client.create("x").await;
        let cases = [
            ("create_task", json!({})),
            ("create_task", json!({ "description": 7 })),
            ("create_task", json!({ "description": "" })),
            ("create_task", json!({ "description": "x", "priority": 0 })),
            ("create_task", json!({ "description": "x", "priority": 6 })),
            (
                "create_task",
                json!({ "description": "x", "priority": 1.5 }),
            ),
            (
                "create_task",
                json!({ "description": "x", "colour": "red" }),
            ),
            ("list_tasks", json!({ "status": "done" })),
            ("list_tasks", json!({ "limit": 0 })),
            ("list_tasks", json!({ "limit": 1001 })),
            ("get_task", json!({})),
            ("update_task", json!({ "id": id, "priority": 9 })),
            ("update_task", json!({ "id": id, "parent_id": id })),
            ("delete_task", json!({ "id": id, "cascade": "yes" })),
            ("add_blocker", json!({ "task_id": id })),
            ("claim_task", json!({ "owner": "" })),
            ("claim_task", json!({ "owner": "ann", "lease_seconds": 0 })),
            (
                "claim_task",
                json!({ "owner": "ann", "lease_seconds": 100_000 }),
            ),
        ];
        for (method, arguments) in cases {
            let outcome = client.call(method, arguments.clone()).await;
            assert!(
                matches!(outcome, Err(Fault::InvalidArguments(_))),
                "{method} {arguments}"
            );
        }
        let fault = client.call("destroy", json!({})).await.unwrap_err();
        assert_eq!(fault, Fault::UnknownTool("task.destroy".to_owned()));
        assert_eq!(client.done("list_tasks", json!({})).await["total"], 1);
    }

    /// A task and its subtask go through their whole lifecycle with the tools only.
    #[tokio::test]
    async fn a_list_is_worked_through() {
        let client = Client::new();
        let house = client.create("house").await;
        let arguments = json!({ "description": "walls", "parent_id": house, "priority": 2, "context": "brick" });
        let walls = client.done("create_task", arguments).await["id"].clone();
        let blocked = client
            .done(
                "add_blocker",
                json!({ "task_id": house, "blocked_by_id": walls }),
            )
            .await;
        assert_eq!(blocked["blocked_by"], json!([walls]));

        let next = client.done("next_tasks", json!({})).await;
        assert_eq!(next["tasks"].as_array().unwrap().len(), 1);
        assert_eq!(next["tasks"][0]["context"], "brick");
        let claimed = client.done("claim_task", json!({ "owner": "ann" })).await;
        assert_eq!(
            (&claimed["id"], &claimed["claimed_by"]),
            (&walls, &json!("ann"))
        );
        let arguments = json!({ "id": walls, "owner": "ann", "lease_seconds": 60 });
        client.done("renew_claim", arguments).await;
        assert_eq!(
            client.failed("claim_task", json!({ "owner": "bob" })).await,
            "error: no task is ready to be worked on"
        );

        let arguments = json!({ "id": walls, "status": "completed", "result": "four of them" });
        let completed = client.done("update_task", arguments).await;
        for time in ["created_at", "started_at", "completed_at", "updated_at"] {
            // RFC 3339 with milliseconds, in UTC.
            let time = completed[time].as_str().unwrap();
            assert!(time.len() == 24 && time.ends_with('Z'), "{time}");
        }
        let blockers = client
            .done("get_blockers", json!({ "task_id": house }))
            .await;
        let expected = json!([{ "id": walls, "description": "walls", "status": "completed" }]);
        assert_eq!(blockers, json!({ "task_id": house, "blockers": expected }));

        client
            .done("claim_task", json!({ "id": house, "owner": "bob" }))
            .await;
        let released = client
            .done("release_claim", json!({ "id": house, "owner": "bob" }))
            .await;
        assert_eq!(released["status"], "pending");
        client
            .done(
                "remove_blocker",
                json!({ "task_id": house, "blocked_by_id": walls }),
            )
            .await;
        let refused = client.failed("delete_task", json!({ "id": house })).await;
        assert!(refused.starts_with("error: task "), "{refused}");
        let deleted = client
            .done("delete_task", json!({ "id": house, "cascade": true }))
            .await;
        assert_eq!(deleted, json!({ "deleted": [house, walls] }));
        let empty = client.done("list_tasks", json!({})).await;
        assert_eq!(empty, json!({ "tasks": [], "total": 0 }));
    }

    #[tokio::test]
    async fn tasks_are_resources() {
        let client = Client::new();
        let id = client.create("x").await;
        let task = client.read(&format!("task://{id}")).await.unwrap();
        assert_eq!(task, client.done("get_task", json!({ "id": id })).await);
        let list = client.read("task://list").await.unwrap();
        assert_eq!(list, json!({ "tasks": [task], "total": 1 }));
        let uri = "task://task_xyz";
        let fault = client.read(uri).await.unwrap_err();
        assert_eq!(fault, Fault::ResourceNotFound(uri.to_owned()));

        let templates = client.definitions(Section::Templates);
        assert_eq!(templates[0]["uriTemplate"], "task://{id}");
        let resources = client.definitions(Section::Resources);
        assert_eq!(resources[0]["uri"], "task://list");
    }

    /// Subscribers of a task or of the list are notified of its changes, and of no others.
    #[tokio::test]
    async fn subscribers_hear_of_changes() {
        let client = Client::new();
        let [a, b] = [client.create("a").await, client.create("b").await];
        let mut list = client.watch("task://list").await;
        let mut of_a = client.watch(&format!("task://{a}")).await;
        let mut of_b = client.watch(&format!("task://{b}")).await;
        let changes = [
            (
                "update_task",
                json!({ "id": a, "priority": 1 }),
                true,
                false,
            ),
            (
                "update_task",
                json!({ "id": b, "priority": 1 }),
                false,
                true,
            ),
            (
                "add_blocker",
                json!({ "task_id": b, "blocked_by_id": a }),
                false,
                true,
            ),
            (
                "claim_task",
                json!({ "id": a, "owner": "ann" }),
                true,
                false,
            ),
            // The task that was blocked by it changes too.
            ("delete_task", json!({ "id": a }), true, true),
        ];
        for (method, arguments, changes_a, changes_b) in changes {
            client.done(method, arguments).await;
            assert_eq!(
                (has_news(&mut of_a), has_news(&mut of_b)),
                (changes_a, changes_b),
                "{method}"
            );
            assert!(has_news(&mut list), "{method}");
        }
        // A call that changes nothing sends no notification.
        client
            .done("update_task", json!({ "id": b, "priority": 1 }))
            .await;
        client.done("get_task", json!({ "id": b })).await;
        client.failed("delete_task", json!({ "id": a })).await;
        assert!(!has_news(&mut of_b) && !has_news(&mut list));
    }

    /// S002-12, S002-24: a call that is dropped while another process holds the write lock
    /// changes nothing, and blocks no other call.
    #[tokio::test]
    async fn a_call_that_waits_can_be_cancelled() {
        let client = Client::new();
        // The writer holds the lock until it is released.
        let (begun, has_begun) = tokio::sync::oneshot::channel();
        let (go_on, may_go_on) = std::sync::mpsc::channel::<()>();
        let turn = client.store.write(move |_| {
            begun.send(()).unwrap();
            may_go_on.recv().unwrap();
            Ok::<_, StoreError>(())
        });
        let waiting = async {
            has_begun.await.unwrap();
            let call = client.call("create_task", json!({ "description": "never" }));
            assert!(tokio::time::timeout(Duration::ZERO, call).await.is_err());
            go_on.send(()).unwrap();
        };
        let (turn, ()) = tokio::join!(turn, waiting);
        turn.unwrap();
        assert_eq!(client.done("list_tasks", json!({})).await["total"], 0);
    }

    /// Bad input: a locked or a full database gives a clear error, and no partial write.
    #[tokio::test]
    async fn a_locked_or_full_database_is_reported() {
        let client = Client::new();
        let id = client.create("x").await;
        let hurry = |db: &plexus_mcp_store::rusqlite::Transaction<'_>| -> Result<(), StoreError> {
            db.busy_timeout(Duration::ZERO)?;
            db.pragma_update(None, "max_page_count", 1)?;
            Ok(())
        };
        client.store.write(hurry).await.unwrap();

        let other = Connection::open(client.store.path()).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        let text = client.failed("delete_task", json!({ "id": id })).await;
        assert_eq!(
            text,
            "error: the database is busy with other work; try again later"
        );
        other.execute_batch("ROLLBACK").unwrap();

        let arguments = json!({ "description": "x".repeat(1_000_000) });
        let text = client.failed("create_task", arguments).await;
        assert_eq!(
            text,
            "error: the disk is full, so nothing was written; make room and try again"
        );
        assert_eq!(client.done("list_tasks", json!({})).await["total"], 1);
    }

    /// Bad input: 10 MB of context are stored and returned unchanged.
    #[tokio::test]
    async fn much_content_is_kept_whole() {
        let client = Client::new();
        let context = "ä".repeat(5_000_000);
        let id = client.create("big").await;
        client
            .done("update_task", json!({ "id": id, "context": context }))
            .await;
        let task = client.done("get_task", json!({ "id": id })).await;
        assert!(task["context"] == context);
    }

    /// Bad input: the error for a damaged file names the file and the remedy.
    #[test]
    fn a_damaged_file_is_told_at_the_start() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("plexus.db");
        std::fs::write(&path, "not a database, ".repeat(1000)).unwrap();
        let error = Data::open(&DataPaths::in_directory(folder.path())).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("plexus.db is damaged"), "{text}");
        assert!(text.contains("put a backup in its place"), "{text}");
    }
}
