package main

import (
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseFuzzOutput(t *testing.T) {
	got, err := parseFuzzOutput(strings.NewReader(`fuzz: elapsed: 0s, gathering baseline coverage: 0/40 completed
fuzz: elapsed: 3s, execs: 523 (174/sec), new interesting: 35 (total: 75)
fuzz: minimizing 15321-byte failing input file
fuzz: elapsed: 6s, execs: 1041 (172/sec), new interesting: 36 (total: 76)
PASS
`))
	if diff := cmp.Diff(fuzzResult{Executions: 1041, Corpus: 76}, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	got, err = parseFuzzOutput(strings.NewReader("fuzz: elapsed: 0s, gathering baseline coverage: 0/40 completed\nPASS\n"))
	if got != (fuzzResult{}) || err != nil {
		t.Errorf("the result of a run that ended early = %+v, %v, want none", got, err)
	}
	if _, err := parseFuzzOutput(strings.NewReader("PASS\n")); err == nil {
		t.Error("want an error for output without executions")
	}
}

func TestTimeWasUp(t *testing.T) {
	for output, want := range map[string]bool{
		"fuzz: elapsed: 9s\n--- FAIL: FuzzOne (10.13s)\n    context deadline exceeded\nFAIL\n":                 true,
		"--- FAIL: FuzzOne (10.13s)\n    --- FAIL: FuzzOne (0.00s)\n        context deadline exceeded\nFAIL\n": false,
		"context deadline exceeded\n": false,
	} {
		if got := timeWasUp.MatchString(output); got != want {
			t.Errorf("timeWasUp = %v for %q", got, output)
		}
	}
}

func TestFindAll(t *testing.T) {
	keys := func(only string) []string {
		t.Helper()
		found, err := findAllTargets(t.Context(), []string{"../.."}, only)
		if err != nil {
			t.Fatal(err)
		}
		var keys []string
		for _, f := range found {
			if filepath.Base(f.dir) != path.Base(f.path) {
				t.Errorf("the package %s is in the folder %s", f.path, f.dir)
			}
			keys = append(keys, f.key())
		}
		return keys
	}
	if all := keys(""); len(all) < 30 || !slices.Contains(all, "internal/naming FuzzMatch") {
		t.Errorf("found only the fuzz tests %q", all)
	}
	want := []string{"internal/naming FuzzKey", "internal/naming FuzzCompareVersions", "internal/naming FuzzMatch"}
	if diff := cmp.Diff(want, keys("^internal/naming ")); diff != "" {
		t.Errorf("matching fuzz tests (-want +got):\n%s", diff)
	}
	for only, modules := range map[string][]string{"(": {"../.."}, "^nothing$": {"../.."}, "": nil} {
		if found, err := findAllTargets(t.Context(), modules, only); err == nil {
			t.Errorf("findAll(%q) in %q = %v, want an error", only, modules, found)
		}
	}
}

func TestResultsAddUp(t *testing.T) {
	file := filepath.Join(t.TempDir(), "results.json")
	one, other := target{path: project + "a", name: "FuzzOne"}, target{path: project + "b/c",
		name: "FuzzOther"}
	for range 2 {
		all, err := readResults(file)
		if err != nil {
			t.Fatal(err)
		}
		all.add(one, fuzzResult{Executions: 1000, Seconds: 1800, Corpus: 7})
		all.add(other, fuzzResult{Executions: 1234567, Seconds: 1800, Corpus: 8, Failures: 1})
		if err := all.write(file); err != nil {
			t.Fatal(err)
		}
	}
	all, err := readResults(file)
	if err != nil {
		t.Fatal(err)
	}
	want := `2,471,134 executions of 2 tests in 2.0 hours; 2 runs of a test failed.
`
	if diff := cmp.Diff(want, all.section()); diff != "" {
		t.Errorf("section (-want +got):\n%s", diff)
	}
	if all.executions() != 2471134 {
		t.Errorf("executions() = %d, want 2471134", all.executions())
	}
}
