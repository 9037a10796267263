package query_test

import (
	"strings"
	"testing"

	"github.com/crdcache/crdcache/indexers/query"
)

// TestNegationsUseIndexes verifies that the plan of !(A || B) or !(A && B) starts with the index of an
// operand that is itself negated.
func TestNegationsUseIndexes(t *testing.T) {
	querier := newCacheQuerier(t, testObjects()...)
	for text, start := range map[string]string{
		"!(team!=edge || weight>9)":               "team=edge",
		"!(!(team=edge) || !(weight=9) || tier)":  "weight=9",
		"!(team!=edge && weight!=-1)":             "team=edge",
		`!(where("@.spec.none") || !(team=core))`: "team=core",
	} {
		q, err := query.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		plan, err := querier.Explain(q, query.Options{})
		if err != nil || plan.Scan || len(plan.Start) == 0 {
			t.Errorf("Explain(%s) = %v, %v; want a start with an index", text, plan, err)
			continue
		}
		if _, err := querier.Keys(t.Context(), q, query.Options{}); err != nil {
			t.Errorf("Keys of %s: %v", text, err)
		}
		if !strings.Contains(plan.String(), "start  "+start) {
			t.Errorf("plan of %s starts with %v, want %s", text, plan.Start, start)
		}
	}
}

// TestEmptyListsParseBack verifies that the text of a query with an empty list of values parses to the same
// query.
func TestEmptyListsParseBack(t *testing.T) {
	querier := newCacheQuerier(t, testObjects()...)
	for _, q := range []query.Query{query.Namespace(), query.In("team"), query.Not(query.Namespace())} {
		again, err := query.Parse(q.String())
		if err != nil || again.String() != q.String() {
			t.Errorf("Parse(%s) = %v, %v; want the same query", q, again, err)
			continue
		}
		want, err := querier.Count(t.Context(), q, query.Options{AllowScan: true})
		got, againErr := querier.Count(t.Context(), again, query.Options{AllowScan: true})
		if got != want || err != nil || againErr != nil {
			t.Errorf("Count of the parsed %s = %d, %v; want %d (%v)", q, got, againErr, want, err)
		}
	}
}

// TestNotesOnUnequal verifies that the plan explains that != of an index and of a condition treat missing
// values differently.
func TestNotesOnUnequal(t *testing.T) {
	querier := newCacheQuerier(t, testObjects()...)
	for text, want := range map[string]string{
		"class!=gold": "note   !(class=gold) also holds for objects without a value in class; add && class to leave them out\n",
		`weight>1 && where("@.spec.class != 'gold'")`: `note   where("@.spec.class != 'gold'"): != does not hold for objects without the value; write !(... == ...) to include them` + "\n",
		"class=gold":     "",
		"!(class!=gold)": "",
	} {
		q, err := query.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		plan, err := querier.Explain(q, query.Options{})
		if err != nil || !strings.Contains(plan.String(), want) ||
			strings.Contains(plan.String(), "note ") != (want != "") {
			t.Errorf("Explain(%s): %v, want the note %q in\n%s", text, err, want, plan)
		}
	}
}
