//! `UserInfo` files: who asks.

use std::collections::BTreeMap;
use std::path::Path;

use ephor_engine::matching::UserInfo;
use ephor_expr::{Str, Value};
use serde::Deserialize;

use super::typed::{FREE, Shape, read_one};
use crate::locate::Located;

const USER: Shape = Shape(&[("username", &FREE), ("uid", &FREE), ("groups", &FREE), ("extra", &FREE)]);
const FILE: Shape = Shape(&[
    ("apiVersion", &FREE),
    ("kind", &FREE),
    ("metadata", &FREE),
    ("roles", &FREE),
    ("clusterRoles", &FREE),
    ("userInfo", &USER),
]);

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Document {
    #[serde(rename = "apiVersion")]
    _api_version: Str,
    #[serde(rename = "kind")]
    _kind: Str,
    #[serde(rename = "metadata", default)]
    _metadata: Option<Value>,
    #[serde(default)]
    roles: Option<Vec<Str>>,
    #[serde(default)]
    cluster_roles: Option<Vec<Str>>,
    #[serde(default)]
    user_info: User,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct User {
    username: Option<Str>,
    uid: Option<Str>,
    groups: Option<Vec<Str>>,
    extra: Option<BTreeMap<Str, Vec<Str>>>,
}

/// Reads a `UserInfo` file.
pub fn read_user(path: &Path) -> Result<UserInfo, Vec<Located>> {
    let document: Document = read_one(path, &FILE)?.value;
    let user = document.user_info;
    Ok(UserInfo {
        username: user.username.unwrap_or_default(),
        uid: user.uid.unwrap_or_default(),
        groups: user.groups.unwrap_or_default(),
        extra: user.extra.unwrap_or_default(),
        roles: document.roles.unwrap_or_default(),
        cluster_roles: document.cluster_roles.unwrap_or_default(),
    })
}
