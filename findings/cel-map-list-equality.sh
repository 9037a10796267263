#!/usr/bin/env bash
# k8s.io/apiserver v0.37.2: in the API server's CEL, equality depends on the side. A field whose list type is map is not
# equal to a list literal with its elements, but the literal is equal to the field. An atomic list is equal both ways.
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

func list(kind string, items apiextensions.JSONSchemaProps) apiextensions.JSONSchemaProps {
	s := apiextensions.JSONSchemaProps{Type: "array", XListType: &kind,
		Items: &apiextensions.JSONSchemaPropsOrArray{Schema: &items}}
	if kind == "map" {
		s.XListMapKeys = []string{"name"}
	}
	return s
}

func main() {
	slot := apiextensions.JSONSchemaProps{Type: "object",
		Properties: map[string]apiextensions.JSONSchemaProps{"name": {Type: "string"}}}
	structural, err := schema.NewStructural(&apiextensions.JSONSchemaProps{Type: "object",
		Properties: map[string]apiextensions.JSONSchemaProps{"slots": list("map", slot), "atomic": list("atomic", slot)}})
	if err != nil {
		panic(err)
	}
	base := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).NewExpressionsEnv()
	env, err := base.Extend(cel.Variable("self", cel.DynType))
	if err != nil {
		panic(err)
	}
	slots := []any{map[string]any{"name": "a"}}
	object := common.UnstructuredToVal(map[string]any{"slots": slots, "atomic": slots}, &model.Structural{Structural: structural})
	for _, expression := range []string{"self.atomic == [{'name': 'a'}]", "self.slots == [{'name': 'a'}]",
		"[{'name': 'a'}] == self.slots", "self.slots == self.atomic", "self.atomic == self.slots"} {
		ast, issues := env.Compile(expression)
		if issues.Err() != nil {
			panic(issues.Err())
		}
		program, err := env.Program(ast)
		if err != nil {
			panic(err)
		}
		result, _, err := program.Eval(map[string]any{"self": object})
		fmt.Println(expression, "->", result, err)
	}
}
END
go get k8s.io/apiserver@v0.37.2 k8s.io/apiextensions-apiserver@v0.37.2 2>/dev/null
go run . | tee seen
diff - seen <<'END'
self.atomic == [{'name': 'a'}] -> true <nil>
self.slots == [{'name': 'a'}] -> false <nil>
[{'name': 'a'}] == self.slots -> true <nil>
self.slots == self.atomic -> true <nil>
self.atomic == self.slots -> true <nil>
END
