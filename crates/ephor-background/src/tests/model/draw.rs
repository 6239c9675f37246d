//! What users say, drawn at random.

use super::simulation::Simulation;
use super::world::{Place, Rule, Shape, Trigger, namespace_of};

/// A trigger: another one, or the one that there is with a change.
pub(super) fn trigger(simulation: &mut Simulation, place: Place) -> Trigger {
    let lists: [&[&'static str]; 3] = [&["a"], &["a", "b"], &["b", "c"]];
    let value = simulation.chaos.next(1000);
    let list = simulation.pick(&lists).to_vec();
    let drawn = Trigger {
        on: !simulation.chaos.one_in(4),
        ready: !simulation.chaos.one_in(4),
        value,
        to: simulation.chaos.next(3),
        list,
    };
    match simulation.world.triggers.get(&place).cloned() {
        None => drawn,
        Some(known) => match simulation.chaos.next(6) {
            0 => Trigger { on: drawn.on, ..known },
            1 => Trigger { ready: drawn.ready, ..known },
            2 => Trigger { to: drawn.to, ..known },
            3 => Trigger { list: drawn.list, ..known },
            4 => Trigger { value, ..known },
            _ => drawn,
        },
    }
}

/// A rule: another one where there is none, else the one that there is with a change that authors may make.
pub(super) fn rule(simulation: &mut Simulation, policy: &'static str, name: &'static str) -> Rule {
    let number = simulation.chaos.next(1000);
    let synchronize = !simulation.chaos.one_in(4);
    let orphan = simulation.chaos.one_in(3);
    let existing = !simulation.chaos.one_in(4);
    if let Some(known) = simulation.world.policies.get(policy).and_then(|rules| rules.get(name)).cloned() {
        return match simulation.chaos.next(5) {
            0 => Rule { value: number, ..known },
            1 => Rule { moved: known.moved + 1, ..known },
            2 => Rule { synchronize, ..known },
            3 => Rule { orphan, ..known },
            _ => Rule { existing, ..known },
        };
    }
    // A Policy makes no cluster-wide objects, and lists no sources that are not at their target already.
    let shape = if namespace_of(policy).is_some() {
        simulation.pick(&[Shape::Data, Shape::Shared, Shape::Each, Shape::Clone])
    } else {
        simulation.pick(&[Shape::Data, Shape::Wide, Shape::Shared, Shape::Each, Shape::Clone, Shape::List])
    };
    let when = simulation.chaos.one_in(3);
    let golden = namespace_of(policy).is_none() && simulation.chaos.one_in(4);
    let on_end = simulation.sometimes(4);
    let shape = match shape {
        Shape::Data | Shape::Wide => shape,
        _ if on_end => Shape::Data,
        _ => shape,
    };
    Rule { shape, synchronize, orphan, existing, when, golden, on_end, value: number, moved: number }
}
