package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const passed = `{"Action":"run","Package":"example.com/a","Test":"TestOne"}
{"Action":"pass","Package":"example.com/a","Test":"TestOne","Elapsed":1}
{"Action":"run","Package":"example.com/a","Test":"TestTwo"}
{"Action":"output","Package":"example.com/a","Test":"TestTwo","Output":"    two_test.go:7: needs wings, which this server lacks\n"}
{"Action":"skip","Package":"example.com/a","Test":"TestTwo","Elapsed":0}
{"Action":"pass","Package":"example.com/a","Elapsed":2}
`

func TestSummarize(t *testing.T) {
	document := filepath.Join(t.TempDir(), "document.md")
	read := func() string {
		t.Helper()
		text, err := os.ReadFile(document)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if err := os.WriteFile(document, []byte("# Title\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	want := `# Title

### Server 1

<!-- begin Server 1 -->
Tests: 1 passed, 1 skipped, in 1 packages.

Skipped 1 test of ` + "`a`" + `: needs wings.
<!-- end Server 1 -->
`
	for range 2 { // the second run replaces the section of the first
		if err := summarize("Server 1", document, strings.NewReader(passed), io.Discard); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, read()); diff != "" {
			t.Errorf("document (-want +got):\n%s", diff)
		}
	}
	for name, in := range map[string]string{
		"a failure": `{"Action":"run","Package":"a","Test":"TestOne"}` + "\n" +
			`{"Action":"fail","Package":"a","Test":"TestOne"}`,
		"a failed package": passed + `{"Action":"fail","Package":"b"}`,
		"no tests":         "",
		"not an event":     "go: no such file",
	} {
		if err := summarize("Server 1", document, strings.NewReader(in+"\n"), io.Discard); err == nil {
			t.Errorf("%s: want an error", name)
		}
		if diff := cmp.Diff(want, read()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
