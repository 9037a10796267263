package server

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crdcache/crdcache/dynamicinformer"
)

const header = "apiVersion: crdcache.dev/v1alpha1\nkind: ServerConfig\n"

func write(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestLoadConfig: what a file says counts, and the default for all else.
func TestLoadConfig(t *testing.T) {
	got, err := LoadConfig(write(t, header+`
types: ["*.example.com"]
storage: packed
memoryBudget: 2Gi
watches: {min: 1m}
limits: {watches: 5, bytesPerSecond: 0}
`))
	if err != nil {
		t.Fatal(err)
	}
	want := DefaultConfig()
	want.Types, want.Storage, want.MemoryBudget = []string{"*.example.com"}, dynamicinformer.StoragePacked, resource.MustParse("2Gi")
	want.Watches.Min = metav1.Duration{Duration: time.Minute}
	want.Limits.Watches, want.Limits.BytesPerSecond = 5, resource.MustParse("0")
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(resource.Quantity{})); diff != "" {
		t.Errorf("config (-want +got):\n%s", diff)
	}
	if got.MemoryBudget.Value() != 2<<30 || got.Limits.BytesPerSecond.Value() != 0 {
		t.Errorf("quantities are %s and %s", got.MemoryBudget.String(), got.Limits.BytesPerSecond.String())
	}
}

func TestConfigsThatAreWrong(t *testing.T) {
	for text, want := range map[string]string{
		"types: [a]":                                       `apiVersion "" and kind ""`,
		header + "type: [a]":                               `unknown field "type"`,
		header + "types: [a]\nstorage: metadata":           "cannot be served",
		header + "types: [a]\nstorage: fast":               "no storage mode",
		header:                                             "name what is to be kept",
		header + "types: ['a b']":                          "types:",
		header + "types: [a]\nwatches: {max: 1s}":          "watches.max: 1s is less than watches.min",
		header + "types: [a]\nwatches: {min: 1ms}":         "watches.min: 1ms is less than 1s",
		header + "types: [a]\nwatches: {writeTimeout: 0s}": "watches.writeTimeout",
		header + "types: [a]\nlimits: {watches: -1}":       "limits.watches: -1 is negative",
		header + "types: [a]\nlimits: {burstBytes: 1}":     "limits.burstBytes: 1 is less than",
		header + "types: [a]\npage: {hosts: ['a:1']}":      "page.hosts: have no effect",
		header + "types: [a]\nhistory: 0":                  "history: 0 is less than 1",
		header + "types: [a]\nmemoryBudget: -1":            "memoryBudget: -1 is negative",
		header + "types: [a]\nlimits: {requests: 1, watches: 1}\nlimits: {requests: 2}": `key "limits" already set`,
	} {
		config, err := LoadConfig(write(t, text))
		if err == nil {
			err = config.Validate()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q gives %v, want %q", text, err, want)
		}
	}
}

// TestFlagsOverFile: flags take precedence, and only those that are given.
func TestFlagsOverFile(t *testing.T) {
	options := NewOptions()
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	options.AddFlags(set)
	file := write(t, header+"types: [a]\nstorage: packed\nsecrets: true\npersistenceDirectory: /a\n")
	if err := set.Parse([]string{"--config", file, "--type=b,c", "--type=d", "--memory-budget=1Mi", "--persistence-dir=/b", "--page"}); err != nil {
		t.Fatal(err)
	}
	if err := options.Complete(set); err != nil {
		t.Fatal(err)
	}
	if usage := set.Lookup("secure-port").Usage; !strings.Contains(usage, "0: a free one") {
		t.Errorf("--secure-port: %s", usage)
	}
	c := options.Config
	if diff := cmp.Diff([]string{"b", "c", "d"}, c.Types); diff != "" {
		t.Errorf("types (-want +got):\n%s", diff)
	}
	if c.Storage != dynamicinformer.StoragePacked || !c.Secrets || c.PersistenceDirectory != "/b" || c.MemoryBudget.Value() != 1<<20 || !c.Page.Enabled {
		t.Errorf("config is %+v", c)
	}
}

func TestFlagsThatAreWrong(t *testing.T) {
	for flag, want := range map[string]string{
		"--storage=fast": "--storage:", "--memory-budget=much": "--memory-budget:", "--config=/nowhere": "no such file",
		"--request-timeout=0s": "--request-timeout:", "--max-requests-inflight=-1": "--max-requests-inflight:", "--type=": "name what is to be kept",
	} {
		options := NewOptions()
		set := pflag.NewFlagSet("", pflag.ContinueOnError)
		options.AddFlags(set)
		if err := set.Parse([]string{flag}); err != nil {
			t.Fatal(err)
		}
		if err := options.Complete(set); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s gives %v, want %q", flag, err, want)
		}
	}
}
