package main

import (
	"bytes"
	"errors"
	"flag"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crdcache/crdcache/bench/internal/experiment"
	"github.com/crdcache/crdcache/bench/internal/report"
)

func TestCommand(t *testing.T) {
	tests := map[string]struct {
		args       []string
		code       int
		wantOutput string
	}{
		"usage":        {[]string{"extra"}, exitUsage, "extra"},
		"plan":         {[]string{"-plan"}, exitOK, "sync, 50000 small objects"},
		"no such file": {[]string{"-from", "testdata/none.json"}, exitFailed, "none.json"},
		"no step left": {[]string{"-plan", "-experiments", "sync", "-subjects", "kubectl"},
			exitFailed, "no step"},
		"no sandbox":      {[]string{"-sandbox", "testdata/none"}, exitFailed, "make sandbox"},
		"unknown subject": {[]string{"-plan", "-subjects", "nonsense"}, exitFailed, "client-go"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var stderr bytes.Buffer
			if code := command(tt.args, &stderr); code != tt.code ||
				!strings.Contains(stderr.String(), tt.wantOutput) {
				t.Errorf("command() = %d with the output %q, want %d and %q", code, stderr.String(),
					tt.code, tt.wantOutput)
			}
		})
	}
}

// TestBrokenPromisesFailOnlyWithCI judges a file of results that misses a target and its margin. The command
// reports both, and fails only with -ci.
func TestBrokenPromisesFailOnlyWithCI(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results.json")
	r := &report.Result{}
	for subject, cost := range map[string]float64{experiment.ClientGo: 1, experiment.Packed: 0.9} {
		r.Add(experiment.Sync, experiment.Small, 5_000, subject, map[string]float64{experiment.CPU: cost})
	}
	if err := r.Write(path); err != nil {
		t.Fatal(err)
	}
	var withoutCI, withCI bytes.Buffer
	if code := command([]string{"-from", path}, &withoutCI); code != exitOK ||
		!strings.Contains(withoutCI.String(), "measured 1.11×") {
		t.Errorf("command() = %d with the output %q, want the ratio and no failure", code, withoutCI.String())
	}
	if code := command([]string{"-ci", "-from", path}, &withCI); code != exitFailed ||
		!strings.Contains(withCI.String(), "\nmargin missed") {
		t.Errorf("command(-ci) = %d with the output %q, want a failure", code, withCI.String())
	}
}

func TestParse(t *testing.T) {
	o, err := parse([]string{"-ci", "-subjects", "stream,client-go", "-rounds", "2", "-objects", "10"},
		&bytes.Buffer{})
	if err != nil {
		t.Fatal(err)
	}
	want := Choice{Subjects: []string{"stream", "client-go"}, Objects: 10, Rounds: 2}
	if diff := cmp.Diff(want, o.choice); diff != "" || !o.ci {
		t.Errorf("-ci is %v; choice (-want +got):\n%s", o.ci, diff)
	}
}

func TestParseErrors(t *testing.T) {
	for _, args := range [][]string{{"extra"}, {"-objects", "x"}, {"-rounds", "-1"}, {"-nonsense"}} {
		if o, err := parse(args, &bytes.Buffer{}); err == nil {
			t.Errorf("parse(%q) = %+v, want an error", args, o)
		}
	}
	var usage bytes.Buffer
	if _, err := parse([]string{"-help"}, &usage); !errors.Is(err, flag.ErrHelp) ||
		!strings.Contains(usage.String(), "-objects") {
		t.Errorf("parse(-help) = %v with the usage %q", err, usage.String())
	}
}
