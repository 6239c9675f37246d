//! Reading expressions for random text.

/// What a written count may be at most.
const MAX_COUNT: u32 = 1000;
/// How deep groups may nest, and how many repetitions may be stacked on others.
const MAX_DEPTH: usize = 100;

/// A parsed expression.
#[derive(Debug)]
pub(super) enum Node {
    /// Nothing: anchors, empty groups.
    Empty,
    /// One character of these ranges, which hold `count` characters.
    Class { ranges: Vec<(char, char)>, count: u32 },
    /// One after the other.
    Sequence(Vec<Node>),
    /// One of these.
    Choice(Vec<Node>),
    /// From `min` to `max` times; without a `max`, as often as allowed.
    Repeat { node: Box<Node>, min: u32, max: Option<u32> },
}

impl Node {
    fn class(ranges: Vec<(char, char)>) -> Self {
        let count = ranges.iter().map(|&(a, b)| (a..=b).count() as u32).sum();
        Node::Class { ranges, count }
    }
}

/// Why an expression cannot be read, in Go's words.
#[derive(Debug, thiserror::Error)]
pub(super) enum PatternError<'a> {
    #[error("invalid escape sequence: `{0}`")]
    Escape(&'a str),
    #[error("trailing backslash at end of expression: ``")]
    TrailingBackslash,
    #[error("missing argument to repetition operator: `{0}`")]
    NothingToRepeat(&'a str),
    #[error("invalid repeat count: `{0}`")]
    Count(&'a str),
    #[error("invalid character class range: `{0}`")]
    Range(&'a str),
    #[error("missing closing ]: `{0}`")]
    OpenClass(&'a str),
    #[error("missing closing ): `{0}`")]
    OpenGroup(&'a str),
    #[error("unexpected ): `{0}`")]
    ClosedGroup(&'a str),
    #[error("expression nests too deeply: `{0}`")]
    Depth(&'a str),
}

/// A reader of an expression.
pub(super) struct Parser<'a> {
    pattern: &'a str,
    /// The byte to read next.
    at: usize,
    /// Repetitions of repetitions so far, as in `a**`.
    stacked: usize,
}

impl<'a> Parser<'a> {
    /// Reads `pattern`.
    pub(super) fn parse(pattern: &'a str) -> Result<Node, PatternError<'a>> {
        let mut parser = Parser { pattern, at: 0, stacked: 0 };
        let node = parser.choice(0)?;
        match parser.rest() {
            "" => Ok(node),
            _ => Err(PatternError::ClosedGroup(pattern)),
        }
    }

    fn rest(&self) -> &'a str {
        self.since(self.at)
    }

    fn since(&self, start: usize) -> &'a str {
        self.pattern.get(start..).unwrap_or_default()
    }

    /// The text from `start` to here.
    fn taken(&self, start: usize) -> &'a str {
        self.pattern.get(start..self.at).unwrap_or_default()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.rest().chars().next()?;
        self.at += c.len_utf8();
        Some(c)
    }

    fn eat(&mut self, prefix: &str) -> bool {
        let eaten = self.rest().starts_with(prefix);
        if eaten {
            self.at += prefix.len();
        }
        eaten
    }

    /// Alternatives, up to the end or a closing parenthesis.
    fn choice(&mut self, depth: usize) -> Result<Node, PatternError<'a>> {
        if depth > MAX_DEPTH {
            return Err(PatternError::Depth(self.pattern));
        }
        let mut choices = vec![self.sequence(depth)?];
        while self.eat("|") {
            choices.push(self.sequence(depth)?);
        }
        Ok(if choices.len() == 1 { choices.pop().unwrap_or(Node::Empty) } else { Node::Choice(choices) })
    }

    fn sequence(&mut self, depth: usize) -> Result<Node, PatternError<'a>> {
        let mut nodes = Vec::new();
        while !self.rest().is_empty() && !self.rest().starts_with(['|', ')']) {
            let atom = self.atom(depth)?;
            nodes.push(self.repeated(atom)?);
        }
        Ok(Node::Sequence(nodes))
    }

    fn atom(&mut self, depth: usize) -> Result<Node, PatternError<'a>> {
        let start = self.at;
        if self.count().is_some() {
            return Err(PatternError::NothingToRepeat(self.taken(start)));
        }
        let Some(c) = self.next() else { return Ok(Node::Empty) };
        Ok(match c {
            '(' => {
                let node = self.choice(depth + 1)?;
                if !self.eat(")") {
                    return Err(PatternError::OpenGroup(self.pattern));
                }
                node
            }
            '^' | '$' => Node::Empty,
            '.' => Node::class(complement(vec![('\n', '\n')])),
            '[' => self.class(start)?,
            '*' | '+' | '?' => return Err(PatternError::NothingToRepeat(self.taken(start))),
            '\\' => literal(self.escape(start)?),
            c => literal(c),
        })
    }

    /// `atom` with the repetitions that follow it.
    fn repeated(&mut self, atom: Node) -> Result<Node, PatternError<'a>> {
        let mut node = atom;
        loop {
            let start = self.at;
            let (min, max) = if self.eat("*") {
                (0, None)
            } else if self.eat("+") {
                (1, None)
            } else if self.eat("?") {
                (0, Some(1))
            } else if let Some((min, max)) = self.count() {
                let out_of_order = max.is_some_and(|max| max < min);
                if out_of_order || min > MAX_COUNT || max.is_some_and(|max| max > MAX_COUNT) {
                    return Err(PatternError::Count(self.taken(start)));
                }
                (min, max)
            } else {
                return Ok(node);
            };
            if matches!(node, Node::Repeat { .. }) {
                self.stacked += 1;
            }
            if self.stacked > MAX_DEPTH {
                return Err(PatternError::Depth(self.pattern));
            }
            node = Node::Repeat { node: Box::new(node), min, max };
        }
    }

    /// `{n}`, `{n,}` or `{n,m}`; anything else in braces is plain text and is not consumed. Counts too large for a
    /// number stand as the largest.
    fn count(&mut self) -> Option<(u32, Option<u32>)> {
        let body = self.rest().strip_prefix('{')?;
        let (body, _) = body.split_once('}')?;
        let number = |digits: &str| {
            let plain = digits.bytes().all(|b| b.is_ascii_digit()) && (digits.len() == 1 || !digits.starts_with('0'));
            (plain && !digits.is_empty()).then(|| digits.parse().unwrap_or(u32::MAX))
        };
        let bounds = match body.split_once(',') {
            None => {
                let n = number(body)?;
                (n, Some(n))
            }
            Some((min, "")) => (number(min)?, None),
            Some((min, max)) => (number(min)?, Some(number(max)?)),
        };
        self.at += body.len() + 2;
        Some(bounds)
    }

    /// The character meant by an escape; `start` is where its backslash stands.
    fn escape(&mut self, start: usize) -> Result<char, PatternError<'a>> {
        let c = self.next().ok_or(PatternError::TrailingBackslash)?;
        let code = match c {
            'a' => 7,
            'f' => 12,
            'n' => 10,
            'r' => 13,
            't' => 9,
            'v' => 11,
            'x' => self.hexadecimal().ok_or_else(|| PatternError::Escape(self.taken(start)))?,
            // One digit alone would be a reference to a group; zero never is.
            '0' => self.octal(0),
            '1'..='7' if self.rest().starts_with(|d| ('0'..='7').contains(&d)) => self.octal(c as u32 - '0' as u32),
            c if c.is_ascii() && !c.is_ascii_alphanumeric() => c as u32,
            _ => return Err(PatternError::Escape(self.taken(start))),
        };
        char::from_u32(code).ok_or_else(|| PatternError::Escape(self.taken(start)))
    }

    fn octal(&mut self, first: u32) -> u32 {
        let mut code = first;
        for _ in 0..2 {
            let Some(digit) = self.rest().chars().next().and_then(|c| c.to_digit(8)) else { break };
            code = code * 8 + digit;
            self.at += 1;
        }
        code
    }

    /// The two digits after `\x`, or the digits in braces.
    fn hexadecimal(&mut self) -> Option<u32> {
        let digits = if self.eat("{") {
            let (digits, _) = self.rest().split_once('}')?;
            self.at += digits.len() + 1;
            digits
        } else {
            let digits = self.rest().get(..2)?;
            self.at += 2;
            digits
        };
        let plain = digits.bytes().all(|b| b.is_ascii_hexdigit());
        plain.then(|| u32::from_str_radix(digits, 16).ok()).flatten()
    }

    /// A bracketed class; `start` is where it opens.
    fn class(&mut self, start: usize) -> Result<Node, PatternError<'a>> {
        let negated = self.eat("^");
        let mut ranges = Vec::new();
        let mut first = true;
        while first || !self.rest().starts_with(']') {
            let item = self.at;
            // A hyphen stands for itself only at the edges.
            if !first && self.rest().starts_with('-') && !self.rest().starts_with("-]") {
                self.next();
                self.next();
                return Err(PatternError::Range(self.taken(item)));
            }
            first = false;
            if self.rest().starts_with("[:") && self.named(&mut ranges)? {
                continue;
            }
            let low = self.class_char(start)?;
            let ranged = self.rest().starts_with('-') && !self.rest().starts_with("-]");
            let high = if ranged {
                self.next();
                self.class_char(start)?
            } else {
                low
            };
            if high < low {
                return Err(PatternError::Range(self.taken(item)));
            }
            ranges.push((low, high));
        }
        self.next();
        if negated {
            // As in the reference, "anything but" never means a line break.
            ranges.push(('\n', '\n'));
            ranges = complement(ranges);
        }
        Ok(Node::class(ranges))
    }

    fn class_char(&mut self, start: usize) -> Result<char, PatternError<'a>> {
        let at = self.at;
        match self.next() {
            None => Err(PatternError::OpenClass(self.since(start))),
            Some('\\') => self.escape(at),
            Some(c) => Ok(c),
        }
    }

    /// `[:name:]` or `[:^name:]`; false if it is no such thing after all.
    fn named(&mut self, ranges: &mut Vec<(char, char)>) -> Result<bool, PatternError<'a>> {
        let start = self.at;
        let Some((name, _)) = self.since(start + 2).split_once(":]") else { return Ok(false) };
        self.at += name.len() + 4;
        let (negated, name) = name.strip_prefix('^').map_or((false, name), |n| (true, n));
        let known = posix(name).ok_or_else(|| PatternError::Range(self.taken(start)))?.to_vec();
        ranges.extend(if negated { complement(known) } else { known });
        Ok(true)
    }
}

fn literal(c: char) -> Node {
    Node::Class { ranges: vec![(c, c)], count: 1 }
}

/// The characters in none of `ranges`.
fn complement(mut ranges: Vec<(char, char)>) -> Vec<(char, char)> {
    ranges.sort_unstable();
    let mut gaps = Vec::new();
    let mut next = Some('\0');
    for (low, high) in ranges {
        let Some(from) = next else { break };
        if let Some(before) = ('\0'..low).next_back().filter(|&before| from <= before) {
            gaps.push((from, before));
        }
        if high >= from {
            next = (high..=char::MAX).nth(1);
        }
    }
    gaps.extend(next.map(|from| (from, char::MAX)));
    gaps
}

/// The characters of a named class.
fn posix(name: &str) -> Option<&'static [(char, char)]> {
    Some(match name {
        "alnum" => &[('0', '9'), ('A', 'Z'), ('a', 'z')],
        "alpha" => &[('A', 'Z'), ('a', 'z')],
        "ascii" => &[('\0', '\x7f')],
        "blank" => &[('\t', '\t'), (' ', ' ')],
        "cntrl" => &[('\0', '\x1f'), ('\x7f', '\x7f')],
        "digit" => &[('0', '9')],
        "graph" => &[('!', '~')],
        "lower" => &[('a', 'z')],
        "print" => &[(' ', '~')],
        "punct" => &[('!', '/'), (':', '@'), ('[', '`'), ('{', '~')],
        "space" => &[('\t', '\r'), (' ', ' ')],
        "upper" => &[('A', 'Z')],
        "word" => &[('0', '9'), ('A', 'Z'), ('a', 'z'), ('_', '_')],
        "xdigit" => &[('0', '9'), ('A', 'F'), ('a', 'f')],
        _ => return None,
    })
}
