package controlplane

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestExcerpt(t *testing.T) {
	var long strings.Builder
	for i := range 100 {
		fmt.Fprintf(&long, "line %d\n", i)
	}
	tests := map[string]struct {
		text   string
		from   int64
		want   []string
		absent []string
	}{
		"short":                      {"a\nb\n", 0, []string{"  a\n  b"}, []string{"…"}},
		"earlier lives are left out": {"old\nnew\n", 4, []string{"  new"}, []string{"old"}},
		"both ends of a long one": {long.String(), 0, []string{"line 0\n", "…", "line 99"},
			[]string{"line 50"}},
		"long lines are cut": {strings.Repeat("x", 5000), 0, []string{"x…"},
			[]string{strings.Repeat("x", excerptWidth+1)}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "log")
			if err := os.WriteFile(path, []byte(test.text), 0o600); err != nil {
				t.Fatal(err)
			}
			got := excerpt(path, test.from)
			for _, want := range test.want {
				if !strings.Contains(got, want) {
					t.Errorf("lacks %q:\n%s", want, got)
				}
			}
			for _, absent := range test.absent {
				if strings.Contains(got, absent) {
					t.Errorf("has %q:\n%s", absent, got)
				}
			}
		})
	}
	if got := excerpt(filepath.Join(t.TempDir(), "missing"), 0); !strings.Contains(got, "no such file") {
		t.Errorf("missing file: %q", got)
	}
}
