package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/bind"
	"github.com/crdcache/crdcache/indexers/query"
	"github.com/crdcache/crdcache/internal/testkit"
)

// TestReload verifies that crdcached applies changed index configs in a mounted ConfigMap. It keeps the
// previous ones if the new ones are invalid, and reports the error with its position.
func TestReload(t *testing.T) {
	const text = `apiVersion: crdcache.dev/v1beta1
kind: IndexConfig
metadata: {name: a}
spec:
  resources:
  - name: r
    match: {group: demo.crdcache.dev, resource: %s}
    indexes: [{name: %s, path: .metadata.name}]
`
	c := newConfig("environments.demo.crdcache.dev")
	mount := &testkit.ConfigMapMount{Dir: t.TempDir()}
	mount.Swap(t, map[string]string{"a.yaml": fmt.Sprintf(text, "environments", "first")})
	c.IndexConfigs = []string{filepath.Join(mount.Dir, "a.yaml")}
	d := startDaemon(t, newAPIServer(t), c)
	d.awaitReady()
	query := func(resource, index string) response {
		return d.request("ann", http.MethodGet, "/query/apis/demo.crdcache.dev/v1/"+resource+"?keys=true&q="+index+
			"%3Dnone", "")
	}
	status := func() string { return string(d.request("ann", http.MethodGet, typeChecksPath, "").body) }
	metric := func() string {
		_, rest, _ := strings.Cut(string(d.request("ann", http.MethodGet, "/metrics", "").body),
			"\ncrdcache_config_last_reload_successful ")
		value, _, _ := strings.Cut(rest, "\n")
		return value
	}
	for _, test := range []struct {
		reason, content string
		resource, index string
		status, metric  string
	}{
		{"an index is renamed", fmt.Sprintf(text, "environments", "second"), "environments", "second",
			"[+]index configs loaded at ", "1"},
		{"a syntax error", fmt.Sprintf(text, "environments", "x, path: '['"), "environments", "second",
			"[-]index configs loaded at ", "0"},
		{"a name that authorizers use", fmt.Sprintf(text, "environments", "a.b"), "environments", "second",
			"[-]index configs loaded at ", "0"},
		{"a namespace of a cluster-scoped type",
			fmt.Sprintf(text, "environments}\n    namespaces: {include: [payments]", "x"), "environments", "second",
			"the objects of environments.v1.demo.crdcache.dev have no namespaces", "0"},
		{"a storage mode without objects", fmt.Sprintf(text, "workloads}\n    storage: {mode: Metadata", "x"),
			"environments", "second", "cannot serve objects with mode", "0"},
		{"different settings", fmt.Sprintf(text, "environments}\n  - name: s\n    keep: {paths: [.spec]}\n"+
			"    match: {group: demo.crdcache.dev, resource: 'env*'", "x"), "environments", "second",
			`the resources "r" and "s" of the config select the type with different keep`, "0"},
		{"Secrets", fmt.Sprintf(text, "environments}\n  - name: s\n    match: {group: '', kind: Secret",
			"x"), "environments", "second", "secrets are cached only if", "0"},
		{"an index of another type", fmt.Sprintf(text, "workloads", "third"), "workloads", "third",
			"[+]index configs loaded at ", "1"},
		{"a type that does not exist", fmt.Sprintf(text, "nothing", "fourth"), "environments", "",
			"[-]nothing.demo.crdcache.dev", "1"},
	} {
		mount.Swap(t, map[string]string{"a.yaml": test.content})
		d.server.cache.indexConfigWatcher.Reload(t.Context())
		if test.resource == "workloads" {
			gr := schema.ParseGroupResource("workloads.demo.crdcache.dev")
			must(t, d.server.cache.live.WaitForSync(t.Context(), gr))
		}
		answer := query(test.resource, test.index)
		if test.index != "" && answer.code != http.StatusOK {
			t.Errorf("%s: a query by %s returned %s", test.reason, test.index, answer.body)
		}
		if got := status(); !strings.Contains(got, test.status) || metric() != test.metric ||
			test.metric == "0" && !strings.Contains(got, "the previous config stays in effect") {
			t.Errorf("%s: the metric is %s with the status\n%s\nwant %s and %s", test.reason, metric(), got,
				test.metric, test.status)
		}
		if answer := query("environments", "first"); !strings.Contains(string(answer.body), "there is no index") {
			t.Errorf("%s: a query by a removed index returned %s", test.reason, answer.body)
		}
	}
	answer := d.request("ann", http.MethodGet, "/apis/demo.crdcache.dev/v1/nothing", "")
	if answer.code != http.StatusMisdirectedRequest || !strings.Contains(string(answer.body), "nothing.demo.crdcache.dev") ||
		strings.Contains(string(answer.body), "add the type to the config") {
		t.Errorf("a type that cannot be cached = %d %s, want 421 with its reason", answer.code, answer.body)
	}
	if types := d.server.cache.binding.Targets(); len(types) != 1 {
		t.Errorf("%d types are cached, want 1", len(types))
	}
}

// TestSettingsOfTypes verifies that the settings of index configs apply to the cache of a type: all resources
// that select it together keep the fields that their indexes read.
func TestSettingsOfTypes(t *testing.T) {
	c := newConfig()
	c.IndexConfigs = []string{writeConfigFile(t, `apiVersion: crdcache.dev/v1beta1
kind: IndexConfig
metadata: {name: a}
spec:
  defaults: {keep: {paths: [.spec.image, .spec.replicas, .spec.paused, .status.phase]}, storage: {mode: Packed}}
  resources:
  - name: r
    match: {group: demo.crdcache.dev, resource: workloads}
    namespaces: {include: [payments]}
    indexes: [{name: tier, path: .spec.tier}]
  - name: s
    match: {group: demo.crdcache.dev, kind: Workload}
    namespaces: {include: [payments]}
    indexes: [{name: env, path: .spec.environment}]
`)}
	d := startDaemon(t, newAPIServer(t), c)
	d.awaitReady()
	for path, want := range map[string]string{
		"/namespaces/payments/workloads?fieldSelector=tier%3Dcritical": "true", "/workloads": "",
		"/namespaces/payments/workloads?fieldSelector=env%3Dproduction-eu": "true",
	} {
		answer := d.request("ann", http.MethodGet, "/apis/demo.crdcache.dev/v1"+path, "")
		if pruned := answer.header.Get("Crdcache-Pruned"); answer.code != http.StatusOK || pruned != want ||
			!strings.Contains(string(answer.body), `"ledger"`) {
			t.Errorf("%s: got code %d, pruned %q and %s, want pruned %q and ledger", path, answer.code, pruned,
				answer.body, want)
		}
	}
	cached := d.server.cache.binding.Type(schema.ParseGroupResource("workloads.demo.crdcache.dev"))
	for field, dropped := range map[string]bool{".spec.image": false, ".spec.tier": false,
		".spec.environment": false, ".status.conditions": true} {
		if cached.Informer.Drops(field) != dropped {
			t.Errorf("the cache drops %s: %v, want %v", field, !dropped, dropped)
		}
	}
}

// TestOneMeaning verifies that crdcached answers from the same objects and indexes as the library with the
// same config, or refuses the config with the field that it cannot apply.
func TestOneMeaning(t *testing.T) {
	api := newAPIServer(t)
	table, err := os.ReadFile("../../testdata/one_meaning.txt")
	must(t, err)
	for line := range strings.Lines(strings.NewReplacer("NAMESPACE", "payments", "NAME", "ledger",
		"KEPT", ".spec, .status", "FIELD", ".spec.image").Replace(string(table))) {
		cells := strings.Split(line, "|")
		settings, refusal := cells[0], strings.TrimSpace(cells[2])
		c, text := newConfig(), "apiVersion: crdcache.dev/v1beta1\nkind: IndexConfig\nmetadata: {name: a}\nspec:\n"+
			"  resources: [{name: r, match: {group: demo.crdcache.dev, resource: workloads}, "+settings+
			" indexes: [{name: tier, path: .spec.tier}]}]\n"
		c.IndexConfigs = []string{writeConfigFile(t, text)}
		if refusal != "" {
			err := new(typeCache).loadSelection(&c)
			if err == nil || !strings.Contains(err.Error(), refusal) {
				t.Errorf("with %q: %v, want %q", settings, err, refusal)
			}
			continue
		}
		d := startDaemon(t, api, c)
		d.awaitReady()
		config, err := indexers.Parse(indexers.Source{Data: []byte(text)})
		must(t, err)
		b, err := bind.Run(t.Context(), &rest.Config{Host: api.URL}, config,
			bind.Options{Compression: compression})
		must(t, err)
		q, err := b.Querier("r")
		must(t, err)
		want, err := q.Keys(t.Context(), query.Exists("tier"), query.Options{})
		path := "/query/apis/demo.crdcache.dev/v1/workloads?keys=true&q=tier"
		if strings.Contains(settings, "include") {
			path = strings.Replace(path, "v1", "v1/namespaces/payments", 1)
		}
		answer := d.request("ann", http.MethodGet, path, "")
		var got struct{ Keys []string }
		err = errors.Join(err, json.Unmarshal(answer.body, &got))
		if err != nil || !slices.Equal(got.Keys, want) || len(want) == 0 {
			t.Errorf("with %q: crdcached has %s, want %s (%v)", settings, answer.body, want, err)
		}
	}
}

// TestIndexLimits verifies that new indexes above a limit are refused with the limit, that the previous ones
// stay in effect, and that the status shows the sizes.
func TestIndexLimits(t *testing.T) {
	const text = `apiVersion: crdcache.dev/v1beta1
kind: IndexConfig
metadata: {name: a}
spec:
  resources:
  - {name: r, match: {group: demo.crdcache.dev, resource: workloads}, indexes: [%s]}
`
	c := newConfig()
	file := writeConfigFile(t, fmt.Sprintf(text, "{name: tier, path: .spec.tier}"))
	c.IndexConfigs = []string{file}
	c.Limits.IndexBytes, c.Limits.TypeIndexBytes = resource.MustParse("5Ki"), resource.MustParse("12Ki")
	d := startDaemon(t, newAPIServer(t), c)
	d.awaitReady()
	costly := map[string]string{
		"{name: image, path: .spec.image}, {name: all, path: $..*}": `the index "all" needs more than 5120 bytes`,
		"{name: a, path: .spec.image}, {name: b, path: .spec.image}, {name: c, path: .spec.image}, {name: d, path: .spec.image}, {name: e, path: .spec.image}, {name: f, path: .spec.image}, {name: g, path: .spec.image}, {name: h, path: .spec.image}, {name: i, path: .spec.image}": "the indexes of the type need more than 12288 bytes",
		`{name: slow, cel: '[0,1,2,3,4,5,6,7,8,9].map(a, [0,1,2,3,4,5,6,7,8,9].map(b, [0,1,2,3,4,5,6,7,8,9].map(c, [0,1,2,3,4,5,6,7,8,9].map(d, [0,1,2,3,4,5,6,7,8,9].map(e, a + b + c + d + e))))).size()'}`:                                                                          `the index "slow" takes`,
	}
	for indexes, want := range costly {
		must(t, os.WriteFile(file, []byte(fmt.Sprintf(text, indexes)), 0o600))
		outcome := d.server.cache.indexConfigWatcher.Reload(t.Context())
		if outcome.Err == nil || !strings.Contains(outcome.Err.Error(), want) {
			t.Errorf("%s: the error is %v, want %s", indexes, outcome.Err, want)
		}
		status := string(d.request("ann", http.MethodGet, typeChecksPath, "").body)
		if !regexp.MustCompile("; indexes: tier [0-9]+ bytes\n").MatchString(status) {
			t.Errorf("%s: the status is %s, want the index tier with its size", indexes, status)
		}
	}
	c.IndexConfigs = nil
	for indexes, want := range costly {
		t.Run("first list", func(t *testing.T) { testFirstListLimits(t, c, fmt.Sprintf(text, indexes), want) })
	}
}

// testFirstListLimits verifies that a type is cached without its costly indexes, with the reason, and that
// requests by them are refused.
func testFirstListLimits(t *testing.T, c Config, indexes, want string) {
	c.IndexConfigs = []string{writeConfigFile(t, indexes)}
	d := startDaemon(t, newAPIServer(t), c)
	d.awaitReady()
	missing := regexp.MustCompile(`cached without the index \\?"(\w+)\\?": ` + regexp.QuoteMeta(want))
	var found []string
	for found == nil {
		status := string(d.request("ann", http.MethodGet, typeChecksPath, "").body)
		if found = missing.FindStringSubmatch(status); found == nil && t.Context().Err() != nil {
			t.Fatalf("the status is %s, want %s", status, missing)
		}
	}
	for path, code := range map[string]int{
		"/query/apis/demo.crdcache.dev/v1/workloads?q=" + found[1] + "%3Dx":         http.StatusBadRequest,
		"/apis/demo.crdcache.dev/v1/workloads?fieldSelector=" + found[1] + "%3Dx":   http.StatusBadRequest,
		"/apis/demo.crdcache.dev/v1/workloads?fieldSelector=metadata.name%3Dledger": http.StatusOK,
	} {
		if answer := d.request("ann", http.MethodGet, path, ""); answer.code != code {
			t.Errorf("%s = %d %s, want %d", path, answer.code, answer.body, code)
		}
	}
}
