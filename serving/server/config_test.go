package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/bind"
)

const configHeader = "apiVersion: crdcache.dev/v1beta1\nkind: ServerConfig\n"

func writeConfigFile(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.yaml")
	must(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

// TestLoadConfig checks that a file overrides the defaults.
func TestLoadConfig(t *testing.T) {
	got, err := LoadConfig(writeConfigFile(t, configHeader+`
types: ["*.example.com"]
storage: Packed
memoryBudget: 2Gi
watches: {min: 1m}
limits: {watches: 5, bytesPerSecond: 0}
`))
	must(t, err)
	want := DefaultConfig()
	want.Types, want.Storage, want.MemoryBudget = []string{"*.example.com"}, dynamicinformer.StoragePacked,
		resource.MustParse("2Gi")
	want.Watches.Min = metav1.Duration{Duration: time.Minute}
	want.Limits.Watches, want.Limits.BytesPerSecond = 5, resource.MustParse("0")
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(resource.Quantity{})); diff != "" {
		t.Errorf("config (-want +got):\n%s", diff)
	}
	if got.MemoryBudget.Value() != 2<<30 || got.Limits.BytesPerSecond.Value() != 0 {
		t.Errorf("the quantities are %s and %s, want 2Gi and 0", got.MemoryBudget.String(),
			got.Limits.BytesPerSecond.String())
	}
}

func TestInvalidConfigs(t *testing.T) {
	for text, want := range map[string]string{
		"types: [a]":               `apiVersion "" and kind ""`,
		configHeader + "type: [a]": `unknown field "type"`,
		configHeader + "types: [a]\nstorage: metadata": "cannot serve objects",
		configHeader + "types: [a]\nstorage: fast":     "unknown storage mode",
		configHeader:                                                     "name the types to cache",
		configHeader + "types: ['a b']":                                  "types:",
		configHeader + "types: [a]\nwatches: {max: 1s}":                  "watches.max: 1s is less than watches.min",
		configHeader + "types: [a]\nwatches: {min: 1ms}":                 "watches.min: 1ms is less than 1s",
		configHeader + "types: [a]\nwatches: {writeTimeout: 0s}":         "watches.writeTimeout",
		configHeader + "types: [a]\nlimits: {watches: -1}":               "limits.watches: -1 is negative",
		configHeader + "types: [a]\nlimits: {burstBytes: 1}":             "limits.burstBytes: 1 is less than",
		configHeader + "types: [a]\npage: {hosts: ['a:1']}":              "page.hosts: have no effect",
		configHeader + "types: [a]\nmemorybudget: 1Gi":                   `unknown field "memorybudget"`,
		configHeader + "types: [a]\nlimits: {Watches: 1, watch: 2}":      `unknown field "limits.Watches"`,
		configHeader + "types: [a]\nmemoryBudget: lots":                  `memoryBudget: "lots" has no number; write one`,
		configHeader + "types: [a]\nmemoryBudget: '1e-40000000'":         "memoryBudget: \"1e-40000000\"... has too many digits",
		configHeader + "types: [a]\nlimits: {burstBytes: 1 GB}":          `limits.burstBytes: "1 GB" is no quantity`,
		configHeader + "types: [a]\nlimits: {bytesPerSecond: Mi}":        `limits.bytesPerSecond: "Mi" has no number`,
		configHeader + "types: [a]\nlimits: {indexBytes: }":              `limits.indexBytes: "null" has no number`,
		configHeader + "types: [a]\nlimits: {watches: many}":             "limits.watches: cannot decode a JSON string into a field of type int",
		configHeader + "types: [a]\nlimits: 5":                           "limits: cannot decode a JSON number into a field of type server.Limits",
		configHeader + "types: a":                                        "types: cannot decode a JSON string into a field of type []string",
		configHeader + "types: [a]\nwatches: {min: soon}":                `watches.min: time: invalid duration "soon"`,
		configHeader + "types: [a]\nsecrets: sometimes":                  "secrets: cannot decode a JSON string into a field of type bool",
		configHeader + "types: [a]\nlimits: {connectionsPerAddress: -1}": "limits.connectionsPerAddress: -1 is negative",
		"[a]":                                   "cannot decode a JSON array into a field of type server.Config",
		configHeader + "types: [a]\nhistory: 0": "history: 0 is less than 1",
		configHeader + "types: [a]\nmemoryBudget: -1":                                         "memoryBudget: -1 is negative",
		configHeader + "types: [a]\nlimits: {requests: 1, watches: 1}\nlimits: {requests: 2}": `key "limits" already set`,
	} {
		config, err := LoadConfig(writeConfigFile(t, text))
		if err == nil {
			err = config.Validate()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q gives %v, want %q", text, err, want)
		}
	}
}

// TestFlagsOverFile verifies that only the given flags override the file.
func TestFlagsOverFile(t *testing.T) {
	options := NewOptions()
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	options.AddFlags(flags)
	file := writeConfigFile(t, configHeader+"types: [a]\nstorage: Packed\nsecrets: true\npersistenceDirectory: /a\n")
	must(t, flags.Parse([]string{"--config", file, "--type=b,c", "--type=d", "--memory-budget=1Mi",
		"--persistence-dir=/b", "--page"}))
	must(t, options.Complete(flags))
	if usage := flags.Lookup("secure-port").Usage; !strings.Contains(usage, "0: a free port") {
		t.Errorf("the usage of --secure-port is %q, want it to explain 0", usage)
	}
	c := options.Config
	if diff := cmp.Diff([]string{"b", "c", "d"}, c.Types); diff != "" {
		t.Errorf("types (-want +got):\n%s", diff)
	}
	if c.Storage != dynamicinformer.StoragePacked || !c.Secrets || c.PersistenceDirectory != "/b" ||
		c.MemoryBudget.Value() != 1<<20 || !c.Page.Enabled {
		t.Errorf("the config is %+v, want the flags' values", c)
	}
	must(t, flags.Set("memory-budget", "Mi"))
	if err := options.Complete(flags); err == nil || !strings.Contains(err.Error(), "--memory-budget: \"Mi\" has no") {
		t.Errorf("--memory-budget=Mi gives %v, want an error", err)
	}
}

// TestIndexNames verifies that an index with the name of a field selector is an error.
func TestIndexNames(t *testing.T) {
	for name, refused := range map[string]bool{"spec.nodeName": true, "metadata.name": true, "type": true,
		"node": false, "image-host": false} {
		file := writeConfigFile(t, fmt.Sprintf(`apiVersion: crdcache.dev/v1beta1
kind: IndexConfig
metadata: {name: pods}
spec:
  resources:
  - name: pods
    match: {group: "", version: v1, resource: pods}
    indexes: [{name: %s, path: .metadata.labels.a}]
`, name))
		err := new(typeCache).loadSelection(&Config{IndexConfigs: []string{file}})
		if refused != (err != nil && strings.Contains(err.Error(), "the name of a field selector")) ||
			!refused && err != nil {
			t.Errorf("an index named %q: got the error %v, want one: %v", name, err, refused)
		}
	}
}

// TestInvalidCertificates verifies that the error names the file.
func TestInvalidCertificates(t *testing.T) {
	options := NewOptions()
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	options.AddFlags(set)
	file := writeConfigFile(t, "no certificate")
	must(t, set.Parse([]string{"--bind-address=127.0.0.1", "--secure-port=0", "--tls-cert-file", file,
		"--tls-private-key-file", file}))
	_, err := options.genericConfig(t.Context(), newLimits(Limits{}, 0))
	if err == nil || !strings.Contains(err.Error(), "--tls-cert-file "+file) {
		t.Errorf("the error is %v, want one that names the flag and the file", err)
	}
}

func TestInvalidFlags(t *testing.T) {
	for flag, want := range map[string]string{
		"--storage=fast": "--storage:", "--memory-budget=much": "--memory-budget:",
		"--config=/nowhere":          "no such file",
		"--request-timeout=0s":       "--request-timeout:",
		"--max-requests-inflight=-1": "--max-requests-inflight:", "--type=": "name the types to cache",
	} {
		options := NewOptions()
		set := pflag.NewFlagSet("", pflag.ContinueOnError)
		options.AddFlags(set)
		must(t, set.Parse([]string{flag}))
		if err := options.Complete(set); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s gives %v, want %q", flag, err, want)
		}
	}
}

// TestTypesInLines verifies that --type takes the lines of the output of a command.
func TestTypesInLines(t *testing.T) {
	options, set := NewOptions(), pflag.NewFlagSet("", pflag.ContinueOnError)
	options.AddFlags(set)
	err := errors.Join(set.Parse([]string{"--type=widgets\ngadgets"}), options.Complete(set))
	if want := []string{"widgets", "gadgets"}; err != nil || !slices.Equal(options.Config.Types, want) {
		t.Errorf("the types are %q, %v, want %q", options.Config.Types, err, want)
	}
}

// TestFieldsAreDocumented verifies that docs/crdcached.md has each field of a config file with its default.
func TestFieldsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/crdcached.md")
	must(t, err)
	_, table, _ := strings.Cut(string(page), "| field | default | meaning |\n|---|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	var documented []string
	got := Config{APIVersion: ConfigAPIVersion, Kind: ConfigKind}
	for _, row := range strings.Split(table, "\n") {
		cells := strings.Split(row, "|")
		if len(cells) != 5 {
			t.Fatalf("the row %q has not three cells", row)
		}
		values := strings.Split(strings.TrimSpace(cells[2]), ", ")
		for i, name := range strings.Split(strings.TrimSpace(cells[1]), ", ") {
			name = strings.Trim(name, "`")
			documented = append(documented, name)
			if i >= len(values) {
				continue
			}
			value := strings.Trim(values[i], "`")
			if _, err := strconv.Atoi(value); err != nil && value == values[i] {
				continue // the default is described in words
			}
			nested := strings.ReplaceAll(name, ".", ": {") + ": " + value + strings.Repeat("}",
				strings.Count(name, "."))
			if err := decode([]byte(nested), &got); err != nil {
				t.Errorf("decoding %s: %v", nested, err)
			}
		}
	}
	want := fieldNames(reflect.TypeFor[Config](), "")
	slices.Sort(documented)
	if diff := cmp.Diff(want, documented); diff != "" {
		t.Errorf("documented fields (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(DefaultConfig(), got); diff != "" {
		t.Errorf("documented defaults (-want +got):\n%s", diff)
	}
}

// TestFieldsOfChart verifies that the schema of the Helm chart has each field of a config file that the chart
// does not set itself.
func TestFieldsOfChart(t *testing.T) {
	text, err := os.ReadFile("../packaging/crdcached/chart/values.schema.json")
	must(t, err)
	type object struct {
		Properties map[string]object `json:"properties"`
	}
	var schema object
	must(t, json.Unmarshal(text, &schema))
	got := []string{"types", "indexConfigs", "persistenceDirectory"}
	var add func(object, string)
	add = func(o object, path string) {
		for name, field := range o.Properties {
			if len(field.Properties) == 0 {
				got = append(got, path+name)
			}
			add(field, path+name+".")
		}
	}
	add(schema.Properties["config"], "")
	slices.Sort(got)
	if diff := cmp.Diff(fieldNames(reflect.TypeFor[Config](), ""), got); diff != "" {
		t.Errorf("fields (-config +schema):\n%s", diff)
	}
}

// fieldNames returns the paths of all fields of a config, sorted.
func fieldNames(of reflect.Type, path string) []string {
	var names []string
	for _, field := range reflect.VisibleFields(of) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name == "apiVersion" || name == "kind":
		case isConfigStruct(field.Type):
			names = append(names, fieldNames(field.Type, fmt.Sprintf("%s%s.", path, name))...)
		default:
			names = append(names, path+name)
		}
	}
	slices.Sort(names)
	return names
}

// TestStalledHandler verifies that if a handler does not return, run returns after stopTimeout.
func TestStalledHandler(t *testing.T) {
	a, config := newAPIServer(t), newConfig("workloads.demo.crdcache.dev")
	c, err := newTypeCache(t.Context(), &rest.Config{Host: a.URL}, &config)
	must(t, err)
	c.stopTimeout = time.Millisecond
	stalled, err := c.factory.Acquire(crd.GVR)
	must(t, err)
	entered, gate := make(chan struct{}), make(chan struct{})
	defer close(gate)
	enter := sync.OnceFunc(func() { close(entered) })
	_, err = stalled.Informer().AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: func(any) {
		enter()
		<-gate
	}})
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- c.run(ctx) }() // ended by cancel
	<-entered
	cancel()
	var running *status.ShutdownError
	if err := <-ended; !errors.As(err, &running) {
		t.Errorf("run() = %v, want a ShutdownError", err)
	}
}

// TestOneInformerOfDefinitions verifies that package live, the page and the selection share one informer of
// CustomResourceDefinitions. Two informers would list them twice, and could not persist them in one folder.
func TestOneInformerOfDefinitions(t *testing.T) {
	config := DefaultConfig()
	c, err := newTypeCache(t.Context(), &rest.Config{Host: "https://cluster.example"}, &config)
	must(t, err)
	defer c.live.Close()
	p, err := newPage(c, PageConfig{}, nil, nil, nil)
	must(t, err)
	defer p.close()
	options, err := bind.Options{}.ResourceOptions(&indexers.Resource{})
	must(t, err)
	handle, err := c.factory.Acquire(crd.GVR, options)
	must(t, err)
	defer handle.Release()
	if all := c.factory.Informers(); len(all) != 1 {
		t.Errorf("%d informers, want 1 of CustomResourceDefinitions", len(all))
	}
}
