package harness

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWriteSection(t *testing.T) {
	path := filepath.Join(t.TempDir(), "document.md")
	for _, c := range []struct{ name, before, section, content, want, wantError string }{
		{name: "a new section", before: "# Title\n", section: "One", content: "new\n",
			want: "# Title\n\n### One\n\n<!-- begin One -->\nnew\n<!-- end One -->\n"},
		{name: "an existing section", before: "a\n<!-- begin One -->\nold\n<!-- end One -->\nb\n",
			section: "One", content: "new\n",
			want: "a\n<!-- begin One -->\nnew\n<!-- end One -->\nb\n"},
		{name: "one without an end", before: "<!-- begin One -->\nold\n", section: "One", content: "new\n",
			want: "<!-- begin One -->\nold\n", wantError: path +
				": the end of the section One is not marked"},
		{name: "no heading", before: "a\n", section: "a -->", content: "new\n", want: "a\n",
			wantError: path + `: "a -->" cannot be a heading`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := os.WriteFile(path, []byte(c.before), 0o600); err != nil {
				t.Fatal(err)
			}
			message := ""
			if err := WriteSection(path, c.section, c.content); err != nil {
				message = err.Error()
			}
			if message != c.wantError {
				t.Errorf("the error is %q, want %q", message, c.wantError)
			}
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, string(text)); diff != "" {
				t.Errorf("document (-want +got):\n%s", diff)
			}
		})
	}
}
