package jsonpath_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/crdcache/crdcache/internal/jsonpath"
)

// random generates documents and paths from a few keys.
type random struct {
	*rand.Rand
	// kubectl generates no empty lists, to avoid client-go's quirks.
	kubectl bool
}

func newRandom(seed uint64, kubectl bool) random {
	return random{rand.New(rand.NewPCG(seed, 42)), kubectl}
}

// oneOf returns one of the options.
func (r random) oneOf(options ...string) string { return options[r.IntN(len(options))] }

// key returns a key as a JSON string.
func (r random) key() string {
	if r.kubectl || r.IntN(3) > 0 {
		return r.oneOf(`"a"`, `"b"`, `"c"`, `"k.x"`, `"a"`)
	}
	return r.oneOf(`"a"`, `"b"`, `"c"`, `"k.x"`, `"\u0061"`, `""`, `"é"`, `"e\u0301"`, `"\ud83d\ude00"`,
		"\"\xff\"", `"\ud800"`, `"\ufffd"`, `"\"\\\/"`, `"0"`, `"*"`)
}

func (r random) scalar() string {
	if r.kubectl {
		return r.oneOf(`1`, `2`, `3`, `1.5`, `2.5`, `"x"`, `"y"`, `"long text"`, `true`, `false`, `null`)
	}
	return r.oneOf(`1`, `-0`, `2`, `1.0`, `1.5`, `1e0`, `9007199254740993`, `9223372036854775808`, `-1e-7`,
		`123456789012345678901234567890`,
		`"x"`, `"y"`, `"\u0078"`, "\"\xfe\xff\"", "\"é\"", `"\n\t\"\\\/\b\f\r"`, `"\ud83d\ude00"`,
		`"\udc00x"`, `""`, `true`, `false`, `null`)
}

// document returns a JSON value with blanks, escapes and duplicate keys.
func (r random) document(depth int) string {
	var b strings.Builder
	r.value(&b, depth)
	return b.String()
}

// blank sometimes writes white space.
func (r random) blank(b *strings.Builder) {
	if r.IntN(8) == 0 {
		b.WriteString(r.oneOf(" ", "\n", "\t", "\r\n", "  "))
	}
}

func (r random) value(b *strings.Builder, depth int) {
	r.blank(b)
	defer r.blank(b)
	kind := r.IntN(10)
	if depth <= 0 || kind < 1 {
		b.WriteString(r.scalar())
		return
	}
	n := r.IntN(6)
	if r.kubectl {
		n = max(n, 1)
	}
	open, closing := "{", "}"
	if kind < 5 {
		open, closing = "[", "]"
	}
	b.WriteString(open)
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		if kind >= 5 {
			r.blank(b)
			b.WriteString(r.key())
			r.blank(b)
			b.WriteByte(':')
		}
		r.value(b, depth-1)
	}
	if n == 0 {
		r.blank(b)
	}
	b.WriteString(closing)
}

// name returns a step that selects a member.
func (r random) name() string {
	if r.kubectl || r.IntN(3) > 0 {
		return r.oneOf(".a", ".b", ".c", `.k\.x`, "['a']", "['b']")
	}
	return r.oneOf(".a", ".b", ".c", `.k\.x`, `["k.x"]`, `['a']`, `["\u0061"]`, `[""]`, `.é`, `["e\u0301"]`,
		`.😀`, `["�"]`, `["\"\\\/"]`, `.0`, `.\*`)
}

// path returns a path without the leading $.
func (r random) path(steps int) string {
	return bounded(func() string { return r.anyPath(steps) }, func(text string) error {
		_, err := jsonpath.Compile("$" + text)
		return err
	})
}

// bounded generates expressions until one is within the limits of evaluation work.
func bounded(generate func() string, compile func(string) error) string {
	for {
		expr := generate()
		var e *jsonpath.Error
		if !errors.As(compile(expr), &e) || e.Code != jsonpath.CodeWork {
			return expr
		}
	}
}

func (r random) anyPath(steps int) string {
	var b strings.Builder
	many := false
	for range steps {
		if r.kubectl {
			b.WriteString(r.kubectlStep(&many))
		} else {
			b.WriteString(r.step(steps))
		}
	}
	return b.String()
}

// kubectlStep returns a step that client-go supports. It sets many if the step can select several values, and
// then avoids slices, because client-go stops at the first empty slice.
func (r random) kubectlStep(many *bool) string {
	switch n := r.IntN(16); {
	case n < 6:
		return r.name()
	case n < 8:
		return r.oneOf("[0]", "[1]", "[-1]", "[-2]")
	case n == 8 && !*many:
		*many = true
		return r.oneOf("[0:1]", "[1:]", "[:2]", "[-1:]", "[0:4:2]", "[:-1]")
	case n < 10:
		*many = true
		return "[*]"
	case n == 10:
		*many = true
		return ".*"
	case n == 11:
		*many = true
		return r.oneOf("..a", "..b", `..k\.x`)
	case n == 12:
		*many = true
		return r.oneOf("['a','b']", "[0,1]", "['c', 'a']")
	case n == 13:
		*many = true
		return "[?(@" + r.oneOf(".a", ".b", ".a.b", `.k\.x`) + ")]"
	default:
		*many = true
		return fmt.Sprintf("[?(@%s%s%s)]", r.oneOf(".a", ".b", ".c.a", "", ".a[0]"),
			r.oneOf("==", "!=", "<", "<=", ">", ">="),
			r.oneOf(`"x"`, `'y'`, "1", "2", "1.5", "true", "@.b"))
	}
}

func (r random) step(depth int) string {
	switch n := r.IntN(16); {
	case n < 6:
		return r.name()
	case n < 8:
		return fmt.Sprintf("[%d]", r.IntN(8)-4)
	case n == 8:
		return "[" + r.slice() + "]"
	case n < 10:
		return "[*]"
	case n == 10:
		return ".*"
	case n == 11:
		return ".." + r.oneOf("a", "*", "[*]", "[0]", "[-1:]", `["k.x"]`, "['b','a']", "["+"?(@.a)]")
	case n == 12:
		return fmt.Sprintf("[%s,%s]", r.selector(depth), r.selector(depth))
	default:
		return "[?(" + r.condition(depth-1) + ")]"
	}
}

func (r random) slice() string {
	bound := func() string {
		if r.IntN(3) == 0 {
			return ""
		}
		return fmt.Sprint(r.IntN(10) - 5)
	}
	s := bound() + ":" + bound()
	if r.IntN(2) == 0 {
		s += ":" + r.oneOf("1", "2", "-1", "-2", "9", "")
	}
	return s
}

func (r random) selector(depth int) string {
	switch r.IntN(6) {
	case 0:
		return "*"
	case 1:
		return r.slice()
	case 2:
		return fmt.Sprint(r.IntN(6) - 3)
	case 3:
		return "?(" + r.condition(depth-1) + ")"
	}
	return r.oneOf(`"a"`, `'b'`, `"k.x"`, `""`)
}

func (r random) condition(depth int) string {
	return bounded(func() string { return r.anyCondition(depth) }, func(text string) error {
		_, err := jsonpath.CompileFilter(text)
		return err
	})
}

func (r random) anyCondition(depth int) string {
	if depth <= 0 {
		return r.oneOf("@", "@.a", "@.b==1", "@==@.a", `@!="x"`)
	}
	singular := func() string {
		s := "@"
		for range r.IntN(3) {
			s += r.oneOf(r.name(), "[0]", "[-1]")
		}
		return s
	}
	literal := func() string {
		return r.oneOf("1", "1.0", "1e0", "-0.0", "9007199254740993", "9223372036854775808.0", "null", "true",
			`"x"`, `'\u0079'`, `"\ud83d\ude00"`, `"�x"`, `""`)
	}
	op := r.oneOf(" == ", "!=", "<", " <= ", ">", ">=")
	switch r.IntN(8) {
	case 0:
		return "(" + r.condition(depth-1) + ") && " + r.condition(depth-1)
	case 1:
		return r.condition(depth-1) + " || " + r.condition(depth-1)
	case 2:
		return "!(" + r.condition(depth-1) + ")"
	case 3:
		return "@" + r.path(depth)
	case 4:
		return singular() + op + singular()
	case 5:
		return literal() + op + singular()
	}
	return singular() + op + literal()
}

// sortResults sorts results, so that lists can be compared regardless of their order.
func sortResults(values []any) {
	text := func(v any) string {
		b, err := json.Marshal(v)
		if err != nil {
			return err.Error()
		}
		return fmt.Sprintf("%T %s", v, b)
	}
	slices.SortFunc(values, func(a, b any) int { return strings.Compare(text(a), text(b)) })
}

// compareWithKubectl compares the results of a random path on a random document with client-go's results. It
// returns false if client-go fails, which TestKubectlQuirks covers, or finds nothing.
func compareWithKubectl(t *testing.T, seed uint64) bool {
	r := newRandom(seed, true)
	path, doc := r.path(1+r.IntN(3)), "{"+`"a":`+r.document(4)+`,"b":`+r.document(3)+"}"
	obj := decoded(t, doc)
	theirs, err := runKubectl("{"+path+"}", obj, true)
	if err != nil {
		return false
	}
	// client-go's .* and .. return the bytes of a string
	withoutBytes := theirs[:0]
	for _, v := range theirs {
		if _, isByte := v.(uint8); !isByte {
			withoutBytes = append(withoutBytes, v)
		}
	}
	ours := evaluate(t, jsonpath.MustCompile(path), []byte(doc))
	if strings.ContainsAny(path, "*,") || strings.Contains(path,
		"..") { // client-go's order is random, or by key
		sortResults(withoutBytes)
		sortResults(ours)
	}
	if diff := difference(withoutBytes, ours); diff != "" {
		t.Errorf("seed %d: %s on %s (-client-go +ours):\n%s", seed, path, doc, diff)
	}
	return len(withoutBytes) > 0
}

// TestAgainstKubectl verifies that random paths have the same results as in client-go.
func TestAgainstKubectl(t *testing.T) { runSeeds(t, compareWithKubectl) }

// runSeeds calls compare with 3000 seeds, until it fails. An eighth of the paths must have results.
func runSeeds(t *testing.T, compare func(t *testing.T, seed uint64) (hasResults bool)) {
	t.Helper()
	const runs = 3000
	compared := 0
	for seed := range uint64(runs) {
		if compare(t, seed) {
			compared++
		}
		if t.Failed() {
			t.FailNow()
		}
	}
	t.Logf("%d of %d had results to compare", compared, runs)
	if compared < runs/8 {
		t.Errorf("%d of %d runs had results to compare, want at least %d", compared, runs, runs/8)
	}
}

// evaluatorsAgree compares the evaluators, on a random path and a random condition, with each other and with
// the canonical form. It returns true if the path has results.
func evaluatorsAgree(t *testing.T, seed uint64) bool {
	r := newRandom(seed, false)
	path, doc := "$"+r.path(1+r.IntN(3)), r.document(4)
	p, err := jsonpath.Compile(path)
	if err != nil {
		t.Fatalf("seed %d: %s: %v", seed, path, err)
	}
	checkRoundTrip(t, p)
	again := evaluate(t, jsonpath.MustCompile(p.String()), []byte(doc))
	got := evaluate(t, p, []byte(doc))
	if diff := difference(got, again); diff != "" {
		t.Errorf("seed %d: %s and its canonical form %s differ on %s:\n%s", seed, path, p, doc, diff)
	}

	condition := r.condition(3)
	filter, err := jsonpath.CompileFilter(condition)
	if err != nil {
		t.Fatalf("seed %d: %s: %v", seed, condition, err)
	}
	matchesAgree(t, filter, []byte(doc))
	return len(got) > 0
}

// TestEvaluatorsAgree verifies that the evaluators of decoded objects and of JSON have the same results.
func TestEvaluatorsAgree(t *testing.T) { runSeeds(t, evaluatorsAgree) }
