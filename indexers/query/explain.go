package query

import (
	"fmt"
	"slices"
	"strings"

	"github.com/crdcache/crdcache/internal/jsonpath"
	"github.com/crdcache/crdcache/internal/naming"
)

// Plan describes how a query is answered.
type Plan struct {
	// Query is the query in the text syntax.
	Query string
	// Shard is Freshness.Shard: if not empty, all numbers cover only this shard.
	Shard string
	// Objects is the number of objects in the source.
	Objects int
	// Scan is set if every object is tested. Otherwise the candidates are the objects of the indexed
	// conditions in Start.
	Scan  bool
	Start []Step
	// Checks are tested on each candidate, in this order. Bodies are tested last; each reads the object.
	Checks, Bodies []string
	// Order describes the sort order. Sort describes how it is made: by sorting the candidates, or by walking
	// an index. It is empty for the order of namespace and name.
	Order, Sort string
	// Warnings describe why the answer may be wrong or incomplete: an index left out values or compares
	// numbers as text, dangling references are not known, or a path is not in the schema of
	// [Querier.WithDefinition].
	Warnings []string
	// Notes explain how ambiguous parts are read, such as != on objects without a value.
	Notes []string
	// Examined is the number of tests: one for each candidate by Checks, and one for each that passes them by
	// Bodies and the order. Found is the number of objects in the result. Both are 0 in a plan that has not
	// run.
	Examined, Found int
}

// Step is a condition that an index answers.
type Step struct {
	// Query is the condition in the text syntax.
	Query string
	// Objects is an upper bound of the number of matching objects, or an estimate for a long range of an
	// index.
	Objects int
}

// String returns the plan, one step a line.
func (p *Plan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "query  %s\n", p.Query)
	if p.Shard != "" {
		fmt.Fprintf(&b, "shard  %s; all numbers refer to this shard\n", p.Shard)
	}
	switch {
	case p.Scan:
		fmt.Fprintf(&b, "scan   all %d objects\n", p.Objects)
	case len(p.Start) == 0:
		b.WriteString("start  nothing\n")
	}
	for _, s := range p.Start {
		fmt.Fprintf(&b, "start  %s: at most %d of %d objects\n", s.Query, s.Objects, p.Objects)
	}
	for _, c := range p.Checks {
		fmt.Fprintf(&b, "check  %s\n", c)
	}
	for _, c := range p.Bodies {
		fmt.Fprintf(&b, "read   %s\n", c)
	}
	fmt.Fprintf(&b, "order  %s\n", p.Order)
	if p.Sort != "" {
		fmt.Fprintf(&b, "sort   %s\n", p.Sort)
	}
	for _, n := range p.Notes {
		fmt.Fprintf(&b, "note   %s\n", n)
	}
	for _, w := range p.Warnings {
		fmt.Fprintf(&b, "warn   %s\n", w)
	}
	if p.Examined > 0 {
		fmt.Fprintf(&b, "found  %s by %s\n", naming.FormatCount(p.Found, "object"), naming.FormatCount(p.Examined, "test"))
	}
	return b.String()
}

// appendNullNotes appends how != treats objects without a value, which differs between an index and a
// condition.
func appendNullNotes(q Query, negated bool, dst []string) []string {
	switch q := q.(type) {
	case junction:
		for _, sub := range q.subs {
			dst = appendNullNotes(sub, negated, dst)
		}
	case negation:
		if c, ok := q.sub.(*comparison); ok && c.op == opEqual && !negated {
			dst = append(dst, fmt.Sprintf("%s also holds for objects without a value in %s; add && %s to leave them out", q,
				c.index, c.index))
		}
		dst = appendNullNotes(q.sub, !negated, dst)
	case *condition:
		filter, err := q.compile()
		if err == nil && slices.ContainsFunc(filter.Tests(),
			func(t jsonpath.Test) bool { return t.Op == "!=" && t.HasLiteral }) {
			dst = append(dst, fmt.Sprintf("%s: != does not hold for objects without the value; write !(... == ...) to include them", q))
		}
	}
	return dst
}

func (e *execution) makePlan(warnings []string) *Plan {
	plan := &Plan{
		Query: e.query.String(), Shard: e.snapshot.Freshness().Shard, Objects: e.snapshot.Len(),
		Scan:  !e.hasCandidateList,
		Order: e.order.String(), Sort: e.sortText(), Warnings: warnings,
		Notes: appendNullNotes(e.query, false, nil),
	}
	for _, source := range e.candidateList.parts {
		plan.Start = append(plan.Start, Step{source.text(), source.size()})
	}
	for _, c := range e.cheap {
		if c.cost() != costNothing {
			plan.Checks = append(plan.Checks, c.text())
		}
	}
	for _, c := range e.expensive {
		plan.Bodies = append(plan.Bodies, c.text())
	}
	return plan
}
