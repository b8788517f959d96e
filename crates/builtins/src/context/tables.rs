//! The database tables of the context graph.

use plexus_mcp_store::Migrations;

/// The migrations that create the tables of the context graph.
///
/// - Every change of a node or of its links gives it the next revision. A reader that has seen all
///   nodes up to a revision finds the changed ones without a change log.
/// - A node that is forgotten stays until `purge_at`. A node that is erased stays as long, without
///   its content, so that other processes learn that it was deleted.
/// - The audit trail is append-only.
/// - The search index is made of segments, as `context/index.rs` describes. A node is at one position
///   of one segment, or in none while it is new. Triggers take every node that changes out of its
///   segment, and record that its position is stale.
pub const MIGRATIONS: Migrations = Migrations {
    owner: "context",
    steps: &[NODES, SEARCH_INDEX],
};

const NODES: &str = "
        CREATE TABLE context_nodes (
            id TEXT NOT NULL PRIMARY KEY,
            namespace TEXT NOT NULL,
            key TEXT,
            content TEXT NOT NULL,
            modality TEXT NOT NULL,
            importance REAL NOT NULL CHECK (importance BETWEEN 0 AND 1),
            tags TEXT NOT NULL,
            rationale TEXT,
            vector BLOB,
            embedder TEXT,
            created_at INTEGER NOT NULL,
            updated_at INTEGER NOT NULL,
            state TEXT NOT NULL CHECK (state IN ('live', 'forgotten', 'erased')),
            purge_at INTEGER CHECK ((purge_at IS NULL) = (state = 'live')),
            revision INTEGER NOT NULL UNIQUE
        ) STRICT;
        CREATE INDEX context_nodes_by_key ON context_nodes (namespace, key);
        CREATE INDEX context_nodes_to_purge ON context_nodes (purge_at) WHERE purge_at IS NOT NULL;

        CREATE TABLE context_links (
            source TEXT NOT NULL REFERENCES context_nodes (id) ON DELETE CASCADE,
            relation TEXT NOT NULL,
            target TEXT NOT NULL REFERENCES context_nodes (id) ON DELETE CASCADE,
            weight REAL NOT NULL CHECK (weight BETWEEN 0 AND 1),
            created_at INTEGER NOT NULL,
            PRIMARY KEY (source, relation, target),
            CHECK (source <> target)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX context_links_by_target ON context_links (target, weight);

        CREATE TABLE context_revision (
            one INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
            revision INTEGER NOT NULL
        ) STRICT;
        INSERT INTO context_revision VALUES (1, 0);

        CREATE TABLE context_merges (
            hash TEXT NOT NULL PRIMARY KEY,
            merged TEXT NOT NULL,
            sources TEXT NOT NULL,
            undo_until INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;

        CREATE TABLE context_audit (
            number INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
            at INTEGER NOT NULL,
            action TEXT NOT NULL,
            node TEXT NOT NULL,
            caller TEXT NOT NULL,
            reason TEXT,
            detail TEXT
        ) STRICT;
        CREATE INDEX context_audit_by_node ON context_audit (node);
        CREATE TRIGGER context_audit_is_not_edited BEFORE UPDATE ON context_audit
            BEGIN SELECT RAISE(ABORT, 'the audit trail is not edited'); END;
        CREATE TRIGGER context_audit_is_not_cut BEFORE DELETE ON context_audit
            BEGIN SELECT RAISE(ABORT, 'the audit trail is not cut'); END;
    ";

/// Segment numbers are never used again (`AUTOINCREMENT`), so a process may keep what it read of a
/// segment.
const SEARCH_INDEX: &str = "
        ALTER TABLE context_nodes ADD COLUMN segment INTEGER;
        ALTER TABLE context_nodes ADD COLUMN position INTEGER;
        CREATE INDEX context_nodes_by_position ON context_nodes (segment, position)
            WHERE state = 'live';
        CREATE INDEX context_nodes_by_embedder ON context_nodes (embedder) WHERE state = 'live';
        CREATE INDEX context_nodes_newest ON context_nodes (updated_at DESC, id)
            WHERE state = 'live';

        CREATE TABLE context_segments (
            number INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
            size INTEGER NOT NULL,
            embedder TEXT NOT NULL,
            nodes BLOB NOT NULL
        ) STRICT;
        CREATE TABLE context_postings (
            segment INTEGER NOT NULL,
            term TEXT NOT NULL,
            occurrences BLOB NOT NULL,
            PRIMARY KEY (segment, term)
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE context_components (
            place INTEGER NOT NULL PRIMARY KEY,
            of_each_node BLOB NOT NULL
        ) STRICT;
        CREATE TABLE context_stale (
            segment INTEGER NOT NULL,
            position INTEGER NOT NULL,
            PRIMARY KEY (segment, position)
        ) STRICT, WITHOUT ROWID;
        CREATE TRIGGER context_nodes_leave_at_change AFTER UPDATE OF
            namespace, key, content, modality, importance, tags, vector, embedder, updated_at, state
            ON context_nodes WHEN old.segment IS NOT NULL BEGIN
                INSERT INTO context_stale VALUES (old.segment, old.position);
                UPDATE context_nodes SET segment = NULL, position = NULL WHERE id = old.id;
            END;
        CREATE TRIGGER context_nodes_leave_at_deletion AFTER DELETE
            ON context_nodes WHEN old.segment IS NOT NULL BEGIN
                INSERT INTO context_stale VALUES (old.segment, old.position);
            END;
    ";
