//! Search: by words, by similar spelling, by links, and with filters.

use plexus_mcp_builtins::context::{Forget, Link, Modality, NewNode, Search};

use crate::support::{DAY, Fixture, HOUR, contents};

#[tokio::test]
async fn words_find_the_nodes_that_contain_them() {
    let fixture = Fixture::new();
    fixture.put("Refresh tokens rotate on every use").await;
    fixture.put("The build takes four minutes").await;
    assert_eq!(
        fixture.find("tokens").await,
        ["Refresh tokens rotate on every use"]
    );
    assert!(fixture.find("kubernetes").await.is_empty());
}

/// Trigram vectors find words with typing errors or other inflections.
#[tokio::test]
async fn misspelled_and_inflected_words_are_found() {
    let fixture = Fixture::new();
    fixture.put("Authentication uses short-lived tokens").await;
    fixture.put("The cafeteria closes early").await;
    for query in ["authenticate", "authentcation", "Authentications"] {
        let found = fixture.find(query).await;
        assert_eq!(found, ["Authentication uses short-lived tokens"], "{query}");
    }
}

/// A node that is linked to a hit is found too, and ranked after it.
#[tokio::test]
async fn links_lead_to_what_has_no_word_in_common() {
    let fixture = Fixture::new();
    let hit = fixture.put("Login is handled by the gateway").await;
    let near = fixture.put("Keycloak realm export").await;
    let far = fixture.put("Backup schedule").await;
    fixture.put("Unrelated lunch menu").await;
    for link in [Link::new(&hit, &near), Link::new(&near, &far)] {
        fixture.graph.link(link, "test").await.unwrap();
    }
    let mut search = Search::new("login gateway");
    search.breakdown = true;
    let found = fixture.graph.search(search).await.unwrap();
    assert_eq!(
        contents(&found),
        [
            "Login is handled by the gateway",
            "Keycloak realm export",
            "Backup schedule"
        ]
    );
    let [hit, near, far] = [0, 1, 2].map(|n| found.results[n].breakdown.clone().unwrap());
    assert_eq!(hit.words.unwrap().rank, 1);
    assert_eq!(hit.vector.unwrap().rank, 1);
    assert!(near.words.is_none() && near.vector.is_none());
    // Each link multiplies the score by 0.9.
    let (near, far) = (near.links.unwrap(), far.links.unwrap());
    assert_eq!((near.rank, far.rank), (1, 2));
    assert!((far.score / near.score - 0.9).abs() < 1e-3);
}

/// The same query gives the same result, in this process and in another.
#[tokio::test]
async fn the_same_question_has_the_same_answer() {
    let fixture = Fixture::new();
    let mut ids = Vec::new();
    for n in 0..60 {
        ids.push(
            fixture
                .put(&format!("token number {n} of many tokens"))
                .await,
        );
    }
    for pair in ids.windows(2) {
        let link = Link::new(&pair[0], &pair[1]);
        fixture.graph.link(link, "test").await.unwrap();
    }
    let search = || {
        let mut search = Search::new("many token number");
        search.limit = 100;
        search.breakdown = true;
        search
    };
    let first = fixture.graph.search(search()).await.unwrap();
    assert_eq!(first.count, 60);
    assert_eq!(fixture.graph.search(search()).await.unwrap(), first);
    // The second graph reads all nodes at once, in another order than they were stored.
    assert_eq!(fixture.another().search(search()).await.unwrap(), first);
    let mut reordered = search();
    reordered.query = "number Token MANY".to_owned();
    assert_eq!(
        contents(&fixture.graph.search(reordered).await.unwrap()),
        contents(&first)
    );
}

#[tokio::test]
async fn filters_narrow_a_search() {
    let fixture = Fixture::new();
    let node = |content: &str| NewNode::new(content);
    let mut code = node("token = old()").namespace("project").key("snippet");
    code.modality = Modality::Code;
    code.tags = vec!["auth".to_owned(), "draft".to_owned()];
    fixture.put_node(code).await;
    fixture.pass(3 * DAY);
    fixture.put("token of yesterday").await;
    fixture.pass(DAY);
    fixture.put("token of this hour").await;

    let find = async |narrow: fn(&mut Search)| {
        let mut search = Search::new("token");
        narrow(&mut search);
        let mut found = contents(&fixture.graph.search(search).await.unwrap());
        found.sort();
        found
    };
    assert_eq!(find(|_| {}).await.len(), 3);
    assert_eq!(
        find(|it| it.last_hours = Some(1)).await,
        ["token of this hour"]
    );
    assert_eq!(find(|it| it.last_days = Some(1)).await.len(), 2);
    assert_eq!(find(|it| it.last_days = Some(4)).await.len(), 3);
    assert_eq!(
        find(|it| it.modality = Some(Modality::Code)).await,
        ["token = old()"]
    );
    assert_eq!(
        find(|it| it.namespace = Some("project".to_owned())).await,
        ["token = old()"]
    );
    assert_eq!(
        find(|it| it.tags = vec!["draft".to_owned()]).await,
        ["token = old()"]
    );
    assert!(
        find(|it| it.namespace = Some("proj".to_owned()))
            .await
            .is_empty()
    );
    let tags = |it: &mut Search| it.tags = vec!["auth".to_owned(), "final".to_owned()];
    assert!(find(tags).await.is_empty());
    assert_eq!(find(|it| it.limit = 2).await.len(), 2);
}

/// A search by words also finds words of keys and tags.
#[tokio::test]
async fn names_and_tags_are_found() {
    let fixture = Fixture::new();
    let mut node = NewNode::new("See the wiki").key("deploy-checklist");
    node.tags = vec!["kubernetes".to_owned()];
    fixture.put_node(node).await;
    assert_eq!(fixture.find("checklist").await, ["See the wiki"]);
    assert_eq!(fixture.find("kubernetes").await, ["See the wiki"]);
}

/// Importance moves a hit by a few ranks.
#[tokio::test]
async fn nodes_of_higher_importance_rank_higher() {
    let fixture = Fixture::new();
    for (content, importance) in [
        ("deploy on friday", 0.1),
        ("deploy on monday", 0.9),
        ("deploy", 0.5),
    ] {
        let mut node = NewNode::new(content);
        node.importance = importance;
        fixture.put_node(node).await;
    }
    let found = fixture.find("deploy").await;
    assert_eq!(found[0], "deploy on monday");
    assert_eq!(found[2], "deploy on friday");
}

/// A hit with long content has its beginning, marked as truncated, and the id to read the rest.
#[tokio::test]
async fn long_content_is_cut_short() {
    let fixture = Fixture::new();
    let id = fixture.put(&"größe ".repeat(1_000)).await;
    let found = fixture.graph.search(Search::new("größe")).await.unwrap();
    let hit = &found.results[0];
    assert!(hit.truncated && hit.node.id == id);
    assert!(hit.node.content.len() < 2_010 && hit.node.content.ends_with('…'));
}

/// An empty query is not an error.
#[tokio::test]
async fn a_query_without_words_finds_nothing() {
    let fixture = Fixture::new();
    fixture.put("tokens rotate").await;
    fixture.put("").await;
    for query in ["", " ", "?!", "the", "\u{0}"] {
        assert!(fixture.find(query).await.is_empty(), "{query:?}");
    }
}

#[tokio::test]
async fn forgotten_nodes_are_not_found_until_they_are_restored() {
    let fixture = Fixture::new();
    let id = fixture.put("tokens rotate").await;
    fixture
        .graph
        .forget(Forget::new(&id), "test")
        .await
        .unwrap();
    assert!(fixture.find("tokens").await.is_empty());
    fixture.pass(HOUR);
    fixture.graph.restore(&id, "test").await.unwrap();
    assert_eq!(fixture.find("tokens").await, ["tokens rotate"]);
}
