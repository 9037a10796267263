package query_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/crdcache/crdcache/indexers/query"
)

// TestTextRoundTrip verifies that the text of a query parses to the same query for any values.
func TestTextRoundTrip(t *testing.T) {
	odd := []string{"a", "a/b", `a\b`, `a\`, "/", "", "(", ")", "a b", `"`, "'", "~x", "now", "*", "é",
		"\x00", "a,b", "x/"}
	var objects []*unstructured.Unstructured
	for i, class := range odd {
		objects = append(objects, simple("a/b"+string(rune('a'+i)), class, int64(i), class))
	}
	querier := newCacheQuerier(t, objects...)
	random := rand.New(rand.NewPCG(5, 6))
	pick := func() string { return odd[random.IntN(len(odd))] }
	kinds := []func(string, ...string) query.Query{query.Eq, query.Less, query.AtMost, query.Greater,
		query.AtLeast, query.Prefix}
	for range 3000 {
		index := []string{"ordered", "place", "class", "host", "team"}[random.IntN(5)]
		parts := []string{pick(), pick()}[:random.IntN(3)]
		q := kinds[random.IntN(len(kinds))](index, parts...)
		parsed, err := query.Parse(q.String())
		if err != nil || parsed.String() != q.String() {
			t.Fatalf("%q of %q: %v, %v", q, parts, parsed, err)
		}
		want, wantErr := querier.Keys(t.Context(), q, query.Options{})
		got, err := querier.Keys(t.Context(), parsed, query.Options{})
		if wantErr == nil && (err != nil || !slices.Equal(want, got)) {
			t.Errorf("%s of %q: %v, and parsed %v, %v", q, parts, want, got, err)
		}
	}
}

// TestContinueTokensOfOtherQueries verifies that continue tokens are rejected by other queries.
func TestContinueTokensOfOtherQueries(t *testing.T) {
	querier := newCacheQuerier(t, someObjects()...)
	first := query.Or(query.Prefix("place", "a/b"), query.Exists("weight"))
	for _, other := range []query.Query{
		query.Or(query.Prefix("place", "a", "b"), query.Exists("weight")),
		query.Or(query.Prefix("place", `a\/b`), query.Exists("weight")),
	} {
		r, err := querier.Query(t.Context(), first, query.Options{Limit: 1})
		if err != nil || r.Continue == "" {
			t.Fatal(r, err)
		}
		if _, err := querier.Query(t.Context(), other,
			query.Options{Limit: 1, Continue: r.Continue}); !errors.Is(err, query.ErrContinue) {
			t.Errorf("%s accepts a token of %s: %v", other, first, err)
		}
	}
	// Operands that are not valid UTF-8 differ, too.
	r, err := querier.Query(t.Context(), query.Not(query.Eq("team", "\xfe")),
		query.Options{Limit: 1, AllowScan: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := querier.Query(t.Context(), query.Not(query.Eq("team", "\xff")),
		query.Options{Limit: 1, AllowScan: true, Continue: r.Continue}); !errors.Is(err, query.ErrContinue) {
		t.Error("two operands are taken for one:", err)
	}
}

// TestNilQueries verifies that queries made of nil fail without panic.
func TestNilQueries(t *testing.T) {
	querier := newCacheQuerier(t, someObjects()...)
	for _, q := range []query.Query{
		nil, query.Selector(nil), query.And(nil), query.Not(nil), query.Or(query.Exists("team"),
			nil), query.Not(query.And(query.Selector(nil))),
	} {
		if q != nil {
			if text := q.String(); text == "" {
				t.Errorf("%#v has no text", q)
			} else if _, err := query.Parse(text); err == nil {
				t.Errorf("%s is a query", text)
			}
		}
		if _, err := querier.Query(t.Context(), q, query.Options{AllowScan: true}); err == nil {
			t.Errorf("%v is answered", q)
		}
		if _, err := query.NewMatcher(q); err == nil {
			t.Errorf("%v is matched", q)
		}
	}
	if keys, err := querier.Keys(t.Context(), query.Selector(labels.Everything()),
		query.Options{AllowScan: true}); err != nil || len(keys) != 4 {
		t.Errorf("got %v, %v", keys, err)
	}
}

// TestForeignSyntaxErrors verifies that words and patterns of other languages are rejected with a remedy.
func TestForeignSyntaxErrors(t *testing.T) {
	for text, want := range map[string]string{
		"a=1 and b=2":            `query:5: "and" is not allowed here; write &&`,
		"(a=1 OR b=2)":           `query:6: "OR" is not allowed here; write ||`,
		"a and b":                `query:3: "and" is not allowed here; write &&`,
		"a not in (x, y)":        `query:3: "not in" is not allowed here; a negation is written !(a in (x)), or a!=x`,
		"a notin (x)":            `query:3: "notin" is not allowed here; a negation is written !(a in (x)), or a!=x`,
		"not a=1":                `query:1: "not" is not allowed here; a negation is written !team, team!=edge or !(team=edge && tier=web)`,
		"NOT (a=1)":              `query:1: "NOT" is not allowed here; a negation`,
		"name=prod*":             `query:10: "*" is not a wildcard; a prefix is written name^=prod`,
		"name=*":                 `query:6: "*" is not a wildcard; name alone means that there is a value`,
		"name=a*b":               `query:7: "*" is not a wildcard; a substring is written name contains a, and a regular expression name=~"^a"`,
		"name like 'x y'":        `query:6: "like" is not allowed here; a prefix is written name^="x y"`,
		"name is null":           `query:6: "is" is not allowed here; a value is written name=null; name alone means that there is one, and !name that there is none`,
		"a<>b":                   `query:2: "<>" is not allowed here; inequality is written a!=x`,
		"a between 1 and 2":      `query:3: "between" is not allowed here; a range is written a in [1, 10), without its end`,
		"a=1 && b exists":        `query:10: "exists" is not allowed here; b alone`,
		"a=1 && !(b=2 or c=3)":   `query:14: "or" is not allowed here; write ||`,
		"where(.spec.a) and a=1": `query:16: "and" is not allowed here; write &&`,
	} {
		_, err := query.Parse(text)
		if err == nil || !hasPrefix(err, want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
			continue
		}
		checkPosition(t, err)
	}
	// these are valid names of indexes
	for _, text := range []string{"and=1", "or", "not", "not in (a, b)", "!not", "not=1 && and", "like^=x"} {
		if _, err := query.Parse(text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}
