package query_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/query"
	"github.com/crdcache/crdcache/indexers/references"
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
		query.AtLeast, query.Prefix, query.In}
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
	noError(t, err)
	if _, err := querier.Query(t.Context(), query.Not(query.Eq("team", "\xff")),
		query.Options{Limit: 1, AllowScan: true, Continue: r.Continue}); !errors.Is(err, query.ErrContinue) {
		t.Errorf("Query with a token of another invalid UTF-8 operand: got the error %v, want ErrContinue",
			err)
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
		noError(t, err)
		plan, err := querier.Explain(q, query.Options{})
		if err != nil || !strings.Contains(plan.String(), want) ||
			strings.Contains(plan.String(), "note ") != (want != "") {
			t.Errorf("Explain(%s): %v, want the note %q in\n%s", text, err, want, plan)
		}
	}
}

func TestParse(t *testing.T) {
	for text, want := range map[string]query.Query{
		"a=b":                          query.Eq("a", "b"),
		"one/a=b":                      query.Eq("one/a", "b"),
		" a == b ":                     query.Eq("a", "b"),
		"a!=b":                         query.Not(query.Eq("a", "b")),
		"a<1":                          query.Less("a", "1"),
		"a<=1":                         query.AtMost("a", "1"),
		"a>-1.5":                       query.Greater("a", "-1.5"),
		"a >= 2026-01-01T00:00:00Z":    query.AtLeast("a", "2026-01-01T00:00:00Z"),
		"a^=www.":                      query.Prefix("a", "www."),
		"a in (x, 'y z', \"\\u00e9\")": query.In("a", "x", "y z", "é"),
		"a in [1, \"\")":               query.Range("a", "1", ""),
		"a":                            query.Exists("a"),
		"!a":                           query.Missing("a"),
		"!!a":                          query.Not(query.Not(query.Exists("a"))),
		"in in (in)":                   query.In("in", "in"),
		"index":                        query.Exists("index"),
		"*":                            query.All(),
		"!*":                           query.Or(),
		"a=1 && b=2 || c=3":            query.Or(query.And(query.Eq("a", "1"), query.Eq("b", "2")), query.Eq("c", "3")),
		"a=1, b=2":                     query.And(query.Eq("a", "1"), query.Eq("b", "2")),
		"a=1 && (b=2 || c=3)": query.And(query.Eq("a", "1"),
			query.Or(query.Eq("b", "2"), query.Eq("c", "3"))),
		"!(a=1 || b)":           query.Not(query.Or(query.Eq("a", "1"), query.Exists("b"))),
		"a=prod/ca":             query.Eq("a", "prod", "ca"),
		`a=x\/y/z`:              query.Eq("a", "x/y", "z"),
		`label("app=web")`:      query.Label("app=web"),
		`where('@.spec.x > 2')`: query.Where("@.spec.x > 2"),
		"where(.spec.paused)":   query.Where(".spec.paused"),
		"label=x":               query.Eq("label", "x"),
		"namespace in (a, b)":   query.Namespace("a", "b"),
		"a contains 'b c'":      query.Contains("a", "b c"),
		`a =~ "^b.*$"`:          query.Matches("a", "^b.*$"),
		"a=~b":                  query.Matches("a", "b"),
		"a='~b'":                query.Eq("a", "~b"),
		"a in 10.0.0.0/8":       query.Within("a", "10.0.0.0/8"),
		"a in 2001:db8::/32":    query.Within("a", "2001:db8::/32"),
		"a<now-14d":             query.Less("a", "now-14d"),
		"dangling()":            query.Dangling(""),
		"!dangling(issuer)":     query.Not(query.Dangling("issuer")),
		"refersTo(Issuer.example.com, 'prod/ca')": query.RefersTo(references.Object{Group: "example.com",
			Kind: "Issuer", Namespace: "prod", Name: "ca", UID: "u"}, ""),
		"referredBy(secrets, prod/ca, owners)": query.ReferredBy(references.Object{Resource: "secrets",
			Namespace: "prod", Name: "ca"}, "owners"),
	} {
		got, err := query.Parse(text)
		if err != nil || got.String() != want.String() {
			t.Errorf("Parse(%s) = %v, %v; want %v", text, got, err, want)
		}
	}
}

func TestParseErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                        "query:1: the query ends too early; expected the name of an index",
		"a=":                      "query:3: the query ends too early; expected a value",
		"a = b c":                 `query:7: 'c' is not allowed here; expected &&, || or the end`,
		"a=&b":                    `query:3: '&' is not allowed here; expected a value`,
		"ä=1":                     `query:1: 'ä' is not allowed here; expected the name of an index`,
		"a=ä &&":                  "query:7: the query ends too early",
		"(a=1":                    `query:1: "(" is never closed`,
		"a=1)":                    `query:4: ')' is not allowed here`,
		"a in x":                  `query:6: 'x' is not allowed here; expected "("`,
		"a in (x":                 `query:8: the query ends too early; expected "," or ")"`,
		"a in (x, )":              "query:10: ')' is not allowed here; expected a value",
		"a in [99, 99.9]":         `query:15: ']' is not allowed here; a range is written a in [99, 99.9), without its end; a list is written a in (99, 99.9)`,
		"a in [1, 2, 3]":          `query:14: ']' is not allowed here; a list is written in (a, b), and a range in [a, b)`,
		"a in (1, 2]":             `query:11: ']' is not allowed here; a list is written in (a, b), and a range in [a, b)`,
		"a in [1)":                "query:6: a range has two bounds",
		`a="x`:                    "query:3: the quote is never closed",
		`a="\x"`:                  "query:3: this is not a valid JSON string",
		"a='x":                    "query:3: the quote is never closed",
		"lable(a)":                "query:1: there is no function lable; there are label, where, cel, dangling, refersTo and referredBy",
		"dangling(a, b)":          "query:1: dangling takes the name of one reference",
		"dangling(a":              `query:11: the query ends too early; expected "," or ")"`,
		"refersTo(Issuer)":        "query:1: refersTo takes a type, an object",
		"a in 10.0.0.0/33":        `query:6: '1' is not allowed here; expected "("`,
		"a!~b":                    `query:2: '!' is not allowed here; expected &&, || or the end`,
		`where("@.a =")`:          `query:12: E104: "=" is not a comparison`,
		`a && where(  '@.a = 1')`: `query:19: E104: "=" is not a comparison`,
		`where("@[\"\u00e9\ud83d\ude00\ud800\"] = 1")`: `query:40: E104`,
		`where(@.a > 1)`:               `query:11: '>' is not allowed here; expected ")"; put quotes`,
		"a=\xff":                       "query:1: the query is not UTF-8",
		strings.Repeat("(", 100):       "query:66: the query is nested too deeply",
		strings.Repeat("!", 100) + "a": "query:66: the query is nested too deeply",
		strings.Repeat("a", 20000):     "query:1: the query is longer than",
	} {
		_, err := query.Parse(text)
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("Parse(%q): got the error %v, want %s", text, err, want)
		}
		checkPosition(t, err)
	}
	_, err := query.Parse("team=ä && host~x")
	var e *query.Error
	if !errors.As(err, &e) || e.Caret() != "team=ä && host~x\n              ^" {
		t.Errorf("Parse: got the error %v, want a caret below ~", err)
	}
}

// checkPosition verifies that an error is an *Error whose position is in its text.
func checkPosition(t *testing.T, err error) {
	t.Helper()
	var e *query.Error
	if !errors.As(err, &e) {
		t.Errorf("got an error %T, want an *Error", err)
		return
	}
	if e.Offset < 0 || e.Offset+e.Length > len(e.Text) || !strings.Contains(e.Caret(), "^") ||
		!utf8.ValidString(e.Error()) {
		t.Errorf("the position of the error %+v is outside of its text", e)
	}
}

// FuzzParse checks that no text panics, that error positions are inside the text, and that a query's text
// parses to the same query.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"a=1 && !(b in (x, 'y') || c>=2), label('x=y')", `a="\u0000" || where(".a[?(@.b==1)]")`,
		"!*", "a in [1, 2)",
		`a=~"^b|c$" && d contains "e f"`,
		"a in 10.0.0.0/8 || !dangling(b) && refersTo(Kind.example.com, a/b)", "a<now+1h", "a=(b, 'c/d')",
		`a\=b`, "a^=x/\\/", "((((a))))", "a!=b", "é", "a=é\u2028",
	} {
		f.Add(text)
	}
	querier := newCacheQuerier(f)
	f.Fuzz(func(t *testing.T, text string) {
		q, err := query.Parse(text)
		if err != nil {
			checkPosition(t, err)
			return
		}
		again, err := query.Parse(q.String())
		if err != nil || again.String() != q.String() {
			t.Errorf("Parse(%q) = %q, but Parse of this text = %v, %v", text, q, again, err)
		}
		_, err = querier.Query(t.Context(), q, query.Options{AllowScan: true})
		if err != nil {
			checkPosition(t, err)
		}
	})
}

func TestUnknownIndexError(t *testing.T) {
	for want, known := range map[string][]string{
		`there is no index "x", nor any other`:        nil,
		`there is no index "x"; the only one is a`:    {"a"},
		`there is no index "x"; there are a, b, name`: {"a", "b", "name"},
	} {
		if got := (&query.UnknownIndexError{Name: "x", Known: known}).Error(); got != want {
			t.Errorf("Error() = %s, want %s", got, want)
		}
	}
}

// TestTextQueryErrorPositions verifies that errors about values point to the position of the value.
func TestTextQueryErrorPositions(t *testing.T) {
	querier := newCacheQuerier(t)
	for text, want := range map[string]string{
		"team=x && wieght>1":      "query:11: there is no index \"wieght\"; there are address, addresses, class, condition",
		"team=x && weight>heavy":  `query:11: index "weight": "heavy" is not of type Int; write it like 42`,
		"team>x":                  `query:1: index "team" is not sorted, which a comparison needs`,
		"team^=x":                 `query:1: index "team" is not sorted, which a prefix needs`,
		"size in [1, 2)":          `query:1: index "size" is not sorted, which a range needs`,
		"place=a":                 `query:1: index "place": the number of parts is 1, want 2 (namespace, class); place^=a finds all with these first parts`,
		"place!=a":                `query:1: index "place": the number of parts is 1, want 2 (namespace, class); place^=a finds`,
		"place in (a/b, 'c d')":   `query:1: index "place": the number of parts is 1, want 2 (namespace, class); place^="c d" finds`,
		"weight^=1":               `query:1: index "weight": a value of type Int has no prefixes`,
		"condition=Ready/True/No": `query:1: index "condition": the number of parts is 3, want 2 (type, status)`,
		"expiry<tomorrow":         `query:1: index "expiry": "tomorrow" is not of type Time; write it like 2026-01-31T00:00:00Z, or relative to now as now-14d or now+1h30m`,
		"expiry<now-x":            `query:1: index "expiry": "now-x" is not of type Time`,
		"weight contains 1":       `query:1: index "weight": a value of type Int cannot be searched as text`,
		"host =~ '('":             "query:1: this is not a regular expression: ",
		"team in 10.0.0.0/8":      `query:1: index "team": it has no addresses; declare type: IP or CIDR`,
		"dangling()":              "query:1: the querier has no references",
	} {
		q, err := query.Parse(text)
		if err != nil {
			t.Fatalf("Parse(%s): %v", text, err)
		}
		_, err = querier.Query(t.Context(), q, query.Options{})
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("Query of %s: got the error %v, want %s", text, err, want)
		}
		checkPosition(t, err)
	}
	_, err := querier.ByIndex("weight", "heavy")
	var operand *indexers.OperandError
	var syntax *query.Error
	if !errors.As(err, &operand) || operand.Part != 0 || errors.As(err, &syntax) {
		t.Errorf("ByIndex with an invalid value: got the error %v, want an OperandError of part 0 without a position",
			err)
	}
}
