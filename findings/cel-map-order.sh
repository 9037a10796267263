#!/usr/bin/env bash
# k8s.io/apiserver v0.37.2 and cel-go v0.30.0: one would expect that a CEL rule gives one result for one object, because CEL has no
# side effects. A macro over a map takes the keys in Go's random order. A list made from a map, by map, filter or transformList, thus
# differs from call to call: a rule that compares it or takes its first element accepts an object in one request and rejects the same
# object in the next. Maps compare equal in any order, and a sorted list is stable.
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
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/cel/environment"
)

func main() {
	text := apiextensions.JSONSchemaProps{Type: "string"}
	structural, err := schema.NewStructural(&apiextensions.JSONSchemaProps{Type: "object",
		Properties: map[string]apiextensions.JSONSchemaProps{"weights": {Type: "object",
			AdditionalProperties: &apiextensions.JSONSchemaPropsOrBool{Schema: &text}}}})
	if err != nil {
		panic(err)
	}
	env, err := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).NewExpressionsEnv().
		Extend(cel.Variable("self", cel.DynType))
	if err != nil {
		panic(err)
	}
	weights := map[string]any{"a": "1", "b": "2", "c": "3", "d": "4"}
	for _, rule := range []string{"self.weights.map(k, k) == ['a', 'b', 'c', 'd']", "self.weights.filter(k, k != 'd')[0] == 'a'",
		"self.weights.transformList(k, v, k + v).join(',') == 'a1,b2,c3,d4'", "self.weights.map(k, k).sort() == ['a', 'b', 'c', 'd']",
		"self.weights == {'d': '4', 'c': '3', 'b': '2', 'a': '1'}"} {
		ast, issues := env.Compile(rule)
		if issues.Err() != nil {
			panic(issues.Err())
		}
		program, err := env.Program(ast)
		if err != nil {
			panic(err)
		}
		results := map[string]bool{}
		for range 500 {
			object := common.UnstructuredToVal(map[string]any{"weights": weights}, &model.Structural{Structural: structural})
			result, _, err := program.Eval(map[string]any{"self": object})
			results[fmt.Sprint(result, " ", err)] = true
		}
		fmt.Println(rule, "->", results)
	}
}
END
go get k8s.io/apiserver@v0.37.2 k8s.io/apiextensions-apiserver@v0.37.2 2>/dev/null
go run . | tee seen
diff - seen <<'END'
self.weights.map(k, k) == ['a', 'b', 'c', 'd'] -> map[false <nil>:true true <nil>:true]
self.weights.filter(k, k != 'd')[0] == 'a' -> map[false <nil>:true true <nil>:true]
self.weights.transformList(k, v, k + v).join(',') == 'a1,b2,c3,d4' -> map[false <nil>:true true <nil>:true]
self.weights.map(k, k).sort() == ['a', 'b', 'c', 'd'] -> map[true <nil>:true]
self.weights == {'d': '4', 'c': '3', 'b': '2', 'a': '1'} -> map[true <nil>:true]
END
