package query

import (
	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/references"
)

// Check compares the conditions that a query has by [Where] with the schema of a version of a type; see
// [indexers.CheckCondition]. The Source of each finding is the condition as it is written, and it has no File.
func Check(q Query, d *crd.Definition, version string) []indexers.Diagnostic {
	var all []indexers.Diagnostic
	for _, c := range conditions(q, nil) {
		all = append(all, indexers.CheckCondition(c.text, d, version)...)
	}
	return all
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

// FollowsReferences reports whether a query asks about references, so that it needs a Querier WithReferences. The types are
// those of the objects that it asks for by [ReferredBy]: the graph has to follow them, too.
func FollowsReferences(q Query) (follows bool, types []references.Type) {
	switch q := q.(type) {
	case *linking:
		if q.of == linkFrom {
			types = append(types, references.Type{Group: q.object.Group, Resource: q.object.Resource, Kind: q.object.Kind})
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
