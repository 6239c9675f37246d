//! Renderers, one a format.

pub mod diagnostics;
pub mod exceptions;
pub mod findings;
pub mod github;
pub mod junit;
mod junit_xml;
pub mod markdown;
pub mod paint;
pub mod plain;
pub mod plan;
pub mod report;
pub mod reports;
pub mod sarif;
pub mod structured;
pub mod suites;
pub mod table;
pub mod text;
