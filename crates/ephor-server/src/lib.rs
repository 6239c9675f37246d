//! The roles of Ephor in a cluster: wires admission and background to a cluster, ports and settings.

pub mod serve;
