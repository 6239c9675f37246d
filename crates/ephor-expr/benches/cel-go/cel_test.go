// Package celgo measures the expressions of ../expressions.rs with cel-go, the implementation that an API server uses.
package celgo

import (
	"encoding/json"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/ext"
)

const container = `{"name":"a","image":"ghcr.io/acme/app:v1","securityContext":{"privileged":false}}`
const pod = `{"metadata":{"name":"web"},"spec":{"containers":[` + container + `,` + container + `]}}`

var expressions = []struct{ name, text string }{
	{"cel_equal", "object.metadata.name == 'web'"},
	{"cel_all_has", "object.spec.containers.all(c, has(c.securityContext) && has(c.securityContext.privileged) && " +
		"c.securityContext.privileged == false)"},
	{"cel_starts_with", "object.spec.containers.all(c, c.image.startsWith('ghcr.io/') || c.image.startsWith('x'))"},
	{"cel_map_filter", "object.spec.containers.map(c, c.name).filter(n, n != 'x').size() > 0"},
}

func environment(b *testing.B) *cel.Env {
	env, err := cel.NewEnv(cel.Variable("object", cel.DynType), cel.OptionalTypes(), ext.Strings(), ext.Sets())
	if err != nil {
		b.Fatal(err)
	}
	return env
}

// An API server counts the cost of each evaluation against a limit, and checks for cancellation in loops.
var options = []cel.ProgramOption{
	cel.EvalOptions(cel.OptOptimize, cel.OptTrackCost), cel.CostLimit(10_000_000), cel.InterruptCheckFrequency(100),
}

func BenchmarkEvaluate(b *testing.B) {
	env := environment(b)
	var object map[string]any
	if err := json.Unmarshal([]byte(pod), &object); err != nil {
		b.Fatal(err)
	}
	for _, expression := range expressions {
		ast, issues := env.Compile(expression.text)
		if issues.Err() != nil {
			b.Fatal(issues.Err())
		}
		program, err := env.Program(ast, options...)
		if err != nil {
			b.Fatal(err)
		}
		variables := map[string]any{"object": object}
		b.Run(expression.name, func(b *testing.B) {
			b.ReportAllocs()
			for range b.N {
				value, _, err := program.Eval(variables)
				if err != nil || value.Value() != true {
					b.Fatal(value, err)
				}
			}
		})
	}
}

func BenchmarkCompile(b *testing.B) {
	env := environment(b)
	b.ReportAllocs()
	for range b.N {
		ast, issues := env.Compile(expressions[1].text)
		if issues.Err() != nil {
			b.Fatal(issues.Err())
		}
		if _, err := env.Program(ast, options...); err != nil {
			b.Fatal(err)
		}
	}
}
