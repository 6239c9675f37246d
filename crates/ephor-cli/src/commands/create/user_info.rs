//! `ephor create user-info`.

use ephor_expr::{Map, Value};

use super::{CLI_VERSION, document, insert_strings, metadata};

/// Arguments of `ephor create user-info`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ephor create user-info -u molly@example.com -g developers -c admin -r team-a:deployer")]
pub(super) struct Args {
    /// The user's name.
    #[arg(long, short)]
    username: Option<String>,
    /// Groups of the user.
    #[arg(long, short, value_delimiter = ',')]
    group: Vec<String>,
    /// Roles that the user has, as `namespace:name`.
    #[arg(long, short, value_delimiter = ',')]
    role: Vec<String>,
    /// Cluster roles that the user has.
    #[arg(long, short, value_delimiter = ',')]
    cluster_role: Vec<String>,
}

impl Args {
    /// The user.
    pub(super) fn document(&self) -> Value {
        let mut document = document(CLI_VERSION, "UserInfo", metadata("user-info", None));
        insert_strings(&mut document, "roles", &self.role);
        insert_strings(&mut document, "clusterRoles", &self.cluster_role);
        let mut user = Map::new();
        if let Some(name) = &self.username {
            user.insert("username", name.as_str());
        }
        insert_strings(&mut user, "groups", &self.group);
        document.insert("userInfo", Value::object(user));
        Value::object(document)
    }
}
