package web

import (
	"fmt"
	"strings"

	"github.com/crdcache/crdcache/indexers/query"
	"github.com/crdcache/crdcache/internal/naming"
)

// describePlan describes a plan. Users who may not see all objects get only the number of visible objects.
func describePlan(scope Scope, p *query.Plan) []string {
	if scope.All {
		return planSentences(p)
	}
	return []string{fmt.Sprintf("Visible to you: %s in %s.", naming.FormatCount(p.Objects, "object"),
		strings.Join(scope.Namespaces, ", "))}
}

func planSentences(p *query.Plan) []string {
	var out []string
	if p.Shard != "" {
		out = append(out, fmt.Sprintf(
			"This is a shard (%s): counts cover only its objects.", p.Shard))
	}
	switch {
	case len(p.Start) > 0:
		starts := naming.Texts(p.Start, func(s query.Step) string {
			return fmt.Sprintf("%s (%s)", s.Query, naming.FormatCount(s.Objects, "object"))
		})
		out = append(out, fmt.Sprintf("Starts with %s, out of %d.", strings.Join(starts, " together with "),
			p.Objects))
	case p.Scan && p.Query != query.All().String():
		out = append(out, fmt.Sprintf("No index applies: scans all %s.", naming.FormatCount(p.Objects, "object")))
	default:
		out = append(out, fmt.Sprintf("Takes all %s.", naming.FormatCount(p.Objects, "object")))
	}
	if len(p.Checks) > 0 {
		out = append(out, "Filters them by the indexes: "+strings.Join(p.Checks, " and ")+".")
	}
	if len(p.Bodies) > 0 {
		out = append(out, "Reads the rest to check "+strings.Join(p.Bodies, " and ")+".")
	}
	if p.Order != "" {
		order := "In the order of " + p.Order
		if p.Sort != "" {
			order += ": " + p.Sort
		}
		out = append(out, order+".")
	}
	return append(out, fmt.Sprintf("Found %d with %s.", p.Found, naming.FormatCount(p.Examined, "test")))
}
