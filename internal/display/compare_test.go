package display

import "testing"

// FuzzGaps checks that the rest outside the gaps is equal in both lists.
func FuzzGaps(f *testing.F) {
	f.Add("abcabba", "cbabac")
	f.Add("", "x")
	f.Fuzz(func(t *testing.T, a, b string) {
		if len(a)*len(b) > 1<<12 {
			return
		}
		before, after := []byte(a), []byte(b)
		i, j := 0, 0
		var rebuilt []byte
		for _, g := range append(Gaps(before, after), Gap{len(a), len(a), len(b), len(b)}) {
			if string(before[i:g.Before]) != string(after[j:g.After]) || g.Before > g.BeforeEnd ||
				g.After > g.AfterEnd {
				t.Fatalf("%q and %q differ outside of the gaps", a, b)
			}
			rebuilt = append(append(rebuilt, before[i:g.Before]...), after[g.After:g.AfterEnd]...)
			i, j = g.BeforeEnd, g.AfterEnd
		}
		if string(rebuilt) != b {
			t.Errorf("%q with the gaps filled is %q, want %q", a, rebuilt, b)
		}
	})
}
