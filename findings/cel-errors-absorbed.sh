#!/usr/bin/env bash
# cel-go v0.30.0: || and && ignore an error of one operand if the other one decides, also when the
# failing operand comes first. The macros exists and all do the same: a list with an element that lacks
# the field passes as long as another element decides. The same condition with exists_one, filter or ?:
# fails. Other languages fail in all these cases, so a rule that works for one list can fail for the next
# one.
set -euo pipefail
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT
export GOWORK=off GOFLAGS=-mod=mod
go mod init finding 2>/dev/null
cat >main.go <<'END'
package main

import (
	"fmt"

	"github.com/google/cel-go/cel"
)

func main() {
	env, err := cel.NewEnv(cel.Variable("targets", cel.DynType))
	if err != nil {
		panic(err)
	}
	targets := []any{map[string]any{"name": "a"}, map[string]any{"name": "b", "weight": 3}}
	for _, text := range []string{
		`targets[0].weight == 3 || true`,
		`targets[0].weight == 3 && false`,
		`targets[0].weight == 3 ? true : true`,
		`targets.exists(t, t.weight == 3)`,
		`targets.exists(t, t.weight == 4)`,
		`targets.all(t, t.weight == 4)`,
		`targets.all(t, t.weight == 3)`,
		`targets.exists_one(t, t.weight == 3)`,
		`targets.filter(t, t.weight == 3).size() > 0`,
	} {
		ast, issues := env.Compile(text)
		if issues.Err() != nil {
			panic(issues.Err())
		}
		program, err := env.Program(ast)
		if err != nil {
			panic(err)
		}
		value, _, err := program.Eval(map[string]any{"targets": targets})
		if err != nil {
			fmt.Println(text, "error:", err)
			continue
		}
		fmt.Println(text, value)
	}
}
END
go get github.com/google/cel-go@v0.30.0 2>/dev/null
go run . | tee seen
diff - seen <<'END'
targets[0].weight == 3 || true true
targets[0].weight == 3 && false false
targets[0].weight == 3 ? true : true error: no such key: weight
targets.exists(t, t.weight == 3) true
targets.exists(t, t.weight == 4) error: no such key: weight
targets.all(t, t.weight == 4) false
targets.all(t, t.weight == 3) error: no such key: weight
targets.exists_one(t, t.weight == 3) error: no such key: weight
targets.filter(t, t.weight == 3).size() > 0 error: no such key: weight
END
