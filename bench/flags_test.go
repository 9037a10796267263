package main

import (
	"bytes"
	"errors"
	"flag"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crdcache/crdcache/bench/internal/run"
)

func TestParse(t *testing.T) {
	o, err := parse([]string{"-ci", "-subjects", "stream,client-go", "-rounds", "2", "-objects", "10"},
		&bytes.Buffer{})
	if err != nil {
		t.Fatal(err)
	}
	want := run.Choice{Subjects: []string{"stream", "client-go"}, Objects: 10, Rounds: 2}
	if diff := cmp.Diff(want, o.choice); diff != "" || !o.ci {
		t.Errorf("-ci is %v; choice (-want +got):\n%s", o.ci, diff)
	}
}

func TestParseErrors(t *testing.T) {
	for _, args := range [][]string{{"extra"}, {"-objects", "x"}, {"-rounds", "-1"}, {"-nonsense"}} {
		if o, err := parse(args, &bytes.Buffer{}); err == nil {
			t.Errorf("%q: no error, but %+v", args, o)
		}
	}
	var usage bytes.Buffer
	if _, err := parse([]string{"-help"}, &usage); !errors.Is(err, flag.ErrHelp) ||
		!strings.Contains(usage.String(), "-objects") {
		t.Errorf("-help: %v and %q", err, usage.String())
	}
}
