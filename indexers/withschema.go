package indexers

import (
	"errors"
	"fmt"
	"slices"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/internal/expression"
)

// WithSchema returns the resource with CEL expressions that read objects as validation rules of a CRD do: a
// number is a double, and the order of sets and map lists does not count. read returns the schema of the
// type's version, and is called at most once, if an expression needs it. It returns nil for a type without a
// CRD, whose expressions read JSON, as a ValidatingAdmissionPolicy.
//
// The problems name the indexes and references that the result lacks, and the metrics without an index,
// because the schema could not be read or does not permit their expressions.
func (r *Resource) WithSchema(read func() (*crd.Schema, error)) (typed *Resource, problems []error) {
	x := schemaBinder{read: read, typed: map[*Index]*Index{}}
	out := *r
	bind := func(noun, name string, index *Index) *Index {
		typed, err := x.bind(index)
		if err != nil {
			problems = append(problems, fmt.Errorf("%s %q is left out: %w", noun, name, err))
		}
		return typed
	}
	out.Indexes, out.References, out.Metrics = nil, nil, nil
	for _, index := range r.Indexes {
		if typed := bind("index", index.Name, index); typed != nil {
			out.Indexes = append(out.Indexes, typed)
		}
	}
	for _, reference := range r.References {
		typed := *reference
		if typed.Index = bind("reference", reference.Name, reference.Index); typed.Index != nil {
			out.References = append(out.References, &typed)
		}
	}
	for _, metric := range r.Metrics {
		typed := *metric
		if typed.Index = bind("metric", metric.Name, metric.Index); typed.Index == nil {
			typed.Index, typed.ownsIndex = metric.Index, false // no cache has it, so the metric is stale
		}
		out.Metrics = append(out.Metrics, &typed)
	}
	if !x.isUsed {
		return r, nil
	}
	return &out, problems
}

// schemaBinder binds the indexes of a resource to a schema.
type schemaBinder struct {
	read    func() (*crd.Schema, error)
	isUsed  bool
	schema  *crd.Schema
	readErr error
	typed   map[*Index]*Index // nil for an index with an error
}

// bind returns an index for objects with the schema: the same one without an expression that needs it, and
// nil with the error.
func (x *schemaBinder) bind(index *Index) (*Index, error) {
	if typed, ok := x.typed[index]; ok && typed != nil {
		return typed, nil
	}
	typed := *index
	typed.parts = slices.Clone(index.parts)
	var errs []error
	bind := func(e expression.Expression) expression.Expression {
		e, err := x.bindExpression(e)
		errs = append(errs, err)
		return e
	}
	typed.whenCEL = bind(index.whenCEL)
	for n := range typed.parts {
		typed.parts[n].cel = bind(typed.parts[n].cel)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	x.typed[index] = &typed
	return &typed, nil
}

func (x *schemaBinder) bindExpression(e expression.Expression) (expression.Expression, error) {
	needing, ok := e.(schemaExpression)
	if !ok || !needing.NeedsSchema() {
		return e, nil
	}
	if !x.isUsed {
		x.isUsed = true
		x.schema, x.readErr = x.read()
	}
	switch {
	case x.readErr != nil:
		return nil, fmt.Errorf("%s: %q needs the schema of the type: %w", codeCELSchema, e, x.readErr)
	case x.schema == nil:
		return e, nil
	}
	typed, problems := needing.WithSchema(ObjectSchema(x.schema))
	if typed == nil {
		return nil, fmt.Errorf("%s: the schema does not permit %q: %s; %s", codeCELSchema, e,
			problems[0].Message, problems[0].Hint)
	}
	return typed, nil
}
