//! What expressions do with a variable that a caller watches.

use crate::jmespath::{Expression, Part};
use crate::value::Str;

/// What the result of `text` holds of `request`, then what it uses of it: `whole`, and `user` for its members `user`.
fn flow(text: &str) -> [String; 2] {
    let is_watched = |member: &str| member == "user";
    let root = |keys: &[Str]| match keys {
        [first, rest @ ..] if first == "request" => Part::WHOLE.at(rest, &is_watched),
        _ => Part::default(),
    };
    let flow = Expression::compile(text).unwrap().flow(&root, &is_watched);
    [flow.result, flow.used].map(|part| {
        let names = [("whole", part.whole), ("user", part.member)];
        names.iter().filter(|(_, holds)| *holds).map(|(name, _)| *name).collect::<Vec<_>>().join(" ")
    })
}

#[test]
fn a_whole_variable_is_told_from_its_members() {
    for (text, result, used) in [
        ("request", "whole", ""),
        ("request.object.metadata", "", ""),
        ("request.object.user", "", ""),
        ("request.user.name", "user", ""),
        ("request.\"user\"", "user", ""),
        ("request | user", "user", ""),
        ("request | object.name", "", ""),
        ("request.user[0]", "user", "user"),
        ("request || other", "whole", ""),
        ("(request && request).object", "", ""),
        ("(other || request).user", "user", ""),
        ("other.user", "", ""),
        ("'user'", "", ""),
        ("request.[object, name]", "", ""),
        ("request.[user, name]", "user", "user"),
        ("request.{a: user}", "user", "user"),
        ("{a: request}", "", "whole"),
        ("values(request)", "", "whole"),
        ("keys(request.object)", "", ""),
        ("request.*", "", "whole"),
        ("request.*.name", "", "whole"),
        ("[request][?user]", "", "whole"),
        ("merge(request, other).name", "", "whole"),
        ("to_string(request)", "", "whole"),
        ("request.user == 'a'", "", "user"),
        ("request == other", "", "whole"),
        ("!(request.user)", "", "user"),
        ("request.object.list[?user].user", "", ""),
        ("map(&user, request.object.list)", "", ""),
        ("request.user.groups[?@ == 'a'] | [0]", "user", "user"),
        ("length(@)", "", "whole"),
        ("@ | request.name", "", ""),
    ] {
        assert_eq!(flow(text), [result, used], "{text}");
    }
}
