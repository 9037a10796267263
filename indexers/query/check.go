package query

import (
	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/indexers"
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
