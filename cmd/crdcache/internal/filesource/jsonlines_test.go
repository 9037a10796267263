package filesource

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/crdcache/crdcache/internal/manifest"
)

// TestJSONLines verifies that many lines need little memory, and that a problem has its line number.
func TestJSONLines(t *testing.T) {
	const count = 20_000
	var text strings.Builder
	for i := range count {
		fmt.Fprintf(
			&text, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c%d","namespace":"web"}}`+
				"\n", i)
		if i == count/2 {
			text.WriteString("---\n") // a YAML separator is allowed anywhere
		}
	}
	text.WriteString(`{"apiVersion":"v1","kind":1,"metadata":{"name":"bad"}}` + "\n")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	source, err := Open(t.Context(), Options{Paths: []string{manifest.Stdin},
		In: strings.NewReader(text.String())})
	must(t, err)
	runtime.ReadMemStats(&after)
	problems := source.Problems()
	if len(problems) != 1 || problems[0].Line != count+2 || problems[0].Document != count+1 {
		t.Errorf("problems are %v, want one in line %d", problems, count+2)
	}
	// A separate buffer for each line would need 64 KiB.
	if each := (after.TotalAlloc - before.TotalAlloc) / count; each > 32<<10 {
		t.Errorf("%d bytes were allocated for each object, want at most 32 KiB", each)
	}
}
