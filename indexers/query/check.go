package query

import (
	"slices"
	"strings"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/references"
)

// Check compares the [Where] conditions of a query with the schema of a version of a type; see
// [indexers.CheckCondition]. The Source of a finding is the condition's text; File is empty.
func Check(q Query, d *crd.Definition, version string) []indexers.Diagnostic {
	var diagnostics []indexers.Diagnostic
	for _, c := range conditions(q) {
		diagnostics = append(diagnostics, indexers.CheckCondition(c.text, d, version)...)
	}
	return diagnostics
}

// Columns returns the distinct paths that options sort by and that an aggregation groups by or computes with.
// [Querier.WithDefinition] compares them with the schema.
func Columns(options Options, a Aggregation) (paths []string) {
	add := func(name string) {
		if isPath(name) && !slices.Contains(paths, name) {
			paths = append(paths, name)
		}
	}
	for _, text := range splitTerms(options.SortBy) {
		name, _ := splitDirection(strings.TrimSpace(text))
		add(name)
	}
	for _, name := range a.GroupBy {
		add(name)
	}
	for _, m := range a.Measures {
		add(m.Operand)
	}
	return paths
}

// WithDefinition returns a Querier over the same source that compares conditions and column paths with the
// schema of a version of the type. Plans warn about paths that are not in it, such as misspelt fields.
// Aggregations take the types of paths from it.
func (q *Querier) WithDefinition(d *crd.Definition, version string) *Querier {
	extended := *q
	extended.definition, extended.version = d, version
	return &extended
}

// warnSchema adds warnings about columns and conditions that are not in the schema.
func (x *execution) warnSchema(columns []string) {
	if x.definition == nil {
		return
	}
	found := Check(x.query, x.definition, x.version)
	for _, path := range columns {
		found = append(found, indexers.CheckColumn(path, x.definition, x.version)...)
	}
	for _, f := range found {
		if w := f.Message + "; " + f.Hint; !slices.Contains(x.plan.Warnings, w) {
			x.plan.Warnings = append(x.plan.Warnings, w)
		}
	}
}

// UsesWhere reports whether a query has [Where] conditions.
func UsesWhere(q Query) bool { return len(conditions(q)) > 0 }

// conditions returns the Where conditions of a query in the order of its text.
func conditions(q Query) (found []*condition) {
	for part := range parts(q) {
		if c, ok := part.(*condition); ok {
			found = append(found, c)
		}
	}
	return found
}

// UsesReferences reports whether a query has conditions about references, so that it needs
// [Querier.WithReferences]. types are the types of the objects named in [ReferredBy], which the graph has to
// contain too.
func UsesReferences(q Query) (follows bool, types []references.Type) {
	for part := range parts(q) {
		if r, ok := part.(*referenceQuery); ok {
			follows = true
			if r.kind == linkFrom {
				types = append(types, references.Type{Group: r.object.Group, Resource: r.object.Resource,
					Kind: r.object.Kind})
			}
		}
	}
	return follows, types
}
