package cli_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/cli"
	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/internal/apiserver"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
	"github.com/crdcache/crdcache/serving/readapi"
)

// gizmoServer is a server of gizmos, with or without a CRD. Tests write to its storage.
type gizmoServer struct {
	*testing.T
	*apiserver.Storage
	url string
}

func newGizmoServer(t *testing.T) gizmoServer {
	t.Helper()
	storage := apiserver.NewStorage(apiserver.StorageOptions{})
	server := httptest.NewServer(readapi.NewHandler(storage, readapi.HandlerOptions{}))
	t.Cleanup(func() {
		server.CloseClientConnections() // ends open watches
		server.Close()
	})
	return gizmoServer{t, storage, server.URL}
}

// applyCRD adds the CRD with a column for each field of spec.
func (s gizmoServer) applyCRD(fields ...string) {
	s.Helper()
	columns := []any{}
	for _, field := range fields {
		columns = append(columns, map[string]any{"name": field, "type": "string",
			"jsonPath": ".spec." + field})
	}
	s.apply(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "gizmos.example.com", "uid": string(uuid.NewUUID())},
		"spec": map[string]any{
			"group": "example.com", "scope": "Namespaced",
			"names": map[string]any{"plural": "gizmos", "kind": "Gizmo"},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true, "additionalPrinterColumns": columns,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object",
					"x-kubernetes-preserve-unknown-fields": true}},
			}},
		},
	}})
}

func (s gizmoServer) apply(objects ...*unstructured.Unstructured) {
	s.Helper()
	for _, o := range objects {
		if _, err := s.Apply(o); err != nil {
			s.Fatal(err)
		}
	}
}

// restore adds an object with its resource version. After the relist, watches of the type start with a list.
func (s gizmoServer) restore(o *unstructured.Unstructured) {
	s.Helper()
	if _, err := s.Restore(o); err != nil {
		s.Fatal(err)
	}
}

func gizmo(name, version, color string) *unstructured.Unstructured {
	o := newObject("Gizmo", "web", name, map[string]any{"color": color})
	o.SetUID(types.UID("uid-" + name))
	o.SetResourceVersion(version)
	return o
}

// TestWatchListedAgain checks that a relist prints only changed objects, in every format, for queries, and
// for rows from the server.
func TestWatchListedAgain(t *testing.T) {
	for name, tt := range map[string]struct {
		args   []string
		noCRD  bool
		before []string
		after  []string
		end    string
	}{
		"diff": {
			[]string{"watch", "gizmos", "--diff"}, false,
			[]string{"EVENT NAME COLOR", "ADDED a red", "ADDED b red"},
			[]string{"MODIFIED a green", `~ .spec.color: "red" → "green"`, "ADDED ab red"}, "MODIFIED b blue",
		},
		"printed rows": {
			[]string{"watch", "gizmos"}, true,
			[]string{"EVENT NAME COLOR", "ADDED a red", "ADDED b red"},
			[]string{"MODIFIED a green", "ADDED ab red"}, "MODIFIED b blue",
		},
		"query": {
			[]string{"watch", "gizmos", "--where", "@.spec.color", "-o",
				"custom-columns=A:.metadata.name,B:.spec.color", "--no-headers"}, false,
			[]string{"a red", "b red"}, []string{"a green", "ab red"}, "b blue",
		},
		"dump": {
			[]string{"dump", "gizmos", "-w"}, false,
			[]string{"NAME COLOR", "a red", "b red"}, []string{"a green", "ab red"}, "b blue",
		},
		"dump of printed rows": {
			[]string{"dump", "gizmos", "-w"}, true,
			[]string{"NAME COLOR", "a red", "b red"}, []string{"a green", "ab red"}, "b blue",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newGizmoServer(t)
			if !tt.noCRD {
				s.applyCRD("color")
			} else if err := s.SetType(readapi.Type{
				Group: "example.com", Names: crd.Names{Plural: "gizmos", Kind: "Gizmo"}, Namespaced: true,
				Versions: []readapi.Version{{Name: "v1",
					Columns: []crd.Column{{Name: "Color", Type: "string", JSONPath: ".spec.color"}}}},
			}); err != nil {
				t.Fatal(err)
			}
			s.restore(gizmo("a", "5", "red"))
			s.restore(gizmo("b", "6", "red"))
			w := startWatch(t, append(slices.Clone(tt.args), "-n", "web", "-s", s.url)...)
			w.expect(tt.before...)
			s.restore(gizmo("a", "5", "green")) // a schema with another default
			s.restore(gizmo("ab", "7", "red"))
			got := []string{} // a relist has no defined order
			for range tt.after {
				got = append(got, w.nextOutput())
			}
			if slices.Sort(got); !slices.Equal(got, slices.Sorted(slices.Values(tt.after))) {
				t.Errorf("the watch printed %q, want %q", got, tt.after)
			}
			b := gizmo("b", "", "blue")
			s.apply(b)
			w.expect(tt.end)
			if slices.Contains(tt.args, "--diff") {
				w.expect(`~ .spec.color: "red" → "blue"`)
			}
			w.interrupt()
		})
	}
}

// TestWatchLosesItsCredentials verifies that the loss and the recovery of authentication are reported.
func TestWatchLosesItsCredentials(t *testing.T) {
	t.Setenv("KUBECONFIG", "/none")
	storage := apiserver.NewStorage(apiserver.StorageOptions{})
	handler := readapi.NewHandler(storage, readapi.HandlerOptions{})
	var revoked atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if revoked.Load() {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	defer server.Close()
	s := gizmoServer{t, storage, server.URL}
	s.applyCRD("color")
	s.apply(newObject("Gizmo", "web", "a", nil))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out, outWriter := io.Pipe()
	errOut, errWriter := io.Pipe()
	code := make(chan int, 1)
	go func() { // ended by cancel
		code <- cli.Main(ctx, []string{"crdcache", "watch", "gizmos", "-A", "-o", "name", "-s", server.URL},
			nil, outWriter, errWriter)
		outWriter.Close()
		errWriter.Close()
	}()
	lines, stderr := bufio.NewReader(out), bufio.NewReader(errOut)
	expect := func(from *bufio.Reader, want string) {
		t.Helper()
		if line, err := from.ReadString('\n'); err != nil || !strings.HasPrefix(line, want) {
			t.Fatalf("the next line = %q, %v, want %q", line, err, want)
		}
	}
	expect(lines, "gizmo.example.com/a\n")
	revoked.Store(true)
	server.CloseClientConnections()
	expect(stderr, "warning: the API server rejects the credentials, changes are not shown: ")
	s.apply(newObject("Gizmo", "web", "b", nil))
	revoked.Store(false)
	expect(stderr, "the API server accepts the credentials again\n")
	expect(lines, "gizmo.example.com/b\n")
	cancel()
	expect(stderr, "error: interrupted\n")
	if got := <-code; got != cli.ExitInterrupted {
		t.Errorf("exit code %d, want %d", got, cli.ExitInterrupted)
	}
	server.CloseClientConnections()
}

// TestWatchDiffOfSecrets verifies that the values of Secrets are redacted.
func TestWatchDiffOfSecrets(t *testing.T) {
	secrets := schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	server := apitest.New(t, apitest.Type{GVR: secrets, Kind: "Secret", Singular: "secret", Namespaced: true})
	secret := func(password string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "a", "namespace": "web"},
			"data": map[string]any{"password": password},
		}}
	}
	server.Create(t, secrets, secret("aHVudGVyMg=="))
	lines := watchGizmos(t, "secrets", "-A", "--diff", "--no-headers", "-s", server.URL)
	lines.nextOutput()
	server.Update(t, secrets, secret("Y29ycmVjdA=="))
	lines.nextOutput()
	if got := lines.nextOutput(); !strings.HasPrefix(got, `~ .data.password: "redacted-`) ||
		strings.Count(got, "redacted-") != 2 {
		t.Errorf("the difference is %q, want redacted values", got)
	}
	lines.interrupt()
}
