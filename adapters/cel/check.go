package cel

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common/types"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/library"
	"k8s.io/apiserver/pkg/cel/openapi"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/internal/expression"
	"github.com/crdcache/crdcache/internal/jsonpath"
)

// maxEstimatedCost is the API server's limit for the estimated cost of a validation rule.
const maxEstimatedCost = 10_000_000

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

// WithSchema returns the expression for objects with a schema. It is the same one if the schema does not
// change its results. It returns problems if the schema changes them and does not permit the expression.
func (c *celExpression) WithSchema(s *crd.Schema) (expression.Expression, []expression.Problem) {
	env, err := typedEnv(declaredType(s).MaybeAssignTypeName("object"))
	if err != nil {
		return c, []expression.Problem{wholeProblem(c.text, err.Error(), correctHint)}
	}
	checked, kind, problems := check(env, c.text)
	if !dependsOn(c.untyped, s) {
		return c, nil
	}
	if problems != nil {
		return c, problems
	}
	var paths [][]jsonpath.Step
	for _, read := range c.reads {
		paths = append(paths, read.Steps)
	}
	data, _ := json.Marshal(fieldsRead(s, paths)) // a schema can always be encoded
	values := &openapi.Schema{Schema: &spec.Schema{}}
	program, err := env.Program(checked, limits...)
	if err = errors.Join(err, json.Unmarshal(data, values.Schema)); err != nil {
		return c, []expression.Problem{wholeProblem(c.text, err.Error(), correctHint)}
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

// Check compares the expression with the schema of a type, and returns the kind of its results.
func (c *celExpression) Check(s *crd.Schema) (expression.Kind, []expression.Problem) {
	root := declaredType(s).MaybeAssignTypeName("object")
	env, err := typedEnv(root)
	if err != nil {
		return 0, []expression.Problem{wholeProblem(c.text, err.Error(), correctHint)}
	}
	checked, kind, problems := check(env, c.text)
	if problems != nil {
		return 0, problems
	}
	cost, err := env.EstimateCost(checked, &library.CostEstimator{SizeEstimator: sizeEstimator{root}})
	if err == nil && cost.Max > maxEstimatedCost {
		problems = append(problems, wholeProblem(c.text,
			fmt.Sprintf("the estimated cost of %d exceeds the API server's limit of %d", cost.Max,
				maxEstimatedCost),
			"use fewer nested loops, or lower maxItems and maxLength in the CRD"))
	}
	return kind, problems
}

// declaredType returns the type of values of a schema. Values that can have several types at run time are
// dynamic. Texts with a format stay texts, because an evaluation has no schema.
func declaredType(s *crd.Schema) *apiservercel.DeclType {
	if s == nil || s.PreserveUnknown || s.IntOrString || s.EmbeddedResource || s.Nullable {
		return apiservercel.DynType
	}
	switch s.Type {
	case "string":
		t := apiservercel.NewSimpleTypeWithMinSize("string", cel.StringType, types.String(""),
			apiservercel.MinStringSize)
		t.MaxElements = maxSize(s.MaxLength)
		return t
	case "boolean":
		return apiservercel.BoolType
	case "integer":
		return apiservercel.IntType
	case "number":
		return apiservercel.DoubleType
	case "array":
		return apiservercel.NewListType(declaredType(s.Items), maxSize(s.MaxItems))
	case "object":
		switch {
		case s.AdditionalProperties != nil:
			return apiservercel.NewMapType(apiservercel.StringType, declaredType(s.AdditionalProperties),
				maxSize(s.MaxProperties))
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

// maxSize returns the declared maximum size of a value. Without a maximum it returns 1, so that the estimate
// ignores the size. The cost limit of each evaluation still applies.
func maxSize(declared *int64) int64 {
	if declared == nil {
		return 1
	}
	return max(*declared, 0)
}

// sizeEstimator estimates the sizes of values by the type of the object.
type sizeEstimator struct{ root *apiservercel.DeclType }

func (s sizeEstimator) EstimateSize(node checker.AstNode) *checker.SizeEstimate {
	typ := s.root
	for i, name := range node.Path() {
		switch {
		case i == 0: // self
		case typ == nil:
		case name == "@items" || name == "@values":
			typ = typ.ElemType
		case name == "@keys":
			typ = typ.KeyType
		default:
			field := typ.Fields[name]
			if typ = nil; field != nil {
				typ = field.Type
			}
		}
	}
	if len(node.Path()) == 0 || typ == nil || typ.MaxElements <= 0 {
		return &checker.SizeEstimate{Max: 1}
	}
	return &checker.SizeEstimate{Max: uint64(typ.MaxElements)}
}

func (sizeEstimator) EstimateCallCost(string, string, *checker.AstNode,
	[]checker.AstNode) *checker.CallEstimate {
	return nil
}
