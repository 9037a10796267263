package indexers_test

import (
	"strings"
	"testing"

	"github.com/crdcache/crdcache/indexers"
)

// TestHostileFiles verifies that hostile files are rejected with short messages.
func TestHostileFiles(t *testing.T) {
	bomb := "a0: &a0 [x,x,x,x,x,x,x,x,x]\n"
	for i := range byte(20) {
		last, next := string('a'+i), string('b'+i)
		bomb += next + "0: &" + next + "0 [" + strings.TrimSuffix(strings.Repeat("*"+last+"0,", 9),
			",") + "]\n"
	}
	config := strings.Replace(configWith("  - name: w\n    match: {group: e, kind: W}\n    indexes: "),
		"NAME", "n", 1)
	for reason, text := range map[string]string{
		"an alias bomb":         config + "*a0\n" + bomb,
		"nested lists":          config + strings.Repeat("[", 200000) + strings.Repeat("]", 200000),
		"nested maps":           config + strings.Repeat("{a: ", 9000) + "x" + strings.Repeat("}", 9000),
		"nested blocks":         strings.Repeat("- ", 9000) + "x",
		"an open list of lists": config + strings.Repeat("[", 9000),
		"one line with an error": config + "[" + strings.Repeat("{name: a, path: .a},", 20000) +
			"{name: a, path: [}]",
		"many lines, and an open quote": config + "\n" + strings.Repeat("    - {name: a, path: .a}\n",
			20000) +
			"    - {name: 'a",
		"only tabs":        strings.Repeat("\t", 1<<20),
		"only line breaks": strings.Repeat("\n", 1<<20) + "\t",
		"only zeros":       strings.Repeat("\x00", 1<<20),
	} {
		s := indexers.Source{Name: "f.yaml", Data: []byte(text)}
		c, err := indexers.Parse(s)
		if err == nil || c != nil {
			t.Errorf("Parse of %s = %v, %v; want only an error", reason, c, err)
			continue
		}
		if size := len(err.Error()); size > 10000 && reason != "one line with an error" {
			t.Errorf("Parse of %s: the error has %d bytes, want at most 10000", reason, size)
		}
	}
}
