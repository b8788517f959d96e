//! Write operations on trees.

use plexus_mcp_core::Raw;
use plexus_mcp_store::rusqlite::OptionalExtension;
use plexus_mcp_wire::Kind;

use super::read::node_of;
use super::{MAX_CONTENT_BYTES, NewTreeNode, Payload, WriteTransaction};
use crate::arbor::error::ArborError;
use crate::arbor::model::{TreeNode, TreeSummary};
use crate::arbor::resources;
use crate::arbor::tables;
use crate::notifying_store::timestamp_text;

/// The maximum size of metadata, in bytes.
const MAX_METADATA_BYTES: usize = 64 * 1024;

impl WriteTransaction<'_> {
    /// Creates a tree with an empty root, to which `owner` holds one reference.
    pub fn create(
        &mut self,
        owner: &str,
        metadata: Option<&Raw>,
    ) -> Result<TreeSummary, ArborError> {
        let metadata = metadata.map(Self::checked).transpose()?;
        let id = self.new_id().to_string();
        self.db
            .prepare_cached(
                "INSERT INTO arbor_trees (id, metadata, created_at, updated_at)
                 VALUES (?1, ?2, ?3, ?3)",
            )?
            .execute((&id, metadata, timestamp_text(self.now)))?;
        self.insert(&id, None, Some(""), None, None)?;
        self.hold(&id, owner, 1)?;
        self.changed_uris.insert(resources::LIST.to_owned());
        tables::tree(self.db, &id, self.now)
    }

    pub(super) fn update_metadata(
        &mut self,
        tree: &str,
        metadata: &Raw,
    ) -> Result<TreeSummary, ArborError> {
        let metadata = Self::checked(metadata)?;
        self.changeable(tree)?;
        self.db
            .prepare_cached("UPDATE arbor_trees SET metadata = ?2 WHERE id = ?1")?
            .execute((tree, metadata))?;
        self.touch(tree)?;
        tables::tree(self.db, tree, self.now)
    }

    pub(super) fn claim(&mut self, tree: &str, owner: &str, count: u32) -> Result<u64, ArborError> {
        self.changeable(tree)?;
        let held = self.hold(tree, owner, count)?;
        self.db
            .prepare_cached("UPDATE arbor_trees SET released_at = NULL WHERE id = ?1")?
            .execute([tree])?;
        self.touch(tree)?;
        self.changed_uris.insert(resources::LIST.to_owned());
        Ok(held)
    }

    pub(super) fn release(
        &mut self,
        tree: &str,
        owner: &str,
        count: u32,
    ) -> Result<u64, ArborError> {
        self.changeable(tree)?;
        let held = self.held(tree, owner)?;
        let count = i64::from(count);
        let left = held - count;
        if left < 0 {
            return Err(ArborError::Underflow {
                tree_id: tree.to_owned(),
                owner_id: owner.to_owned(),
                held: held.unsigned_abs(),
                count: count.unsigned_abs(),
            });
        }
        self.set_held(tree, owner, left)?;
        Ok(left.unsigned_abs())
    }

    /// Takes all references from `owner`, in any state of the tree.
    pub fn release_all(&mut self, tree: &str, owner: &str) -> Result<(), ArborError> {
        if self.held(tree, owner)? > 0 {
            self.set_held(tree, owner, 0)?;
        }
        Ok(())
    }

    /// Adds a node to an active tree.
    pub fn add(&mut self, node: NewTreeNode) -> Result<TreeNode, ArborError> {
        let NewTreeNode {
            tree_id,
            parent,
            payload,
            metadata,
        } = node;
        let metadata = metadata.as_ref().map(Self::checked).transpose()?;
        let (content, handle) = match payload {
            Payload::Text(text) => (Some(text), None),
            Payload::External(handle) => (None, Some(handle.to_string())),
        };
        if let Some(text) = &content {
            bounded("the content", text.len(), MAX_CONTENT_BYTES)?;
        }
        let tree = self.active(&tree_id)?;
        let parent = parent.unwrap_or_else(|| tree.root.clone());
        tables::must_have(self.db, &tree_id, &parent)?;
        let id = self.insert(
            &tree_id,
            Some(&parent),
            content.as_deref(),
            handle.as_deref(),
            metadata,
        )?;
        self.touch(&tree_id)?;
        self.changed_uris
            .insert(resources::node_uri(&tree_id, &parent));
        self.touch_head_since(&tree)?;
        node_of(self.db, &tree_id, &id)
    }

    /// Makes a node the head of its tree, which must be active.
    pub fn set_head(&mut self, tree: &str, node: &str) -> Result<(), ArborError> {
        let before = self.active(tree)?;
        tables::must_have(self.db, tree, node)?;
        self.db
            .prepare_cached("UPDATE arbor_trees SET head_id = ?2 WHERE id = ?1")?
            .execute([tree, node])?;
        self.touch(tree)?;
        self.touch_head_since(&before)
    }

    /// Returns the JSON of metadata if it is an object of at most 64 KiB.
    pub fn checked(metadata: &Raw) -> Result<&str, ArborError> {
        if metadata.kind() != Kind::Object {
            return Err(ArborError::Metadata);
        }
        bounded("the metadata", metadata.len(), MAX_METADATA_BYTES)?;
        Ok(metadata.as_str())
    }

    /// Returns the tree if nodes may be added to it.
    fn active(&self, tree: &str) -> Result<TreeSummary, ArborError> {
        tables::tree(self.db, tree, self.now)?.must_be_active()
    }

    /// Returns the tree if it may be changed at all.
    fn changeable(&self, tree: &str) -> Result<TreeSummary, ArborError> {
        tables::tree(self.db, tree, self.now)?.must_be_changeable()
    }

    fn insert(
        &self,
        tree: &str,
        parent: Option<&str>,
        content: Option<&str>,
        handle: Option<&str>,
        metadata: Option<&str>,
    ) -> Result<String, ArborError> {
        let id = self.new_id().to_string();
        self.db
            .prepare_cached(
                "INSERT INTO arbor_nodes
                     (id, tree_id, parent_id, content, handle, metadata, created_at)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            )?
            .execute((
                &id,
                tree,
                parent,
                content,
                handle,
                metadata,
                timestamp_text(self.now),
            ))?;
        Ok(id)
    }

    fn held(&self, tree: &str, owner: &str) -> Result<i64, ArborError> {
        let held = self
            .db
            .prepare_cached("SELECT count FROM arbor_owners WHERE tree_id = ?1 AND owner_id = ?2")?
            .query_row([tree, owner], |row| row.get(0))
            .optional()?;
        Ok(held.unwrap_or(0))
    }

    fn hold(&self, tree: &str, owner: &str, more: u32) -> Result<u64, ArborError> {
        let held = self.held(tree, owner)? + i64::from(more);
        if held > i64::from(u32::MAX) {
            return Err(ArborError::Overflow {
                tree_id: tree.to_owned(),
                owner_id: owner.to_owned(),
            });
        }
        self.db
            .prepare_cached(
                "INSERT INTO arbor_owners (tree_id, owner_id, count) VALUES (?1, ?2, ?3)
                 ON CONFLICT DO UPDATE SET count = excluded.count",
            )?
            .execute((tree, owner, held))?;
        Ok(held.unsigned_abs())
    }

    /// Sets the number of references of `owner`. A tree without references is scheduled for
    /// archiving.
    fn set_held(&mut self, tree: &str, owner: &str, left: i64) -> Result<(), ArborError> {
        let statement = if left == 0 {
            "DELETE FROM arbor_owners WHERE tree_id = ?1 AND owner_id = ?2 AND ?3 = 0"
        } else {
            "UPDATE arbor_owners SET count = ?3 WHERE tree_id = ?1 AND owner_id = ?2"
        };
        self.db
            .prepare_cached(statement)?
            .execute((tree, owner, left))?;
        self.db
            .prepare_cached(
                "UPDATE arbor_trees SET released_at = ?2
                 WHERE id = ?1 AND released_at IS NULL
                     AND NOT EXISTS (SELECT 1 FROM arbor_owners WHERE tree_id = ?1)",
            )?
            .execute((tree, timestamp_text(self.now)))?;
        self.touch(tree)?;
        self.changed_uris.insert(resources::LIST.to_owned());
        Ok(())
    }

    fn touch(&mut self, tree: &str) -> Result<(), ArborError> {
        self.db
            .prepare_cached("UPDATE arbor_trees SET updated_at = ?2 WHERE id = ?1")?
            .execute((tree, timestamp_text(self.now)))?;
        self.changed_uris.insert(resources::tree_uri(tree));
        Ok(())
    }

    /// Records that the head, or its list of children, differs from `before`.
    fn touch_head_since(&mut self, before: &TreeSummary) -> Result<(), ArborError> {
        let now = tables::tree(self.db, &before.id, self.now)?;
        let grew = resources::node_uri(&before.id, &now.head);
        if now.head != before.head || self.changed_uris.contains(&grew) {
            self.changed_uris.insert(resources::head_uri(&before.id));
        }
        Ok(())
    }
}

fn bounded(what: &'static str, size: usize, limit: usize) -> Result<(), ArborError> {
    if size > limit {
        return Err(ArborError::TooLarge { what, size, limit });
    }
    Ok(())
}
