package indexers_test

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/indexers"
)

var rewrite = flag.Bool("rewrite", false, "write the current results into the golden files")

// definitions reads the CRDs in the project's test data.
func definitions(t testing.TB) []*crd.Definition {
	t.Helper()
	files, err := filepath.Glob("../testdata/crds/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	var out []*crd.Definition
	for _, f := range files {
		d, err := crd.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, d...)
	}
	return out
}

// runGoldenCases compares the result of run for each config of a folder with the config's golden file.
func runGoldenCases(t *testing.T, folder string, least int,
	run func(t *testing.T, s indexers.Source) (got string),
) {
	files, err := filepath.Glob(filepath.Join("testdata", folder, "*.yaml"))
	if err != nil || len(files) < least {
		t.Fatalf("testdata/%s has %d configs, want at least %d: %v", folder, len(files), least, err)
	}
	for _, path := range files {
		name := strings.TrimSuffix(filepath.Base(path), ".yaml")
		t.Run(name, func(t *testing.T) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			got := run(t, indexers.Source{Name: name + ".yaml", Data: data})
			golden := strings.TrimSuffix(path, ".yaml") + ".golden"
			if *rewrite {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("result (-golden +got):\n%s", diff)
			}
		})
	}
}

// describeFindings formats an error after checking its diagnostics.
func describeFindings(t *testing.T, err error, s indexers.Source) string {
	t.Helper()
	if err == nil {
		return ""
	}
	var ce *indexers.ConfigError
	if !errors.As(err, &ce) || len(ce.Diagnostics) == 0 {
		t.Fatalf("got an error %T, want a *ConfigError with diagnostics", err)
	}
	for _, d := range ce.Diagnostics {
		checkDiagnostic(t, d, s)
		if !strings.HasPrefix(string(d.Code), "E") {
			t.Errorf("the error %s has the code %s, want one that begins with E", d, d.Code)
		}
	}
	return err.Error() + "\n"
}

func TestBrokenConfigs(t *testing.T) {
	runGoldenCases(t, "broken", 60, func(t *testing.T, s indexers.Source) string {
		c, err := indexers.Parse(s)
		if err == nil || c != nil {
			t.Fatalf("Parse = %v, %v; want only an error", c, err)
		}
		return describeFindings(t, err, s)
	})
}

func TestSchemaChecks(t *testing.T) {
	crds := definitions(t)
	runGoldenCases(t, "schema", 25, func(t *testing.T, s indexers.Source) string {
		c, err := indexers.Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		warnings, err := c.Check(crds)
		got := describeFindings(t, err, s)
		for _, w := range warnings {
			checkDiagnostic(t, w, s)
			got += w.Text() + "\n"
		}
		if got == "" {
			t.Error("Check found nothing, want an error or a warning")
		}
		return got
	})
}
