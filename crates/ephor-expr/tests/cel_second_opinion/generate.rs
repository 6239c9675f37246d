//! Makes an expression and the values of its variables from bytes.
//!
//! Every byte is one choice, and choices that no byte is left for are 0, the simplest one. So a property test shrinks
//! cases by shrinking bytes, and a fuzzer changes them by changing bytes. Expressions are well typed, but for a few that
//! are wrong on purpose. They stay small: the second engine has no bound on its stack.

use super::data::{self, Binding};
use super::terms::{Kind, Level, Term};

/// How deep an expression may nest.
const MAX_DEPTH: usize = 5;
/// After so many parts only variables and literals follow.
const MAX_PARTS: usize = 48;

/// An expression and the values of its variables.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    /// The expression.
    pub(crate) text: String,
    /// Its parts, inner ones first.
    pub(crate) parts: Vec<String>,
    /// The variables, each with its type.
    pub(crate) bindings: Vec<Binding>,
    /// Whether constants are judged while compiling, as Kubernetes does. In most cases they are not, because the
    /// second engine does not: then both have to agree what evaluating them gives.
    pub(crate) strict: bool,
    /// Whether the second engine checks types.
    pub(crate) checked: bool,
}

impl Case {
    /// The same with another expression.
    pub(crate) fn with(&self, text: &str) -> Self {
        Self { text: text.to_owned(), parts: Vec::new(), ..self.clone() }
    }
}

/// A text from elsewhere, with the values that the variables have without a choice.
pub(crate) fn text(text: &str) -> Case {
    Case { text: text.to_owned(), parts: Vec::new(), checked: false, ..case(&[]) }
}

/// Choices, one for each byte.
pub(crate) struct Choices<'b>(std::slice::Iter<'b, u8>);

impl Choices<'_> {
    /// A number below `count`.
    pub(crate) fn below(&mut self, count: usize) -> usize {
        self.0.next().map_or(0, |byte| usize::from(*byte) % count)
    }

    /// One of `items`.
    pub(crate) fn pick<T: Clone>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())].clone()
    }
}

/// The case that `bytes` choose.
pub(crate) fn case(bytes: &[u8]) -> Case {
    let mut choices = Choices(bytes.iter());
    let bindings = data::bindings(&mut choices);
    let kind = choices.pick(&Kind::ALL);
    let strict = choices.below(8) == 7;
    let mut generator = Generator { choices, scope: Vec::new(), count: 0, parts: Vec::new() };
    let text = generator.expression(kind, MAX_DEPTH).text;
    Case { text, parts: generator.parts, bindings, strict, checked: true }
}

struct Generator<'b> {
    choices: Choices<'b>,
    /// The variables of macros around.
    scope: Vec<(String, Kind)>,
    count: usize,
    parts: Vec<String>,
}

impl Generator<'_> {
    fn expression(&mut self, kind: Kind, depth: usize) -> Term {
        let term = self.part(kind, depth);
        self.parts.push(term.text.clone());
        term
    }

    fn part(&mut self, kind: Kind, depth: usize) -> Term {
        self.count += 1;
        if depth == 0 || self.count > MAX_PARTS {
            return self.leaf(kind);
        }
        let depth = depth - 1;
        match self.choices.below(64) {
            0..12 => self.leaf(kind),
            12..15 => self.ternary(kind, depth),
            // Wrong on purpose: most contexts refuse it, and both engines should.
            63 if self.choices.below(4) == 3 => {
                let other = self.choices.pick(&Kind::SCALARS);
                self.part(other, depth)
            }
            _ => self.operation(kind, depth),
        }
    }

    fn leaf(&mut self, kind: Kind) -> Term {
        let scoped: Vec<String> =
            self.scope.iter().filter(|(_, of)| *of == kind).map(|(name, _)| name.clone()).collect();
        let choice = self.choices.below(4);
        if choice < 2 && !scoped.is_empty() {
            return Term::primary(self.choices.pick(&scoped));
        }
        if choice == 0 {
            return Term::primary(self.choices.pick(kind.variables()));
        }
        let text = self.choices.pick(data::literals(kind.variables()[0]));
        let level = if text.starts_with('-') { Level::Unary } else { Level::Primary };
        Term::new(text, level)
    }

    fn ternary(&mut self, kind: Kind, depth: usize) -> Term {
        let condition = self.expression(Kind::Bool, depth).at(Level::Or);
        let (yes, no) = (self.expression(kind, depth).at(Level::Or), self.expression(kind, depth));
        Term::new(format!("{condition} ? {yes} : {}", no.text), Level::Ternary)
    }

    fn operation(&mut self, kind: Kind, depth: usize) -> Term {
        match kind {
            Kind::Bool => self.bool(depth),
            Kind::Int | Kind::Uint | Kind::Double => self.number(kind, depth),
            Kind::Text => self.text(depth),
            Kind::Bytes => match self.choices.below(2) {
                0 => self.sum("+", kind, depth),
                _ => self.call("bytes", Kind::Text, depth),
            },
            Kind::Span => match self.choices.below(4) {
                0 => self.sum("+", kind, depth),
                1 => self.sum("-", kind, depth),
                2 => self.binary("-", (Kind::Time, Kind::Time), Level::Sum, depth),
                _ => self.call("duration", Kind::Text, depth),
            },
            Kind::Time => match self.choices.below(5) {
                0 => self.binary("+", (Kind::Time, Kind::Span), Level::Sum, depth),
                1 => self.binary("+", (Kind::Span, Kind::Time), Level::Sum, depth),
                2 => self.binary("-", (Kind::Time, Kind::Span), Level::Sum, depth),
                3 => self.call("timestamp", Kind::Text, depth),
                _ => self.call("timestamp", Kind::Int, depth),
            },
            Kind::Dyn => self.dynamic(depth),
            Kind::Ints => self.list(kind, Kind::Int, depth),
            Kind::Texts => self.list(kind, Kind::Text, depth),
            Kind::Counts => self.map(Kind::Text, Kind::Int, depth),
            Kind::Names => self.map(Kind::Int, Kind::Text, depth),
        }
    }

    fn bool(&mut self, depth: usize) -> Term {
        match self.choices.below(16) {
            0 => self.binary("&&", (Kind::Bool, Kind::Bool), Level::And, depth),
            1 => self.binary("||", (Kind::Bool, Kind::Bool), Level::Or, depth),
            2 => Term::new(format!("!{}", self.expression(Kind::Bool, depth).at(Level::Unary)), Level::Unary),
            3 | 4 => {
                let (operator, kind) = (self.choices.pick(&["==", "!="]), self.choices.pick(&Kind::ALL));
                self.binary(operator, (kind, kind), Level::Relation, depth)
            }
            5 | 6 => {
                let operator = self.choices.pick(&["<", "<=", ">", ">="]);
                let kind = self.choices.pick(&Kind::SCALARS);
                self.binary(operator, (kind, kind), Level::Relation, depth)
            }
            7 => {
                let operator = self.choices.pick(&["<", "<=", ">", ">=", "==", "!="]);
                let dynamic = operator.ends_with('=') && operator.len() == 2 && self.choices.below(2) == 1;
                let (a, b) = (self.choices.pick(&Kind::NUMBERS), self.choices.pick(&Kind::NUMBERS));
                let kinds = if dynamic {
                    (Kind::Dyn, b)
                } else if operator.len() == 1 {
                    (a, b)
                } else {
                    (a, Kind::Dyn)
                };
                self.binary(operator, kinds, Level::Relation, depth)
            }
            8 => {
                let (range, element) = self.choices.pick(&Kind::RANGES);
                self.binary("in", (element, range), Level::Relation, depth)
            }
            9 => self.empty(depth),
            10 => {
                let function = self.choices.pick(&["contains", "startsWith", "endsWith"]);
                let (text, part) = (self.expression(Kind::Text, depth), self.expression(Kind::Text, depth));
                Term::primary(format!("{}.{function}({})", text.at(Level::Primary), part.text))
            }
            11 => {
                let text = self.expression(Kind::Text, depth).at(Level::Primary);
                let pattern = self.choices.pick(data::PATTERNS);
                Term::primary(format!("{text}.matches({pattern})"))
            }
            12 => Term::primary(format!("has({})", self.choices.pick(data::FIELDS))),
            13 => self.quantifier(depth),
            14 => self.call("bool", Kind::Text, depth),
            _ => {
                let (kind, name) = (self.choices.pick(&Kind::ALL), self.choices.pick(data::TYPES));
                Term::new(format!("type({}) == {name}", self.expression(kind, depth).text), Level::Relation)
            }
        }
    }

    /// Empty literals stand only here. Elsewhere the second engine gives their elements types that it cannot resolve,
    /// and its stack overflows when such a type becomes part of itself.
    fn empty(&mut self, depth: usize) -> Term {
        let (kind, literal) =
            self.choices.pick(&[(Kind::Ints, "[]"), (Kind::Texts, "[]"), (Kind::Counts, "{}"), (Kind::Names, "{}")]);
        let operator = self.choices.pick(&["==", "!=", "in"]);
        let kind = match (operator, kind) {
            ("in", Kind::Ints | Kind::Names) => Kind::Int,
            ("in", _) => Kind::Text,
            (_, kind) => kind,
        };
        let value = self.expression(kind, depth).at(Level::Relation);
        Term::new(format!("{value} {operator} {literal}"), Level::Relation)
    }

    fn number(&mut self, kind: Kind, depth: usize) -> Term {
        let conversion = match kind {
            Kind::Int => ("int", [Kind::Uint, Kind::Double, Kind::Text, Kind::Time]),
            Kind::Uint => ("uint", [Kind::Int, Kind::Double, Kind::Text, Kind::Text]),
            _ => ("double", [Kind::Int, Kind::Uint, Kind::Text, Kind::Text]),
        };
        match self.choices.below(8) {
            0 => self.sum("+", kind, depth),
            1 => self.sum("-", kind, depth),
            2 => {
                let operators: &[&str] = if kind == Kind::Double { &["*", "/"] } else { &["*", "/", "%"] };
                let operator = self.choices.pick(operators);
                self.binary(operator, (kind, kind), Level::Product, depth)
            }
            3 if kind == Kind::Int => {
                let of = self.choices.pick(&[Kind::Time, Kind::Span]);
                let value = self.expression(of, depth).at(Level::Primary);
                Term::primary(format!("{value}.{}()", self.choices.pick(data::getters(of == Kind::Span))))
            }
            4 if kind != Kind::Uint => {
                Term::new(format!("-{}", self.expression(kind, depth).at(Level::Unary)), Level::Unary)
            }
            5 if kind == Kind::Int => self.size(depth),
            6 if kind == Kind::Int => self.element(&[(Kind::Ints, Kind::Int), (Kind::Counts, Kind::Text)], depth),
            _ => {
                let from = self.choices.pick(&conversion.1);
                self.call(conversion.0, from, depth)
            }
        }
    }

    fn text(&mut self, depth: usize) -> Term {
        match self.choices.below(4) {
            0 => self.sum("+", Kind::Text, depth),
            1 => self.element(&[(Kind::Texts, Kind::Int), (Kind::Names, Kind::Int)], depth),
            _ => {
                let from = self.choices.pick(&Kind::SCALARS);
                self.call("string", from, depth)
            }
        }
    }

    fn size(&mut self, depth: usize) -> Term {
        let kind = self.choices.pick(&Kind::SIZED);
        let value = self.expression(kind, depth);
        Term::primary(match self.choices.below(2) {
            0 => format!("size({})", value.text),
            _ => format!("{}.size()", value.at(Level::Primary)),
        })
    }

    /// An element of one of the `ranges`, which are given with the types of their keys.
    fn element(&mut self, ranges: &[(Kind, Kind)], depth: usize) -> Term {
        let (range, key) = self.choices.pick(ranges);
        let value = self.expression(range, depth).at(Level::Primary);
        if range == Kind::Counts && self.choices.below(2) == 1 {
            return Term::primary(format!("{value}.{}", self.choices.pick(&["a", "b", "missing"])));
        }
        // Most keys are not there.
        let key = match (self.choices.below(2), key) {
            (0, Kind::Int) => self.choices.pick(&["0", "1"]).to_owned(),
            (0, _) => self.choices.pick(&["'a'", "'b'"]).to_owned(),
            (_, kind) => self.expression(kind, depth).text,
        };
        Term::primary(format!("{value}[{key}]"))
    }

    fn dynamic(&mut self, depth: usize) -> Term {
        match self.choices.below(4) {
            0 => Term::primary(self.choices.pick(data::PATHS)),
            1 => Term::primary(format!("dyn({})", self.sum("+", Kind::Dyn, depth).text)),
            2 => {
                let (value, key) = (self.expression(Kind::Dyn, depth), self.choices.pick(&[Kind::Int, Kind::Text]));
                Term::primary(format!("dyn({}[{}])", value.at(Level::Primary), self.expression(key, depth).text))
            }
            _ => {
                let kind = self.choices.pick(&Kind::ALL);
                self.call("dyn", kind, depth)
            }
        }
    }

    fn list(&mut self, list: Kind, element: Kind, depth: usize) -> Term {
        match self.choices.below(5) {
            0 => {
                let count = 1 + self.choices.below(3);
                let items: Vec<String> = (0..count).map(|_| self.expression(element, depth).text).collect();
                Term::primary(format!("[{}]", items.join(", ")))
            }
            1 => self.sum("+", list, depth),
            2 => {
                let value = self.expression(list, depth).at(Level::Primary);
                let (name, test) = self.body(element, Kind::Bool, depth);
                Term::primary(format!("{value}.filter({name}, {test})"))
            }
            3 => {
                let (range, of) = self.choices.pick(&Kind::RANGES);
                let value = self.expression(range, depth).at(Level::Primary);
                let (name, item) = self.body(of, element, depth);
                Term::primary(format!("{value}.map({name}, {item})"))
            }
            _ => {
                let (range, of) = self.choices.pick(&Kind::RANGES);
                let value = self.expression(range, depth).at(Level::Primary);
                let (name, test) = self.body(of, Kind::Bool, depth);
                self.scope.push((name.clone(), of));
                let item = self.expression(element, depth).text;
                self.scope.pop();
                Term::primary(format!("{value}.map({name}, {test}, {item})"))
            }
        }
    }

    fn map(&mut self, key: Kind, value: Kind, depth: usize) -> Term {
        let count = 1 + self.choices.below(3);
        let mut entry = |_| format!("{}: {}", self.expression(key, depth).text, self.expression(value, depth).text);
        let entries: Vec<String> = (0..count).map(&mut entry).collect();
        Term::primary(format!("{{{}}}", entries.join(", ")))
    }

    fn quantifier(&mut self, depth: usize) -> Term {
        let function = self.choices.pick(&["all", "exists", "exists_one"]);
        let (range, element) = self.choices.pick(&Kind::RANGES);
        let value = self.expression(range, depth).at(Level::Primary);
        let (name, test) = self.body(element, Kind::Bool, depth);
        Term::primary(format!("{value}.{function}({name}, {test})"))
    }

    /// The variable of a macro and an expression over it. Names repeat, so that inner variables hide outer ones.
    fn body(&mut self, element: Kind, kind: Kind, depth: usize) -> (String, String) {
        let name = self.choices.pick(&["e", "f", "i"]).to_owned();
        self.scope.push((name.clone(), element));
        let body = self.expression(kind, depth).text;
        self.scope.pop();
        (name, body)
    }

    fn call(&mut self, function: &str, argument: Kind, depth: usize) -> Term {
        let readable = data::readable(function);
        // Most texts cannot be read as another type.
        if argument == Kind::Text && !readable.is_empty() && self.choices.below(8) > 0 {
            return Term::primary(format!("{function}({})", self.choices.pick(readable)));
        }
        Term::primary(format!("{function}({})", self.expression(argument, depth).text))
    }

    fn sum(&mut self, operator: &str, kind: Kind, depth: usize) -> Term {
        self.binary(operator, (kind, kind), Level::Sum, depth)
    }

    /// Operators bind to the left, so only the right operand needs parentheses if it is of the same level.
    fn binary(&mut self, operator: &str, kinds: (Kind, Kind), level: Level, depth: usize) -> Term {
        let (left, right) = (self.expression(kinds.0, depth), self.expression(kinds.1, depth));
        let next = match level {
            Level::Or => Level::And,
            Level::And => Level::Relation,
            Level::Relation => Level::Sum,
            Level::Sum => Level::Product,
            _ => Level::Unary,
        };
        Term::new(format!("{} {operator} {}", left.at(level), right.at(next)), level)
    }
}
