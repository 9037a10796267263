package main

import (
	"bytes"
	"errors"
	"flag"
	"slices"
	"strings"
	"testing"

	"github.com/crdcache/crdcache/bench/internal/run"
)

func TestParse(t *testing.T) {
	var usage bytes.Buffer
	o, err := parse([]string{"-sizes", "10,200", "-large=", "-subjects", "stream,client-go", "-rounds", "2"}, &usage)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(o.plan.Sizes, []int{10, 200}) || len(o.plan.LargeSizes) != 0 ||
		!slices.Equal(o.plan.Subjects, []string{"stream", "client-go"}) || o.plan.Rounds != 2 {
		t.Errorf("the plan is %+v", o.plan)
	}
	if o.plan.Updates != run.DefaultPlanOptions().Updates {
		t.Errorf("%d updates, want the default", o.plan.Updates)
	}
	short, err := parse([]string{"-ci", "-rounds", "1"}, &usage)
	if err != nil {
		t.Fatal(err)
	}
	if !short.guard || short.plan.Rounds != 1 || short.plan.Updates != run.CIPlanOptions().Updates {
		t.Errorf("the short form is %+v", short)
	}
}

func TestParseRefuses(t *testing.T) {
	for _, args := range [][]string{{"extra"}, {"-sizes", "x"}, {"-sizes", "0"}, {"-nonsense"}} {
		if o, err := parse(args, &bytes.Buffer{}); err == nil {
			t.Errorf("%q gives %+v", args, o)
		}
	}
	var usage bytes.Buffer
	if _, err := parse([]string{"-help"}, &usage); !errors.Is(err, flag.ErrHelp) || !strings.Contains(usage.String(), "-sizes") {
		t.Errorf("-help gives %v and %q", err, usage.String())
	}
}
