package session

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/internal/testkit"
)

// TestColor verifies that terminals with control sequences get colors unless NO_COLOR is set. always and
// never ignore the terminal.
func TestColor(t *testing.T) {
	terminal, err := testkit.OpenTerminal(40)
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, tt := range []struct {
		when, noColor, kind string
		out                 *os.File
		want                bool
	}{
		{"auto", "", "xterm", terminal.File, true},
		{"auto", "", "xterm", file, false},
		{"auto", "1", "xterm", terminal.File, false},
		{"auto", "", "dumb", terminal.File, false},
		{"auto", "", "", terminal.File, false},
		{"always", "1", "dumb", file, true},
		{"never", "", "xterm", terminal.File, false},
	} {
		t.Setenv("NO_COLOR", tt.noColor)
		t.Setenv("TERM", tt.kind)
		flag := ColorFlag{tt.when}
		if got := flag.Enabled(print.NewStream(tt.out)); got != tt.want {
			t.Errorf("%+v: Enabled() = %v, want %v", tt, got, tt.want)
		}
	}
}
