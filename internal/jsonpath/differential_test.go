package jsonpath_test

import (
	"strings"
	"testing"

	"github.com/crdcache/crdcache/internal/jsonpath"
)

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
func TestAgainstKubectl(t *testing.T) {
	const runs = 3000
	compared := 0
	for seed := range uint64(runs) {
		if compareWithKubectl(t, seed) {
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

func FuzzAgainstKubectl(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) { compareWithKubectl(t, seed) })
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
func TestEvaluatorsAgree(t *testing.T) {
	const runs = 3000
	found := 0
	for seed := range uint64(runs) {
		if evaluatorsAgree(t, seed) {
			found++
		}
		if t.Failed() {
			t.FailNow()
		}
	}
	t.Logf("%d of %d had results", found, runs)
	if found < runs/8 {
		t.Errorf("%d of %d runs had results, want at least %d", found, runs, runs/8)
	}
}

func FuzzEvaluatorsAgree(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) { evaluatorsAgree(t, seed) })
}
