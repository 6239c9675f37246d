//! Writes of the controller's own records: `UpdateRequest`s and the status of policies. No rule decides what they say.

use ephor_cluster::{ClusterError, DeleteOptions, Resource, WriteOptions};
use ephor_engine::policy::is_own_group;
use ephor_expr::Value;

use super::{Env, WriteError};

/// Writes the controller's own records; see [`Env::records`].
#[derive(Debug)]
pub struct Records<'e> {
    pub(super) env: &'e Env,
}

impl Records<'_> {
    /// Replaces a record.
    pub fn update(&self, resource: &Resource, object: Value) -> Result<Value, WriteError> {
        self.admit(resource)?;
        Ok(self.env.cluster.update(resource, object, &WriteOptions::default())?)
    }

    /// Replaces the status of a record.
    pub fn update_status(&self, resource: &Resource, object: Value) -> Result<Value, WriteError> {
        self.admit(resource)?;
        Ok(self.env.cluster.update_status(resource, object, &WriteOptions::default())?)
    }

    /// Deletes a request.
    pub fn delete(&self, resource: &Resource, name: &str, options: &DeleteOptions) -> Result<(), WriteError> {
        self.admit(resource)?;
        self.env.cluster.delete(resource, Some(&self.env.namespace), name, options)?;
        Ok(())
    }

    fn admit(&self, resource: &Resource) -> Result<(), WriteError> {
        if !is_own_group(&resource.group) {
            let message = format!("{} are no records of Ephor", resource.qualified_plural());
            return Err(ClusterError::bad_request(message).into());
        }
        Ok((self.env.fence)()?)
    }
}
