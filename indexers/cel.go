package indexers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/internal/expression"
	"github.com/crdcache/crdcache/internal/jsontext"
)

var documentDecoder = jsontext.NewDecoder()

// eval evaluates an expression on the object, which is decoded once for all expressions.
func (c *collector) eval(e expression.Expression) (any, error) {
	if c.document == nil {
		object, _ := c.root.decoded.(map[string]any)
		return e.Eval(context.Background(), object)
	}
	if c.object == nil {
		object, err := documentDecoder.Decode(c.document)
		if err != nil {
			return nil, err
		}
		c.object = object
	}
	return e.Eval(context.Background(), c.object)
}

// conditionHolds reports whether a condition selects the object. An object on which it fails is not selected.
func (c *collector) conditionHolds(condition expression.Expression) bool {
	switch result, _ := c.eval(condition); result {
	case true:
		return true
	case false:
		c.notSelected.Add(1)
	default:
		c.countFailed()
	}
	return false
}

// readCEL reads the values of a part's expression into c.scalars, and reports whether it could be evaluated.
// A missing field is a missing value, as with a path.
func (c *collector) readCEL(part *indexPart) bool {
	c.scalars = c.scalars[:0]
	result, err := c.eval(part.cel)
	var unusable *expression.UnusableError
	switch {
	case errors.Is(err, expression.ErrMissing):
		return true
	case errors.As(err, &unusable):
		c.mistyped.Add(1)
		return false
	case err != nil:
		c.countFailed()
		return false
	}
	values, isList := result.([]any)
	if isList && part.single {
		c.mistyped.Add(1)
		return false
	}
	if !isList {
		values = []any{result}
	}
	for _, v := range values {
		s := scalarOf(v)
		s.text = strings.Clone(s.text) // must not reference the document
		c.scalars = append(c.scalars, s)
	}
	return true
}

func (c *collector) countFailed() {
	c.failedExpressions.Add(1)
	c.report(c.objectKey)
}

// WithSchema returns the resource with CEL expressions that read objects as validation rules of a CRD do: a
// number is a double, and the order of sets and map lists does not count. read returns the schema of the
// type's version, and is called at most once, if an expression needs it. It returns nil for a type without a
// CRD, whose expressions read JSON, as admission policies do.
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
