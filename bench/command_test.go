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
		args []string
		code int
		says string
	}{
		"usage":        {[]string{"extra"}, exitUsage, "extra"},
		"plan":         {[]string{"-plan"}, exitOK, "sync, 50000 small objects"},
		"no such file": {[]string{"-from", "testdata/none.json"}, exitFailed, "none.json"},
		"bad plan": {[]string{"-plan", "-experiments", "sync", "-subjects", "kubectl"},
			exitFailed, "no step"},
		"no sandbox":    {[]string{"-sandbox", "testdata/none"}, exitFailed, "make sandbox"},
		"unknown cache": {[]string{"-plan", "-subjects", "nonsense"}, exitFailed, "client-go"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var stderr bytes.Buffer
			if code := command(tt.args, &stderr); code != tt.code ||
				!strings.Contains(stderr.String(), tt.says) {
				t.Errorf("command() = %d with the output %q, want %d and %q", code, stderr.String(),
					tt.code, tt.says)
			}
		})
	}
}

// TestGuard verifies how a file of results is judged: missed targets are reported, and broken promises are a
// failure only with -ci.
func TestGuard(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results.json")
	r := &report.Result{}
	for subject, cost := range map[string]float64{experiment.ClientGo: 1, experiment.Packed: 0.9} {
		r.Add(experiment.Sync, experiment.Small, 5_000, subject, map[string]float64{experiment.CPU: cost})
	}
	if err := r.Write(path); err != nil {
		t.Fatal(err)
	}
	var free, guarded bytes.Buffer
	if code := command([]string{"-from", path}, &free); code != exitOK ||
		!strings.Contains(free.String(), "measured 1.11×") {
		t.Errorf("command() = %d with the output %q, want the ratio and no failure", code, free.String())
	}
	if code := command([]string{"-ci", "-from", path}, &guarded); code != exitFailed ||
		!strings.Contains(guarded.String(), "\nmargin missed") {
		t.Errorf("command(-ci) = %d with the output %q, want a failure", code, guarded.String())
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
