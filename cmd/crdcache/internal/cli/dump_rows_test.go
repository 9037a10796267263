//go:build unix

package cli_test

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/crdcache/crdcache/discovery/crd"
)

// TestServeDumpsRows compares tables of objects from the cache server with those of the API server, including
// order and deprecation warnings.
func TestServeDumpsRows(t *testing.T) {
	shortRuntimeDir(t)
	server := newIndexedServer(t)
	definition := &unstructured.Unstructured{}
	deprecated := strings.Replace(roomCRD, "served: true",
		"served: true\n    deprecated: true\n    deprecationWarning: rooms are no more", 1)
	must(t, yaml.Unmarshal([]byte(deprecated), &definition.Object))
	server.Create(t, crd.GVR, definition)
	for i, namespace := range []string{"web", "web-a", "web.a", "web0"} {
		room := newObject("Room", namespace, "hall", map[string]any{"floor": int64(1_000_000 * i),
			"owner": "eve"})
		room.SetLabels(map[string]string{"n": fmt.Sprint(i)})
		server.Create(t, crd.GVR, room)
	}
	startServe(t, io.Discard, "*.example.com", "-s", server.URL)
	awaitServer(t, server.URL, 3)
	for _, args := range [][]string{
		{"rooms", "-A"}, {"rooms", "-n", "web-a", "-o", "wide"}, {"rooms", "-A", "--show-labels",
			"--show-kind", "--no-headers"}, {"rooms", "-A", "-L", "n", "-l", "n in (1,3)"},
		{"rooms", "-n", "none"}, {"rooms", "-n", "none", "--ignore-not-found"}, {"room", "-A",
			"--quiet"}, {"gz", "-A", "-o", "wide"},
	} {
		args = append([]string{"dump", "-s", server.URL}, args...)
		want, got := crdcache(t, append(args, "--cache", "none")...), crdcache(t, args...)
		if got != want {
			t.Errorf("%q with the cache server: %+v, want the same as without it: %+v", args, got, want)
		}
	}
	query := []string{"query", "rooms", "-A", "--where", "@.spec.floor > 1", "-s", server.URL}
	if want, got := crdcache(t, append(query, "--cache", "none")...), crdcache(t, query...); got != want ||
		!strings.Contains(got.errOut, "rooms are no more") {
		t.Errorf("query with the cache server: %+v, want the same as without it: %+v", got, want)
	}
}
