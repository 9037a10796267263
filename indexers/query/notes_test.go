package query_test

import (
	"strings"
	"testing"

	"github.com/crdcache/crdcache/indexers/query"
)

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
