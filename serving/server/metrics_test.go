package server

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/authentication/user"
	apimetrics "k8s.io/apiserver/pkg/endpoints/metrics"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	genericserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/discovery"
)

// TestUnknownNamesShareMetrics verifies that versions and subresources that do not exist share their metrics.
func TestUnknownNamesShareMetrics(t *testing.T) {
	apimetrics.Register()
	config := DefaultConfig()
	c, err := newTypeCache(t.Context(), &rest.Config{Host: "http://127.0.0.1:1"}, &config)
	must(t, err)
	defer c.live.Close()
	c.cachedVersion = func(schema.GroupResource) (discovery.Resource, bool) {
		return discovery.Resource{GVR: schema.GroupVersionResource{Group: "example.com", Version: "v1",
			Resource: "invented"}}, true
	}
	h := &router{cache: c, limits: newLimits(Limits{}, 1), watches: &watchLimits{min: 1, max: 1,
		servingCtx: t.Context()}}
	resolver := queryResolver{genericserver.NewRequestInfoResolver(
		genericserver.NewConfig(serializer.NewCodecFactory(newScheme())))}
	for i := range 20 {
		for _, path := range []string{
			"/apis/example.com/v%d/invented", "/apis/example.com/v%d/invented?watch=true",
			"/query/apis/example.com/v%d/invented",
			"/apis/example.com/v1/namespaces/a/invented/b/s%d",
		} {
			r := httptest.NewRequest(http.MethodGet, fmt.Sprintf(path, 1+i), nil)
			info, err := resolver.NewRequestInfo(r)
			must(t, err)
			ctx := apirequest.WithUser(apirequest.WithRequestInfo(r.Context(), info),
				&user.DefaultInfo{Name: "a"})
			h.ServeHTTP(httptest.NewRecorder(), r.WithContext(ctx))
		}
	}
	exposed, err := c.metricsHandler(h.limits)
	must(t, err)
	answer := httptest.NewRecorder()
	exposed.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	names := map[string]int{}
	for _, found := range regexp.MustCompile(`resource="invented",.*subresource="(.*?)",.*version="(.*?)"`).
		FindAllStringSubmatch(answer.Body.String(), -1) {
		names[found[1]]++
		names[found[2]]++
	}
	if len(names) != 3 || names[""] == 0 || names["v1"] == 0 || names[otherLabel] == 0 {
		t.Errorf("the labels of versions and subresources are %v, want 3", names)
	}
}

// TestObjectMetrics verifies that the metrics of index configs have their own path and permission.
func TestObjectMetrics(t *testing.T) {
	const config = `apiVersion: crdcache.dev/v1beta1
kind: IndexConfig
metadata: {name: environments}
spec:
  resources:
  - name: environments
    match: {group: demo.crdcache.dev, resource: environments}
    indexes: [{name: stage, path: .spec.stage}]
    metrics:
    - {name: environments, help: Number of environments., whenCEL: has(self.spec), labels: [{name: kind, cel: self.kind}]}
    - {name: environments_by_stage, help: Number of environments., index: stage}
`
	c := DefaultConfig()
	c.IndexConfigs = []string{writeConfigFile(t, config)}
	d := startDaemon(t, newAPIServer(t), c)
	d.awaitReady()
	answer := d.request("ann", http.MethodGet, objectMetricsPath, "")
	for _, want := range []string{`environments{kind="Environment"} 6`, `environments_by_stage{stage="production"} 3`,
		`crdcache_stale{group="demo.crdcache.dev",resource="environments",version="v1"} 0`} {
		if !strings.Contains(string(answer.body), want) {
			t.Errorf("the metrics of objects = %d %s\nwant %s", answer.code, answer.body, want)
		}
	}
	if answer := d.request("nobody", http.MethodGet, objectMetricsPath, ""); answer.code != http.StatusForbidden {
		t.Errorf("a user without rights gets %d, want 403", answer.code)
	}
	if answer := d.request("ann", http.MethodGet, "/metrics", ""); strings.Contains(string(answer.body), "\nenvironments{") {
		t.Error("/metrics has metrics of objects")
	}
	err := new(typeCache).loadSelection(&Config{IndexConfigs: []string{writeConfigFile(t,
		config+"    selectors: {labels: a=b}\n")}})
	if err == nil || !strings.Contains(err.Error(), "all objects of a type are served") {
		t.Errorf("metrics of some objects: %v, want an error", err)
	}
}
