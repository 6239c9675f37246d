//! A real control plane for tests and for trying out: etcd, kube-apiserver, kube-controller-manager, kubectl.
//!
//! There is no kubelet and no scheduler: objects are stored, defaulted, admitted and garbage-collected as in any
//! cluster, but no container runs. Several control planes run side by side; each has ports, certificates and a
//! directory of its own and leaves nothing behind, even if the process that started it is killed.
//!
//! ```no_run
//! use ephor_testbed::{ControlPlane, Options};
//!
//! let plane = ControlPlane::start(&Options::default())?;
//! let output = plane.kubectl().args(["get", "namespaces"]).output();
//! # Ok::<(), ephor_testbed::Error>(())
//! ```
//!
//! - [`assets`]: the executables, found or built from their Go modules.
//! - [`control_plane`]: starting, stopping, identities.
//! - `certificates`, `process`: what these need.

pub mod assets;
mod certificates;
pub mod control_plane;
mod error;
pub mod process;
mod service;

pub use assets::Assets;
pub use control_plane::{ControlPlane, Controllers, Options};
pub use error::Error;
pub use service::JsonService;
