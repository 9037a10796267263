package query

import (
	"fmt"
	"slices"
	"strings"

	"github.com/crdcache/crdcache/indexers/jsonpath"
)

// Plan says how a query is answered.
type Plan struct {
	// Query is the query in the text syntax.
	Query string
	// Shard is that of the Stamp: where it is not empty, all numbers are of this part of the objects alone.
	Shard string
	// Objects is how many objects there are.
	Objects int
	// Scan is set when every object is looked at. Otherwise Start says which conditions give the objects that
	// are looked at; of several ones, all of them together.
	Scan  bool
	Start []Step
	// Checks are tested of each of them, in this order, and Bodies after that, each of which looks into the
	// object.
	Checks, Bodies []string
	// Order is what the result is sorted by. Sort says how it comes into that order: by sorting what is
	// found, or by going along an index. It is empty for the order of namespace and name alone.
	Order, Sort string
	// Warnings say why the answer may not be what was meant: an index has left out values, or compares
	// numbers as text, it is not known what dangles, or a path does not fit the schema of
	// [Querier.WithDefinition].
	Warnings []string
	// Notes say how the query is read where people may expect another reading, such as that of != without a
	// value.
	Notes []string
	// Examined is how many tests of an object were made: one when the start gives it, for the Checks, and
	// another when these have left it, for the Bodies and its place in the result. Found is how many objects
	// the result has. Both are 0 before the query has run.
	Examined, Found int
}

// Step is a condition that an index answers.
type Step struct {
	// Query is the condition in the text syntax.
	Query string
	// Objects is how many objects fulfil it, at most; of long stretches of an index, about.
	Objects int
}

// String describes the plan, one step on each line.
func (p *Plan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "query  %s\n", p.Query)
	if p.Shard != "" {
		fmt.Fprintf(
			&b, "shard  %s; counts are of this part of the objects, and unique indexes are unique in it\n", p.Shard)
	}
	switch {
	case p.Scan:
		fmt.Fprintf(&b, "scan   all %d objects\n", p.Objects)
	case len(p.Start) == 0:
		b.WriteString("start  with no object\n")
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
		fmt.Fprintf(&b, "doubt  %s\n", w)
	}
	if p.Examined > 0 {
		fmt.Fprintf(&b, "found  %s by %s\n", count(p.Found, "object"), count(p.Examined, "test"))
	}
	return b.String()
}

func count(n int, of string) string {
	if n == 1 {
		return "1 " + of
	}
	return fmt.Sprintf("%d %ss", n, of)
}

// notes appends what != means for objects without the value: an index and a condition differ.
func notes(q Query, negated bool, dst []string) []string {
	switch q := q.(type) {
	case junction:
		for _, sub := range q.subs {
			dst = notes(sub, negated, dst)
		}
	case negation:
		if c, ok := q.sub.(*comparison); ok && c.op == opEqual && !negated {
			dst = append(dst, fmt.Sprintf("%s also holds for objects without a value in %s; add && %s to leave them out", q,
				c.index, c.index))
		}
		dst = notes(q.sub, !negated, dst)
	case *condition:
		filter, err := jsonpath.CompileFilter(q.text)
		if err == nil && slices.ContainsFunc(filter.Comparisons(),
			func(c jsonpath.Comparison) bool { return c.Op == "!=" }) {
			dst = append(dst, fmt.Sprintf("%s: != does not hold for objects without the value; write !(... == ...) to include them", q))
		}
	}
	return dst
}

func (x *execution) makePlan(warnings []string) *Plan {
	p := &Plan{
		Query: x.query.String(), Shard: x.snapshot.Stamp().Shard, Objects: x.snapshot.Len(), Scan: !x.driven,
		Order: x.order.String(), Sort: x.sortText(), Warnings: warnings,
		Notes: notes(x.query, false, nil),
	}
	for _, k := range x.driver.parts {
		p.Start = append(p.Start, Step{k.text(), k.size()})
	}
	for _, c := range x.cheap {
		if c.cost() != costNothing {
			p.Checks = append(p.Checks, c.text())
		}
	}
	for _, c := range x.dear {
		p.Bodies = append(p.Bodies, c.text())
	}
	return p
}
