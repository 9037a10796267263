package cel

import (
	"encoding/json"
	"errors"
	"slices"

	"github.com/google/cel-go/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/openapi"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/internal/expression"
	"github.com/crdcache/crdcache/internal/jsonpath"
)

// typedEnv returns the environment of expressions on objects of a type.
func typedEnv(root *apiservercel.DeclType) (*cel.Env, error) {
	options, err := apiservercel.NewDeclTypeProvider(root).EnvOptions(baseEnv().CELTypeProvider())
	if err != nil {
		return nil, err
	}
	return extend(append(options, cel.Variable(self, root.CelType()))...)
}

// NeedsSchema reports whether a schema could change the results.
func (c *celExpression) NeedsSchema() bool {
	root := &crd.Schema{Properties: map[string]*crd.Schema{"metadata": {}}, AdditionalProperties: anySchema}
	return dependsOn(c.untyped, root)
}

// WithSchema returns the expression for objects with a schema, and problems if the schema does not permit it.
// Then the expression is nil if the schema could change its results, otherwise the same one.
func (c *celExpression) WithSchema(s *crd.Schema) (expression.Expression, []expression.Problem) {
	env, err := typedEnv(declaredType(s).MaybeAssignTypeName("object"))
	if err != nil {
		return nil, []expression.Problem{wholeProblem(c.text, err.Error(), correctHint)}
	}
	checked, kind, problems := check(env, c.text)
	switch differs := dependsOn(c.untyped, s); {
	case problems != nil && differs:
		return nil, problems
	case problems != nil:
		return c, problems
	case !differs:
		same := *c
		same.result = kind
		return &same, nil
	}
	var paths [][]jsonpath.Step
	for _, read := range c.reads {
		paths = append(paths, read.Steps)
	}
	data, _ := json.Marshal(fieldsRead(s, paths)) // a schema can always be encoded
	values := &openapi.Schema{Schema: &spec.Schema{}}
	program, err := env.Program(checked, limits...)
	if err = errors.Join(err, json.Unmarshal(data, values.Schema)); err != nil {
		return nil, []expression.Problem{wholeProblem(c.text, err.Error(), correctHint)}
	}
	return &celExpression{c.text, program, kind, c.reads, c.untyped, values, "\n" + string(data)}, nil
}

// fieldsRead returns the part of a schema that affects the values at and below the paths. Texts with a format
// stay texts, as without a schema.
func fieldsRead(s *crd.Schema, paths [][]jsonpath.Step) *crd.Schema {
	if s == nil {
		return nil
	}
	isWhole := len(s.ListMapKeys) > 0 ||
		slices.ContainsFunc(paths, func(path []jsonpath.Step) bool { return len(path) == 0 })
	// below returns the paths below the field with a name, or below the elements for "".
	below := func(name string) (out [][]jsonpath.Step, ok bool) {
		if isWhole {
			return [][]jsonpath.Step{nil}, true
		}
		for _, path := range paths {
			if selector := path[0].Selectors[0]; name == "" || selector.Name == name {
				out = append(out, path[1:])
			}
		}
		return out, len(out) > 0
	}
	out := &crd.Schema{Type: s.Type, Nullable: s.Nullable, PreserveUnknown: s.PreserveUnknown,
		IntOrString: s.IntOrString, EmbeddedResource: s.EmbeddedResource, ListType: s.ListType,
		ListMapKeys: s.ListMapKeys}
	for name, property := range s.Properties {
		if inside, ok := below(name); ok {
			if out.Properties == nil {
				out.Properties = map[string]*crd.Schema{}
			}
			out.Properties[name] = fieldsRead(property, inside)
		}
	}
	inside, _ := below("")
	out.Items = fieldsRead(s.Items, inside)
	out.AdditionalProperties = fieldsRead(s.AdditionalProperties, inside)
	return out
}

// declaredType returns the type of values of a schema. Values that can have several types at run time are
// dynamic. Texts with a format stay texts, because an evaluation has no schema.
func declaredType(s *crd.Schema) *apiservercel.DeclType {
	if s == nil || s.PreserveUnknown || s.IntOrString || s.EmbeddedResource || s.Nullable {
		return apiservercel.DynType
	}
	switch s.Type {
	case "string":
		return apiservercel.StringType
	case "boolean":
		return apiservercel.BoolType
	case "integer":
		return apiservercel.IntType
	case "number":
		return apiservercel.DoubleType
	case "array":
		return apiservercel.NewListType(declaredType(s.Items), 1)
	case "object":
		switch {
		case s.AdditionalProperties != nil:
			return apiservercel.NewMapType(apiservercel.StringType, declaredType(s.AdditionalProperties), 1)
		case len(s.Properties) > 0:
			fields := map[string]*apiservercel.DeclField{}
			for name, property := range s.Properties {
				fields[name] = apiservercel.NewDeclField(name, declaredType(property), false, nil, nil)
			}
			return apiservercel.NewObjectType("object", fields)
		}
	}
	return apiservercel.DynType
}
