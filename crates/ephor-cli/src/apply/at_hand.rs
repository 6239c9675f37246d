//! The resources of the run as answers: what rules ask of the cluster is looked up among them.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use ephor_engine::fetch::{Fact, Fetch};
use ephor_expr::yaml::{DocumentStream, Options, RawDocument, StreamError};
use ephor_expr::{Str, Value};

use super::judge::{is_resource, of_cluster};
use super::pipeline::Input;
use crate::host::{ObjectsAtHand, Source};
use crate::load::{STDIN, expand_lists, normalise, read_resources};

/// The resources of the run. They are read a second time, and kept, only when a rule asks for one.
#[derive(Debug)]
pub(super) struct AtHand {
    inputs: Vec<Input>,
    /// Objects from elsewhere: targets, entries beside the policies.
    others: Vec<Value>,
    cluster_scoped: BTreeSet<(Str, Str)>,
    objects: OnceLock<ObjectsAtHand>,
}

impl AtHand {
    /// The objects of `inputs`, and others. Others come first: of two with one name they count.
    pub(super) fn new(inputs: Vec<Input>, others: Vec<Value>, cluster_scoped: BTreeSet<(Str, Str)>) -> Self {
        Self { inputs, others, cluster_scoped, objects: OnceLock::new() }
    }

    /// Reads everything. What cannot be read is reported where resources are judged.
    fn load(&self) -> ObjectsAtHand {
        let mut objects = self.others.clone();
        for input in &self.inputs {
            match input {
                Input::File(path) if path.as_os_str() == STDIN => {}
                Input::File(path) => {
                    if let Ok(stream) = read_resources(path) {
                        self.take(stream, &mut objects);
                    }
                }
                // A cluster answers for itself.
                Input::Existing(_) => {}
                Input::Text(file) => self.take(DocumentStream::new(file.text.as_bytes()), &mut objects),
            }
        }
        ObjectsAtHand::new(objects).with_api()
    }

    fn take(&self, stream: impl Iterator<Item = Result<RawDocument, StreamError>>, objects: &mut Vec<Value>) {
        for document in stream.map_while(Result::ok) {
            let values = document.values(&Options::default()).unwrap_or_default();
            for object in values.into_iter().flat_map(expand_lists).filter(is_resource) {
                objects.push(normalise(object, |version, kind| of_cluster(&self.cluster_scoped, version, kind)));
            }
        }
    }
}

impl Source for AtHand {
    fn answer(&self, fetch: &Fetch) -> Option<Fact> {
        if matches!(fetch, Fetch::Service { .. } | Fetch::Image { .. } | Fetch::Host { .. }) {
            return None;
        }
        self.objects.get_or_init(|| self.load()).answer(fetch)
    }

    fn secrets(&self, fetch: &Fetch) -> Option<Value> {
        self.objects.get()?.secrets(fetch)
    }
}
