package indexers_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crdcache/crdcache/indexers"
)

func TestDiagnosticText(t *testing.T) {
	long := strings.Repeat("0123456789", 100)
	for _, test := range []struct {
		reason, source, text string
		column, length       int
	}{
		{"a short line", "name: a", "  name: a\n        ^", 7, 1},
		{"several characters", "größe: äö", "  größe: äö\n         ^~", 8, 2},
		{"more than the line has", "name: a", "  name: a\n        ^", 7, 9},
		{"after the end", "name:", "  name:\n       ^", 6, 1},
		{"tabs do not move the caret", "\ta:\tb", "   a: b\n      ^", 5, 1},
		{"control characters are replaced", "a\x1b[31m\u202eb", "  a\ufffd[31m\ufffdb\n         ^", 8, 1},
		{"the beginning of a long line", long, "  " + long[:158] + "…\n  ^~~", 1, 3},
		{"the middle of a long line", long, "  …" + long[440:598] + "…\n   " + strings.Repeat(" ", 60) + "^",
			501, 1},
		{"the end of a long line", long, "  …" + long[842:] + "\n   " + strings.Repeat(" ", 157) + "^",
			1000, 1},
		{"a range longer than the excerpt", long, "  …" + long[440:598] + "…\n   " + strings.Repeat(" ",
			60) + "^" + strings.Repeat("~", 97), 501, 400},
	} {
		d := indexers.Diagnostic{File: "f", Line: 1, Column: test.column, Length: test.length, Code: "E000",
			Message: "m", Source: test.source}
		if diff := cmp.Diff(d.String()+"\n"+test.text, d.Text()); diff != "" {
			t.Errorf("%s: Text (-want +got):\n%s", test.reason, diff)
		}
	}
}

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

func TestByteOrderMarksAreNotText(t *testing.T) {
	one := strings.Replace(configWith("  - name: w\n    match: {group: e, kind: W}\n    indexes: [{name: a, path: .a}]\n"), "NAME", "n", 1)
	two := strings.NewReplacer("name: n", "name: m", "name: w", "name: v").Replace(one)
	for _, between := range []string{"---\n\ufeff", "\ufeff---\n"} {
		c, err := indexers.Parse(indexers.Source{Name: "f.yaml",
			Data: []byte("\ufeff" + one + between + two)})
		if err != nil || len(c.Resources) != 2 {
			t.Errorf("Parse of two documents with %q between them = %v, %v; want 2 resources", between, c,
				err)
		}
	}
}
