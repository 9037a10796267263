package jsonpath_test

import (
	"sync"
	"testing"

	"github.com/crdcache/crdcache/internal/jsonpath"
)

// TestConcurrentUse verifies that concurrent use on shared objects gives the same results as a single
// goroutine.
func TestConcurrentUse(t *testing.T) {
	obj, doc := decoded(t, certificate), []byte(certificate)
	var paths []*jsonpath.Path
	var exprs []jsonpath.Expr
	for _, e := range append([]string{"..name", "$.metadata.*", ".spec.dnsNames[::-1]",
		".status.conditions[?(@.reason)]['type','status']"}, eightPaths...) {
		p := jsonpath.MustCompile(e)
		paths, exprs = append(paths, p), append(exprs, p)
	}
	filter := jsonpath.MustCompileFilter(`@.status.conditions[?(@..type && @.status=="Nowhere")] || @.kind=="Certificate"`)
	exprs = append(exprs, filter)
	set := jsonpath.NewSet(exprs...)
	want := make([]int, len(exprs))
	for i, p := range paths {
		want[i] = len(p.Append(nil, obj))
	}
	want[len(paths)] = 1

	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() { // ends after its iterations
			for range 50 {
				for i, p := range paths {
					if n := len(p.Append(nil, obj)); n != want[i] {
						t.Errorf("%s has %d results, want %d", p, n, want[i])
					}
				}
				got := make([]int, len(want))
				if err := set.FindJSON(doc, func(i int, v jsonpath.Value) bool {
					got[i]++
					return true
				}); err != nil {
					t.Errorf("FindJSON of the set: %v", err)
				}
				for i := range got {
					if got[i] != want[i] {
						t.Errorf("expression %d of the set has %d results, want %d", i, got[i], want[i])
					}
				}
				if !filter.Match(obj) {
					t.Error("Match() = false, want true")
				}
				_, _, _ = paths[0].String(), paths[0].Warnings(), paths[0].Steps()
			}
		})
	}
	wg.Wait()
}
