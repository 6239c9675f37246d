//! Estimates of rules, as an API server 1.34 makes them.

use crate::Value;
use crate::cel::profile::{RulePlace, rule_at};
use crate::cel::{Program, Sizes};

const SCHEMA: &str = r#"{"type":"object","required":["s","l"],"properties":{"s":{"type":"string","maxLength":20},
    "u":{"type":"string"},"e":{"type":"string","enum":["a","bbb"]},"b":{"type":"string","format":"byte"},
    "bm":{"type":"string","format":"byte","maxLength":7},"d":{"type":"string","format":"duration"},
    "t":{"type":"string","format":"date-time"},"da":{"type":"string","format":"date"},
    "i":{"type":"integer"},"n":{"type":"number"},"f":{"type":"boolean"},
    "o":{"x-kubernetes-int-or-string":true},"l":{"type":"array","items":{"type":"string","maxLength":5},
    "maxItems":10},"lu":{"type":"array","items":{"type":"string"}},
    "li":{"type":"array","items":{"type":"integer"},"maxItems":7},
    "lo":{"type":"array","maxItems":4,"items":{"type":"object","required":["k"],"properties":{"k":{"type":"string","maxLength":3},
    "v":{"type":"integer"},"sub":{"type":"array","items":{"type":"integer"}}}}},
    "m":{"type":"object","additionalProperties":{"type":"string","maxLength":9},"maxProperties":6},
    "mu":{"type":"object","additionalProperties":{"type":"array","items":{"type":"string","maxLength":2},
    "maxItems":3}},
    "k8s":{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true},
    "free":{"x-kubernetes-preserve-unknown-fields":true},
    "fo":{"type":"object","x-kubernetes-preserve-unknown-fields":true},
    "namespace":{"type":"string","maxLength":8},"a-b":{"type":"string","maxLength":4},
    "ln":{"type":"array","items":{"type":"array","maxItems":2,"items":{"type":"string","maxLength":6}},
    "maxItems":3}}}"#;

#[test]
fn estimates_are_those_of_an_api_server() {
    let schema = Value::from_json(SCHEMA).unwrap();
    let environment = rule_at(&schema, RulePlace::default());
    let sizes = Sizes::of_schema(&schema, false).unwrap();
    for (rule, want) in [
        ("self.s == 'abc'", 3),
        ("self.u.contains(self.s)", 2_516_588),
        ("self.namespace.matches('^a+$')", 1_844_674_407_370_955_266),
        ("self.s.matches(self.u)", 7_077_892),
        ("self.e.findAll('x',3).size()==1", 5),
        ("self.s.replace('','xyz') == 'x'", 19),
        ("self.s.replace(self.s,self.u) == 'a'", 23),
        ("self.u.split(',',3).size()<3", 629_150),
        ("self.l.join(',').indexOf('a')==1", 45),
        ("self.o.upperAscii().trim()=='Q'", 629_149),
        ("url(self.s) == url('http://a')", 12),
        ("ip.isCanonical(self.e)", 3),
        ("cidr(self.s).containsIP(self.s)", 24),
        ("cidr(self.s).containsCIDR('1.0.0.0/8')", 18),
        ("cidr(self.s).ip()==ip('1.2.3.4')", 13),
        ("isQuantity(self.s) && quantity(self.s) == quantity('3')", 22),
        ("!format.dns1123Label().validate(self.s).hasValue()", 261),
        ("format.uuid()==format.date()", 9),
        ("string(bytes(self.s))=='a'", 43),
        ("strings.quote(self.a__dash__b)=='a'", 5),
        ("[self.s,'b'].all(x,x.size()>2)", 25),
        ("{'a':self.s}.all(k,k=='a')", 37),
        ("[self.s].exists_one(x,x==self.s)", 19),
        ("self.s == self.s ? self.s == 'a' : self.f", 15),
        ("self.l.all(x, self.l.all(y,x==y))", 763),
        ("self.lu.isSorted()", 329_854_432_052),
        ("self.li.sum()==3", 10),
        ("self.l.join(self.s).size()>2", 98),
        ("sets.equivalent(self.l,self.l)", 205),
        ("self.l.slice(1,self.i).size()==1", 26),
        ("[self.l].flatten(2).size()==1", 27),
        ("self.lu.distinct().size()==2", 2_199_019_061_265),
        ("self.l.sort().size()==2", 225),
        ("self.l.sortBy(x,x).size()==2", 378),
        ("self.l.transformMap(i,x,x).size()==1", 75),
        ("self.l.map(x,[x]).all(y,y.all(z,z=='a'))", 294),
        ("lists.range(5).map(x,x*2).size()==5", 99),
        ("optional.of(self.s).optMap(v,v+self.l[0]).value()=='a'", 1_844_674_407_370_955_289),
        ("self.lo.all(a, self.lo.all(b, a.k == b.k || a.v != b.v))", 235),
        ("self.lo.map(a,a.sub).all(x, x.size()>0)", 94),
        ("self.m.exists(k, self.m[k]=='a')", 57),
        ("self.mu.exists(k,v,v.exists(z,z==k))", 9_437_163),
        ("self.k8s.metadata.name.startsWith('a')", 5),
        ("self.d > duration('1s')", 4),
        ("self.b + self.bm == b''", 314_578),
        ("type(self.o)==int", 4),
        ("has(self.s) && self.s=='a' || self.f", 6),
        ("dyn(self.l).join()=='a'", 3),
        ("self == oldSelf", 2),
    ] {
        let (_, found) = Program::compile_with_estimate(rule, &environment, &sizes).unwrap();
        assert_eq!(found, want, "{rule}");
    }
}

#[test]
fn what_a_macro_uses_twice_is_estimated_once() {
    let environment = rule_at(&Value::from_json(r#"{"type":"string"}"#).unwrap(), RulePlace::default());
    let mut rule = "optional.of('a')".to_owned();
    for _ in 0..30 {
        rule = format!("{rule}.optMap(v, v)");
    }
    Program::compile_with_estimate(&format!("{rule}.hasValue()"), &environment, &Sizes::default()).unwrap();
}
