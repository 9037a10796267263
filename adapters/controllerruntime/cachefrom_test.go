package controllerruntime

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestCacheFrom reads the named types from one server, and all others from the cluster. The server's URL has
// a path.
func TestCacheFrom(t *testing.T) {
	cluster, cached := newServer(t), newServer(t)
	cached.Create(t, configMaps, configMap("web", "cached"))
	cluster.Create(t, configMaps, configMap("web", "cluster"))
	cluster.Create(t, namespaces, object(namespaceKind, "", "cluster"))
	cached.Create(t, namespaces, object(namespaceKind, "", "cached"))
	c, err := NewCacheFrom(cached.Config(), []string{"*.example.com", "configmaps"},
		Options{})(cluster.Config(), cache.Options{Mapper: newMapper()})
	must(t, err)
	start(t, c)
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "web", Name: "cached"},
		&corev1.ConfigMap{}); err != nil {
		t.Error(err)
	}
	if err := c.Get(t.Context(), client.ObjectKey{Name: "cluster"}, &corev1.Namespace{}); err != nil {
		t.Error(err)
	}
	for _, request := range cluster.Requests() {
		if strings.Contains(request, "/configmaps") {
			t.Errorf("the cluster received %s, want no requests for ConfigMaps", request)
		}
	}
	for _, request := range cached.Requests() {
		if !strings.Contains(request, "/configmaps") {
			t.Errorf("the caching server received %s, want only requests for ConfigMaps", request)
		}
	}
}

func TestCacheFromErrors(t *testing.T) {
	server := newServer(t)
	for want, test := range map[string]struct {
		cached *rest.Config
		types  []string
	}{
		"set the REST config of the caching server": {nil, []string{"configmaps"}},
		"and name types that it caches":             {server.Config(), nil},
		`"ConfigMap" is not a resource name`:        {server.Config(), []string{"ConfigMap"}},
		`"apps/v1" is not a resource name`:          {server.Config(), []string{"apps/v1"}},
		`"" is not a resource name`:                 {server.Config(), []string{""}},
		"read the URLs of the cluster and the":      {&rest.Config{Host: "http://[::1"}, []string{"configmaps"}},
	} {
		if _, err := NewCacheFrom(test.cached, test.types, Options{})(server.Config(),
			cache.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("NewCacheFrom: got the error %v, want %s", err, want)
		}
	}
	c := newCache(t, server, cache.Options{}, Options{})
	if _, err := NewCacheFrom(server.Config(), []string{"configmaps"},
		Options{Factory: c.Factory()})(server.Config(), cache.Options{}); err == nil {
		t.Error("NewCacheFrom with a shared factory succeeded, want an error")
	}
}
