package cli_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/cli"
	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/internal/apiserver"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
	"github.com/crdcache/crdcache/serving/readapi"
)

const gizmoCRD = `{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "gizmos.example.com"},
	"spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "gizmos", "singular": "gizmo", "kind": "Gizmo", "listKind": "GizmoList"},
	"versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
	"additionalPrinterColumns": [{"name": "Color", "type": "string", "jsonPath": ".spec.color"}, {"name": "Size", "type": "integer", "jsonPath": ".spec.size", "priority": 1}]}]}}`

// pagedServer serves many gizmos, and widgets without a CRD. It delays the next pages of lists.
type pagedServer struct {
	*httptest.Server
	storage *apiserver.Storage
	// pendingPages receives each continued list. The server responds when the test closes the channel.
	pendingPages chan *pageRequest
}

type pageRequest struct {
	request  *http.Request
	answered chan struct{}
}

// pagedObjectCount is the number of objects per type, which are three pages.
const pagedObjectCount = 1200

func newPagedServer(t *testing.T) *pagedServer {
	t.Helper()
	s := &pagedServer{storage: apiserver.NewStorage(apiserver.StorageOptions{}),
		pendingPages: make(chan *pageRequest)}
	s.apply(t, gizmoCRD)
	widgets := readapi.Type{Group: "demo", Names: crd.Names{Plural: "widgets", Kind: "Widget"},
		Namespaced: true, Versions: []readapi.Version{{Name: "v1"}}}
	must(t, s.storage.SetType(widgets))
	for i := range pagedObjectCount {
		s.applyGizmo(t, i, "red")
		s.apply(
			t, fmt.Sprintf(`{"apiVersion": "demo/v1", "kind": "Widget", "metadata": {"namespace": "web", "name": "w%04d", "creationTimestamp": "2001-01-01T00:00:00Z"}}`, i))
	}
	handler := readapi.NewHandler(s.storage, readapi.HandlerOptions{})
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("continue") != "" {
			page := &pageRequest{r, make(chan struct{})}
			select {
			case s.pendingPages <- page:
			case <-r.Context().Done():
				return
			}
			select {
			case <-page.answered:
			case <-r.Context().Done():
				return
			}
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

func (s *pagedServer) apply(t *testing.T, text string) {
	t.Helper()
	must(t, apitest.ApplyJSON(s.storage, []byte(text)))
}

func (s *pagedServer) applyGizmo(t *testing.T, i int, color string) {
	t.Helper()
	s.apply(
		t, fmt.Sprintf(`{"apiVersion": "example.com/v1", "kind": "Gizmo", "metadata": {"namespace": "web", "name": "g%04d", "creationTimestamp": "2001-01-01T00:00:00Z"}, "spec": {"color": "%s", "size": 3}}`, i, color))
}

// answerPages answers pending pages until the test ends.
func (s *pagedServer) answerPages(t *testing.T) {
	go func() { // ends with the test
		for {
			select {
			case page := <-s.pendingPages:
				close(page.answered)
			case <-t.Context().Done():
				return
			}
		}
	}()
}

type pipedCommand struct {
	out    *os.File
	reader *bufio.Reader
	errOut bytes.Buffer
	code   chan int
}

func startPiped(t *testing.T, args ...string) *pipedCommand {
	t.Helper()
	hideSettings(t)
	reader, writer, err := os.Pipe()
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	p := &pipedCommand{out: reader, reader: bufio.NewReader(reader), code: make(chan int, 1)}
	go func() { // ends with the command, which ends with ctx
		p.code <- cli.Main(ctx, append([]string{"crdcache"}, args...), strings.NewReader(""),
			writer, &p.errOut)
		_ = writer.Close()
	}()
	t.Cleanup(func() {
		cancel()
		_ = reader.Close()
	})
	return p
}

func (p *pipedCommand) readRest(t *testing.T) string {
	t.Helper()
	text, err := io.ReadAll(p.reader)
	must(t, err)
	return string(text)
}

// TestQueryIsTheSameInPipe checks that the order of a query's result does not depend on the output.
func TestQueryIsTheSameInPipe(t *testing.T) {
	server := newPagedServer(t)
	server.answerPages(t)
	for i := 0; i < pagedObjectCount; i += 3 {
		server.applyGizmo(t, i, "blue")
	}
	// This object is the first in the server's order and the last by namespace and name.
	server.apply(
		t, `{"apiVersion": "example.com/v1", "kind": "Gizmo", "metadata": {"namespace": "web-2", "name": "a"}, "spec": {"color": "blue"}}`)
	config := writeTempFile(t, "c.yaml", gizmoIndexes+`---
apiVersion: crdcache.dev/v1beta1
kind: IndexConfig
metadata: {name: limited}
spec:
  defaults: {index: {maxValueBytes: 3}}
  resources:
  - name: limited
    match: {group: example.com, version: v1, resource: gizmos}
    indexes: [{name: first, path: .spec.color}]
`)
	tests := map[string][]string{
		"path":      {"gizmos", "--where", `@.spec.color == "blue"`},
		"index":     {"gizmos", "--index", "color=blue", "--config", config},
		"all":       {"widgets"},
		"printed":   {"widgets", "--where", `@.metadata.name != "w0005"`},
		"doubtful":  {"gizmos", "--index", "!(first=blue)", "--config", config, "-o", "name"},
		"nothing":   {"gizmos", "--where", "@.spec.none"},
		"namespace": {"gizmos", "-n", "web", "--where", `@.spec.color == "blue"`, "-o", "jsonl"},
	}
	for name, args := range tests {
		t.Run(name, func(t *testing.T) {
			args := append([]string{"query", "-s", server.URL}, args...)
			if !slices.Contains(args, "-n") {
				args = append(args, "-A")
			}
			p := startPiped(t, args...)
			got := p.readRest(t)
			want := crdcache(t, args...)
			if code := <-p.code; code != cli.ExitOK || p.errOut.String() != want.errOut || got != want.out {
				t.Errorf("exit code %d, %d lines, want %d\n%.300s\nwant\n%.300s\nstderr:\n%s\nwant\n%s", code,
					strings.Count(got, "\n"), strings.Count(want.out, "\n"),
					got, want.out, p.errOut.String(), want.errOut)
			}
			if name == "path" && !strings.HasPrefix(lastLine(got), "web-2") {
				t.Errorf("the last line is %q, want web-2", lastLine(got))
			}
		})
	}
}

func lastLine(text string) string {
	text = strings.TrimSuffix(text, "\n")
	return text[strings.LastIndexByte(text, '\n')+1:]
}
