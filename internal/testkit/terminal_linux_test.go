package testkit

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTerminal(t *testing.T) {
	terminal, err := OpenTerminal(40)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(terminal.File, "a\nb\x1b[1m")
	if err := terminal.Await(t.Context(),
		func(output string) bool { return strings.HasSuffix(output, "m") }); err != nil {
		t.Error(err)
	}
	if err := terminal.Resize(20); err != nil {
		t.Error(err)
	}
	if got, want := terminal.Close(), "a\nb\x1b[1m"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestScreen(t *testing.T) {
	for output, want := range map[string][]string{
		"abc\nd":                  {"abc", "d"},
		"abcdefghij":              {"abcdefgh", "ij"},
		"abcdefgh\nij":            {"abcdefgh", "ij"},
		"abc\rx":                  {"xbc"},
		"abc\r\x1b[Kx \x1b[31my ": {"x y"},
	} {
		got, err := Screen(output, 8)
		if err != nil {
			t.Errorf("%q: %v", output, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", output, diff)
		}
	}
	for _, output := range []string{"\x07", "\x1b[2J", "\x1b]0;t\x07", "\x1b", "\u009b2J"} {
		if got, err := Screen(output, 8); err == nil {
			t.Errorf("%q gives %q", output, got)
		}
	}
}
