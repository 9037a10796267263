package testkit

import (
	"fmt"
	"strings"
	"testing"
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
		t.Errorf("the terminal shows %q, want %q", got, want)
	}
}
