package query

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/internal/sortkey"
	"github.com/crdcache/crdcache/indexers/references"
	"github.com/crdcache/crdcache/internal/expression"
	"github.com/crdcache/crdcache/internal/jsonpath"
	"github.com/crdcache/crdcache/internal/naming"
)

// limitReporter is a snapshot that counts values left out of its indexes.
type limitReporter interface {
	// Dropped returns the number of values that an index has left out because of its limits.
	Dropped(index string) uint64
}

// addWarning adds a warning once.
func (c *compiler) addWarning(format string, args ...any) {
	c.warnings = naming.AppendMissing(c.warnings, fmt.Sprintf(format, args...))
}

// checkComparison warns if an index may answer a comparison differently than the user expects.
func (c *compiler) checkComparison(index openedIndex, q *comparison) {
	if reporter, ok := c.snapshot.(limitReporter); ok && reporter.Dropped(index.name) > 0 {
		c.addWarning("index %q left out values beyond its limits or of failed CEL expressions, so that objects can be missing; see crdcache stats", index.name)
	}
	if index.declared == nil {
		return
	}
	if q.op == opMatches {
		if letter, ok := index.unmatchableLetter(q.values[0].parts[0]); ok {
			c.addWarning("index %q changes the case of its values, so that none has %q; begin the expression with (?i)",
				index.name, letter)
		}
		return
	}
	for _, v := range q.values {
		for i, part := range index.parts(v, true) {
			if i >= len(index.declared.Types()) || index.declared.Types()[i] != "" {
				continue
			}
			if typ := apparentType(q.op, part); typ != "" {
				c.addWarning("index %q has no type and compares %s as text; declare type: %s",
					index.name, part, typ)
				return
			}
		}
	}
}

// apparentType returns the type of an operand if a comparison as text gives another result: as text, 9
// comes after 10, and 1Gi is not 1024Mi.
func apparentType(op operator, text string) string {
	if text == "" || text == indexers.Null || op == opPrefix || op == opContains {
		return ""
	}
	_, isNumber := sortkey.Number.Key(text)
	_, isQuantity := sortkey.Quantity.Key(text)
	switch {
	case isQuantity && !isNumber && (op != opEqual && op != opIn || strings.HasSuffix(text, "i")):
		return sortkey.Quantity.String()
	case op == opEqual, op == opIn:
		return ""
	case isNumber:
		return sortkey.Number.String()
	}
	for _, typ := range []sortkey.Type{sortkey.Duration, sortkey.SemVer, sortkey.IP} {
		if _, ok := typ.Key(text); ok {
			return typ.String()
		}
	}
	return ""
}

// Check compares the [Where] conditions of a query with the schema of a version of a type; see
// [indexers.CheckCondition]. The Source of a finding is the condition's text; File is empty.
func Check(q Query, d *crd.Definition, version string) []indexers.Diagnostic {
	var diagnostics []indexers.Diagnostic
	for _, part := range subqueries(q) {
		switch c := part.(type) {
		case *condition:
			diagnostics = append(diagnostics, indexers.CheckCondition(c.text, d, version)...)
		case *celQuery:
			diagnostics = append(diagnostics, indexers.CheckCEL(c.text, d, version)...)
		}
	}
	return diagnostics
}

// WithSchema returns the query with [WhereCEL] conditions that decode objects with a schema, as the API
// server does: a number is a double, and the order of sets and map lists does not count. Without a schema,
// which is nil, they decode objects as JSON. schema is called when the query is first used.
func WithSchema(q Query, schema func() *crd.Schema) Query {
	switch q := q.(type) {
	case *celQuery:
		bound := *q
		bound.compile = sync.OnceValues(func() (expression.Expression, error) {
			e, err := expression.Compile(q.text)
			typed, ok := e.(interface {
				WithSchema(*crd.Schema) (expression.Expression, []expression.Problem)
			})
			if s := schema(); ok && s != nil {
				if bound, _ := typed.WithSchema(indexers.ObjectSchema(s)); bound != nil {
					e = bound // otherwise Check warns
				}
			}
			return e, err
		})
		return &bound
	case negation:
		return negation{WithSchema(q.sub, schema)}
	case junction:
		q.subs = naming.Map(q.subs, func(sub Query) Query { return WithSchema(sub, schema) })
		return q
	}
	return q
}

// Columns returns the distinct paths that options sort by and that an aggregation groups by or computes with.
// [Querier.WithDefinition] compares them with the schema.
func Columns(options Options, aggregation Aggregation) (paths []string) {
	sortTerms := naming.Texts(jsonpath.SplitList(options.SortBy), func(text string) string {
		name, _ := splitDirection(text)
		return name
	})
	operands := naming.Texts(aggregation.Measures, func(m Measure) string { return m.Operand })
	names := slices.Concat(sortTerms, aggregation.GroupBy, operands)
	isIndex := func(name string) bool { return !isPath(name) }
	return naming.AppendMissing(paths, slices.DeleteFunc(names, isIndex)...)
}

// WithDefinition returns a Querier over the same source that compares conditions and column paths with the
// schema of a version of the type. Plans warn about paths that the schema lacks, such as misspelt fields.
// Aggregations take the types of paths from the schema, and queries have it as in [WithSchema].
func (q *Querier) WithDefinition(d *crd.Definition, version string) *Querier {
	extended := *q
	extended.definition, extended.version = d, version
	return &extended
}

// warnSchema adds warnings about columns and conditions that are not in the schema.
func (e *execution) warnSchema(columns []string) {
	if e.definition == nil {
		return
	}
	diagnostics := Check(e.query, e.definition, e.version)
	for _, path := range columns {
		diagnostics = append(diagnostics, indexers.CheckColumn(path, e.definition, e.version)...)
	}
	for _, diagnostic := range diagnostics {
		e.plan.Warnings = naming.AppendMissing(e.plan.Warnings, diagnostic.Message+"; "+diagnostic.Hint)
	}
}

// UsesWhere reports whether a query has [Where] or [WhereCEL] conditions.
func UsesWhere(q Query) bool {
	for _, part := range subqueries(q) {
		switch part.(type) {
		case *condition, *celQuery:
			return true
		}
	}
	return false
}

// UsesReferences reports whether a query has conditions about references, so that it needs
// [Querier.WithReferences]. types are the types of the objects named in [ReferredBy], which the graph has to
// contain too.
func UsesReferences(q Query) (used bool, types []references.Type) {
	for _, part := range subqueries(q) {
		if r, ok := part.(*referenceQuery); ok {
			used = true
			if r.kind == referredBy {
				types = append(types, references.Type{Group: r.object.Group, Resource: r.object.Resource,
					Kind: r.object.Kind})
			}
		}
	}
	return used, types
}
