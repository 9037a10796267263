#!/usr/bin/env bash
# k8s.io/apiserver and apiextensions-apiserver v0.37.2: one would expect that a CEL rule of a CRD keeps its meaning in an admission
# policy, because the API server evaluates both. The CRD's schema types the fields of its rules: a date-time is a timestamp, a byte field
# is its decoded bytes, and a set ignores order. A policy sees the plain JSON of a custom resource, in object instead of self. It compares
# times and durations as texts, so that 12:00+02:00 is after 11:00Z and 9m after 10m. It counts the letters of base64. Only a comparison
# with a timestamp fails; the others give the other result.
set -euo pipefail
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT
export GOWORK=off GOFLAGS=-mod=mod
go mod init finding 2>/dev/null
cat >main.go <<'END'
package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/cel-go/cel"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	crdcel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/admission"
	policycel "k8s.io/apiserver/pkg/admission/plugin/cel"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

type expression string

func (e expression) GetExpression() string  { return string(e) }
func (expression) ReturnTypes() []*cel.Type { return []*cel.Type{cel.BoolType} }

var spec = map[string]any{
	"from": "2026-01-01T12:00:00+02:00", "until": "2026-01-01T11:00:00Z", "pause": "9m", "timeout": "10m",
	"key": "c2VjcmV0", "zones": []any{"a", "b"},
}

// inDefinition reports whether the rule of a CRD accepts the spec.
func inDefinition(ctx context.Context, rule string) bool {
	text := func(format string) apiextensions.JSONSchemaProps {
		return apiextensions.JSONSchemaProps{Type: "string", Format: format}
	}
	zone, set := text(""), "set"
	structural, err := schema.NewStructural(&apiextensions.JSONSchemaProps{
		Type: "object",
		Properties: map[string]apiextensions.JSONSchemaProps{
			"from": text("date-time"), "until": text("date-time"), "pause": text("duration"), "timeout": text("duration"), "key": text("byte"),
			"zones": {Type: "array", XListType: &set, Items: &apiextensions.JSONSchemaPropsOrArray{Schema: &zone}},
		},
		XValidations: apiextensions.ValidationRules{{Rule: rule, Message: "rejected"}},
	})
	if err != nil {
		panic(err)
	}
	errs, _ := crdcel.NewValidator(structural, true, celconfig.PerCallLimit).
		Validate(ctx, nil, structural, spec, nil, celconfig.RuntimeCELCostBudget)
	for _, err := range errs {
		if err.Detail != "rejected" {
			panic(err)
		}
	}
	return len(errs) == 0
}

// inPolicy returns the result of the rule as a validation of a ValidatingAdmissionPolicy.
func inPolicy(ctx context.Context, rule string) string {
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Window", "metadata": map[string]any{"name": "w"}, "spec": spec}}
	kind := object.GroupVersionKind()
	attributes := admission.NewAttributesRecord(object, nil, kind, "", "w", kind.GroupVersion().WithResource("windows"), "",
		admission.Create, nil, false, nil)
	versioned := &admission.VersionedAttributes{Attributes: attributes, VersionedKind: kind, VersionedObject: admission.NewLazyObject(object)}
	environments := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
	results, _, err := policycel.NewConditionCompiler(environments).
		CompileCondition([]policycel.ExpressionAccessor{expression(rule)}, policycel.OptionalVariableDeclarations{},
			environment.StoredExpressions).
		ForInput(ctx, versioned, &admissionv1.AdmissionRequest{}, policycel.OptionalVariableBindings{}, nil, celconfig.RuntimeCELCostBudget)
	if err != nil {
		panic(err)
	}
	if results[0].Error != nil {
		return results[0].Error.Error()
	}
	return fmt.Sprint(results[0].EvalResult)
}

func main() {
	ctx := context.Background()
	for _, rule := range []string{
		"self.from < self.until",
		"self.pause < self.timeout",
		"size(self.key) == 6",
		"self.zones == ['b', 'a']",
		"size(self.zones + ['b', 'c']) == 3",
		"self.from > timestamp('2026-01-01T00:00:00Z')",
	} {
		fmt.Printf("%s: CRD %t, policy %s\n", rule, inDefinition(ctx, rule), inPolicy(ctx, strings.ReplaceAll(rule, "self", "object.spec")))
	}
}
END
go get k8s.io/{apiserver,apiextensions-apiserver,api,apimachinery}@v0.37.2 2>/dev/null
go run . | tee seen
diff - seen <<'END'
self.from < self.until: CRD true, policy false
self.pause < self.timeout: CRD true, policy false
size(self.key) == 6: CRD true, policy false
self.zones == ['b', 'a']: CRD true, policy false
size(self.zones + ['b', 'c']) == 3: CRD true, policy false
self.from > timestamp('2026-01-01T00:00:00Z'): CRD true, policy expression 'object.spec.from > timestamp('2026-01-01T00:00:00Z')' resulted in error: no such overload
END
