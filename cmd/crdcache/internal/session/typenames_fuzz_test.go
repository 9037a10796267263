package session

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// FuzzSplitTypes checks that each accepted type occurs in the arguments once and is accepted again, and that
// errors quote the argument.
func FuzzSplitTypes(f *testing.F) {
	for _, seed := range [][2]string{
		{"certs", "cert,issuers"}, {"*.cert-manager.io", "*"}, {"certificates.v1.cert-manager.io",
			"Certificate"}, {",", ""}, {"a,,b", "a"},
		{"gizmos/a", "x"}, {"a.b..c", ".a"}, {"*.*", "a.*"}, {"a b", "\x00"}, {"pods.",
			"é"}, {"a/b/c,", "%s"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, first, second string) {
		types, err := SplitTypes([]string{first, second})
		if err != nil {
			if !errors.As(err, new(*UsageError)) || types != nil || !strings.Contains(err.Error(), `"`) {
				t.Errorf("SplitTypes(%q, %q) = %q, %v; want only a usage error with the name", first, second,
					types, err)
			}
			return
		}
		written := append(strings.Split(first, ","), strings.Split(second, ",")...)
		for i, name := range types {
			if !slices.Contains(written, name) || slices.Index(types, name) != i ||
				strings.ContainsAny(name, ",/") {
				t.Errorf("SplitTypes(%q, %q) = %q, want no %q", first, second, types, name)
			}
		}
		again, err := SplitTypes([]string{strings.Join(types, ",")})
		if diff := cmp.Diff(types, again); err != nil || diff != "" {
			t.Errorf("SplitTypes of the joined result of %q, %q: %v (-first +second):\n%s", first, second,
				err, diff)
		}
	})
}
