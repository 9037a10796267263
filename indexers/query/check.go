package query

import (
	"slices"
	"strings"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/references"
)

// Check compares the conditions that a query has by [Where] with the schema of a version of a type; see
// [indexers.CheckCondition]. The Source of each finding is the condition as it is written, and it has no
// File.
func Check(q Query, d *crd.Definition, version string) []indexers.Diagnostic {
	var all []indexers.Diagnostic
	for _, c := range conditions(q, nil) {
		all = append(all, indexers.CheckCondition(c.text, d, version)...)
	}
	return all
}

// Columns gives the paths that options sort by and an aggregation groups by or computes with, each once. A
// Querier WithDefinition compares them with the schema.
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
		add(m.Of)
	}
	return paths
}

// WithDefinition returns a Querier over the same source that compares the conditions of queries, and the
// paths that are sorted by, grouped or computed with, with the schema that a version of the type has: what
// does not fit, such as a misspelt field, which leads to nothing, is a warning of the plan. Aggregations take
// the types of paths from it.
func (q *Querier) WithDefinition(d *crd.Definition, version string) *Querier {
	with := *q
	with.misfits = func(query Query, columns []string) (warnings []string) {
		found := Check(query, d, version)
		for _, path := range columns {
			found = append(found, indexers.CheckColumn(path, d, version)...)
		}
		for _, f := range found {
			warnings = append(warnings, f.Message+"; "+f.Hint)
		}
		return warnings
	}
	with.types = func(path string) string { return indexers.ColumnType(path, d, version) }
	return &with
}

// misfit warns of what does not fit the schema, if that is known.
func (x *execution) misfit(columns []string) {
	if x.misfits == nil {
		return
	}
	for _, w := range x.misfits(x.query, columns) {
		if !slices.Contains(x.plan.Warnings, w) {
			x.plan.Warnings = append(x.plan.Warnings, w)
		}
	}
}

// LooksIntoObjects reports whether a query has conditions by [Where].
func LooksIntoObjects(q Query) bool { return len(conditions(q, nil)) > 0 }

// conditions appends those of a query, in the order in which they are written.
func conditions(q Query, dst []*condition) []*condition {
	switch q := q.(type) {
	case *condition:
		dst = append(dst, q)
	case negation:
		dst = conditions(q.sub, dst)
	case junction:
		for _, sub := range q.subs {
			dst = conditions(sub, dst)
		}
	}
	return dst
}

// FollowsReferences reports whether a query asks about references, so that it needs a Querier WithReferences.
// The types are those of the objects that it asks for by [ReferredBy]: the graph has to follow them, too.
func FollowsReferences(q Query) (follows bool, types []references.Type) {
	switch q := q.(type) {
	case *linking:
		if q.of == linkFrom {
			types = append(types, references.Type{Group: q.object.Group, Resource: q.object.Resource,
				Kind: q.object.Kind})
		}
		return true, types
	case negation:
		return FollowsReferences(q.sub)
	case junction:
		for _, sub := range q.subs {
			one, more := FollowsReferences(sub)
			follows, types = follows || one, append(types, more...)
		}
	}
	return follows, types
}
