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
	specialTexts := []string{"a", "a/b", `a\b`, `a\`, "/", "", "(", ")", "a b", `"`, "'", "~x", "now", "*",
		"é",
		"\x00", "a,b", "x/"}
	var objects []*unstructured.Unstructured
	for i, class := range specialTexts {
		objects = append(objects, newWidget("a/b"+string(rune('a'+i)), class, int64(i), class))
	}
	querier := newCacheQuerier(t, objects...)
	random := rand.New(rand.NewPCG(5, 6))
	pick := func() string { return specialTexts[random.IntN(len(specialTexts))] }
	kinds := []func(string, ...string) query.Query{query.Eq, query.Less, query.AtMost, query.Greater,
		query.AtLeast, query.Prefix}
	for range 3000 {
		index := []string{"ordered", "place", "class", "host", "team"}[random.IntN(5)]
		parts := []string{pick(), pick()}[:random.IntN(3)]
		q := kinds[random.IntN(len(kinds))](index, parts...)
		parsed, err := query.Parse(q.String())
		if err != nil || parsed.String() != q.String() {
			t.Fatalf("Parse(%q) of the parts %q = %v, %v; want the same query", q, parts, parsed, err)
		}
		want, wantErr := querier.Keys(t.Context(), q, query.Options{})
		got, err := querier.Keys(t.Context(), parsed, query.Options{})
		if wantErr == nil && (err != nil || !slices.Equal(want, got)) {
			t.Errorf("Keys of the parsed %s, with parts %q, = %v, %v; want %v", q, parts, got, err, want)
		}
	}
}

// TestNilQueries verifies that queries made of nil fail without panic.
func TestNilQueries(t *testing.T) {
	querier := newCacheQuerier(t, testObjects()...)
	for _, q := range []query.Query{
		nil, query.Selector(nil), query.And(nil), query.Not(nil), query.Or(query.Exists("team"),
			nil), query.Not(query.And(query.Selector(nil))),
	} {
		if q != nil {
			if text := q.String(); text == "" {
				t.Errorf("String of %#v is empty", q)
			} else if _, err := query.Parse(text); err == nil {
				t.Errorf("Parse(%s) returned no error", text)
			}
		}
		if _, err := querier.Query(t.Context(), q, query.Options{AllowScan: true}); err == nil {
			t.Errorf("Query of %v returned no error", q)
		}
		if _, err := query.NewMatcher(q); err == nil {
			t.Errorf("NewMatcher of %v returned no error", q)
		}
	}
	if keys, err := querier.Keys(t.Context(), query.Selector(labels.Everything()),
		query.Options{AllowScan: true}); err != nil || len(keys) != 4 {
		t.Errorf("Keys of the selector of everything = %v, %v; want 4", keys, err)
	}
}

// TestForeignSyntaxIsRejected verifies that text of other languages is an error instead of another query.
func TestForeignSyntaxIsRejected(t *testing.T) {
	for _, text := range []string{"a=1 and b=2", "(a=1 OR b=2)", "a and b", "a not in (x, y)", "a notin (x)",
		"not a=1", "NOT (a=1)", "not(a=1)", "name=prod*", "name=*", "name=a*b", "name like 'x y'", "name is null",
		"a<>b", "a!~b", "a===b", "a~b", "a$=b", "a*=b", "a between 1 and 2", "a=1 && b exists",
		"a=1 && !(b=2 or c=3)", "where(.spec.a) and a=1"} {
		_, err := query.Parse(text)
		if err == nil {
			t.Errorf("Parse(%s) returned no error", text)
			continue
		}
		checkPosition(t, err)
	}
	// these are valid names of indexes
	for _, text := range []string{"and=1", "or", "not", "not in (a, b)", "!not", "not=1 && and", "like^=x"} {
		if _, err := query.Parse(text); err != nil {
			t.Errorf("Parse(%s): %v", text, err)
		}
	}
}

// TestContinueTokensOfOtherQueries verifies that continue tokens are rejected by other queries.
func TestContinueTokensOfOtherQueries(t *testing.T) {
	querier := newCacheQuerier(t, testObjects()...)
	first := query.Or(query.Prefix("place", "a/b"), query.Exists("weight"))
	for _, other := range []query.Query{
		query.Or(query.Prefix("place", "a", "b"), query.Exists("weight")),
		query.Or(query.Prefix("place", `a\/b`), query.Exists("weight")),
	} {
		r, err := querier.Query(t.Context(), first, query.Options{Limit: 1})
		if err != nil || r.Continue == "" {
			t.Fatalf("Query = %v, %v; want a continue token", r, err)
		}
		if _, err := querier.Query(t.Context(), other,
			query.Options{Limit: 1, Continue: r.Continue}); !errors.Is(err, query.ErrContinue) {
			t.Errorf("Query of %s with a token of %s: got the error %v, want ErrContinue", other, first, err)
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
		t.Errorf("Query with a token of another invalid UTF-8 operand: got the error %v, want ErrContinue",
			err)
	}
}
