package cli_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"unicode"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/cli"
	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/internal/apiserver"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
	"github.com/crdcache/crdcache/serving/readapi"
	"github.com/crdcache/crdcache/test/testcluster"
)

// TestResourcesOfNoServer verifies that resources reports a discovery error immediately, regardless of
// --timeout, with the exit code of the cause.
func TestResourcesOfNoServer(t *testing.T) {
	server := newCluster(t)
	server.AddFaults(apitest.Fault{Path: "/api", Status: http.StatusUnauthorized},
		apitest.Fault{Path: "/apis", Status: http.StatusUnauthorized})
	dead := newCluster(t)
	dead.Close()
	tests := map[string]struct {
		args []string
		code int
		want string
	}{
		"dead": {[]string{"-s", dead.URL}, cli.ExitFailed,
			"error: cannot reach the API server at " + dead.URL},
		"no kubeconfig": {[]string{"--kubeconfig", "/dev/null", "-s", "http://localhost:1"},
			cli.ExitFailed, "error: cannot reach the API server at http://localhost:1"},
		"unknown credentials": {[]string{"-s", server.URL}, cli.ExitForbidden, "error: the API server at " +
			server.URL + " does not accept the credentials"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			// without a timeout
			r := crdcache(t, append([]string{"resources", "--timeout", "0"}, tt.args...)...)
			if r.code != tt.code || r.out != "" || !strings.HasPrefix(r.errOut, tt.want) ||
				strings.Count(r.errOut, "\n") != 1 {
				t.Errorf("exit code %d, want %d; stdout %q, stderr %q", r.code, tt.code, r.out, r.errOut)
			}
		})
	}
}

const (
	podsPath     = "/api/v1/pods"
	deniedFormat = `pods is forbidden: User "eve" cannot %s resource "pods" in API group "" at the cluster scope`
)

// TestWatchRefusedList verifies that the server's error for a denied list of tables is printed.
func TestWatchRefusedList(t *testing.T) {
	server := newPodServer(t)
	message := strings.Replace(deniedFormat, "%s", "list", 1)
	server.AddFaults(apitest.Fault{Path: podsPath, Status: http.StatusForbidden, Message: message})
	r := crdcache(t, "watch", "pods", "-A", "-s", server.URL)
	if r.code != cli.ExitForbidden || !strings.Contains(r.errOut, message) ||
		strings.Contains(r.errOut, "meta.k8s.io") {
		t.Errorf("exit code %d, want %d; stderr:\n%s", r.code, cli.ExitForbidden, r.errOut)
	}
}

// TestWatchRefusedWatch verifies that the command ends if the server refuses to watch its only type.
func TestWatchRefusedWatch(t *testing.T) {
	for _, args := range [][]string{{"watch", "gizmos"}, {"dump", "-w", "gizmos"},
		{"watch", "gizmos", "-o", "json"}} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			server := newCluster(t)
			server.Create(t, gizmos, newObject("Gizmo", "web", "a", nil))
			for _, verb := range []string{"watch", "watch-list"} {
				server.AddFaults(apitest.Fault{Path: gizmosPath, Verb: verb, Status: http.StatusForbidden,
					Message: "gizmos.example.com is forbidden: eve cannot watch"})
			}
			r := crdcache(t, append(args, "-A", "-s", server.URL)...)
			if r.code != cli.ExitForbidden || !strings.Contains(r.out, "web") ||
				!strings.Contains(r.errOut,
					"error: gizmos.example.com can be listed but not watched, so changes cannot be shown; use dump to print the objects: gizmos.example.com is forbidden: eve cannot watch\n") {
				t.Errorf("exit code %d, want %d; stdout:\n%s\nstderr:\n%s", r.code, cli.ExitForbidden, r.out,
					r.errOut)
			}
		})
	}
}

// TestWatchRefusedWatchOfOne verifies that if the server refuses to watch one of several types, the command
// warns and watches the other types.
func TestWatchRefusedWatchOfOne(t *testing.T) {
	server := newCluster(t)
	server.Create(t, zones, newObject("Zone", "", "z", nil))
	for _, verb := range []string{"watch", "watch-list"} {
		server.AddFaults(apitest.Fault{Path: gizmosPath, Verb: verb, Status: http.StatusForbidden,
			Message: "eve cannot watch"})
	}
	ctx, cancel := context.WithCancel(t.Context())
	warned := make(chan struct{})
	stderr := &signalingWriter{text: "warning: gizmos.example.com can be listed but not watched",
		textWritten: warned}
	code := make(chan int)
	t.Setenv("KUBECONFIG", "/none")
	go func() { // ends with cancel
		code <- cli.Main(ctx, []string{"crdcache", "watch", "gizmos,zones", "-A", "-s", server.URL}, nil,
			io.Discard, stderr)
	}()
	<-warned
	cancel()
	if got := <-code; got != cli.ExitInterrupted {
		t.Errorf("exit code %d, want %d", got, cli.ExitInterrupted)
	}
}

// newPodServer returns a server with a type without a CRD.
func newPodServer(t *testing.T) *apitest.Server {
	t.Helper()
	return apitest.New(t, apitest.Type{GVR: schema.GroupVersionResource{Version: "v1", Resource: "pods"},
		Kind: "Pod", Singular: "pod", Namespaced: true})
}

// signalingWriter is a writer that signals when a text was written.
type signalingWriter struct {
	text        string
	textWritten chan struct{}

	mu      sync.Mutex
	written strings.Builder
}

func (n *signalingWriter) Write(p []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.written.Write(p)
	if n.textWritten != nil && strings.Contains(n.written.String(), n.text) {
		close(n.textWritten)
		n.textWritten = nil
	}
	return len(p), nil
}

// TestResourcesReportWhyTheyWait verifies that after a timeout, the server's last error is printed.
func TestResourcesReportWhyTheyWait(t *testing.T) {
	server := newCluster(t)
	server.AddFaults(apitest.Fault{Path: "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
		Status: http.StatusInternalServerError, Message: "etcd is gone"})
	r := crdcache(t, "resources", "-s", server.URL, "--timeout", "2s")
	if r.code != cli.ExitNotSynced || !strings.Contains(r.errOut, "within 2s") ||
		!strings.Contains(r.errOut, "etcd is gone") {
		t.Errorf("exit code %d, want %d; stderr %q", r.code, cli.ExitNotSynced, r.errOut)
	}
}

// renderScreen returns the lines that a terminal with a number of columns shows after output, without
// trailing spaces. It supports control sequences that return to the start of a line, erase the rest of it,
// and change colors, which it drops. Any other control sequence is an error.
func renderScreen(output string, columns int) ([]string, error) {
	lines := [][]rune{{}}
	column := 0
	runes := []rune(output)
	for i := 0; i < len(runes); i++ {
		line := &lines[len(lines)-1]
		switch r := runes[i]; {
		case r == '\n':
			lines, column = append(lines, []rune{}), 0
		case r == '\r':
			column = 0
		case r == '\x1b':
			length, isKnown := parseEscapeSequence(runes[i:])
			if !isKnown {
				return nil, fmt.Errorf("a control sequence: %q", string(runes[i:min(i+20, len(runes))]))
			}
			if runes[i+length-1] == 'K' {
				*line = (*line)[:min(column, len(*line))]
			}
			i += length - 1
		case unicode.IsControl(r) && r != '\t':
			return nil, fmt.Errorf("a control character: %q", r)
		default:
			if column == columns {
				lines, column = append(lines, []rune{}), 0
				line = &lines[len(lines)-1]
			}
			*line = append((*line)[:min(column, len(*line))],
				append([]rune{r}, (*line)[min(column+1, len(*line)):]...)...)
			column++
		}
	}
	shown := make([]string, len(lines))
	for i, line := range lines {
		shown[i] = strings.TrimRight(string(line), " ")
	}
	return shown, nil
}

// parseEscapeSequence parses "ESC [ numbers letter".
func parseEscapeSequence(runes []rune) (length int, isKnown bool) {
	if len(runes) < 3 || runes[1] != '[' {
		return 0, false
	}
	for i, r := range runes[2:] {
		switch {
		case r == 'K', r == 'm':
			return i + 3, true
		case r != ';' && (r < '0' || r > '9'):
			return 0, false
		}
	}
	return 0, false
}

// hostileText has 7-bit and 8-bit escape sequences, line breaks, bidirectional controls, and characters of
// width 0 and 2.
const hostileText = "e\x1b[2J\x1b]0;title\x07\u009b31m\r\nv\ti\u202el\u2066\u2028\u200b\u0301\x7f\b\x00世界👩‍👩‍👧"

// hostileObjects returns gizmos in JSON, all of which can be decoded.
func hostileObjects() map[string]string {
	gizmo := func(name, more string) string {
		return `{"apiVersion":"example.com/v1","kind":"Gizmo","metadata":{"name":` + name +
			`,"namespace":"web","resourceVersion":"1","uid":"u"}` + more + `}`
	}
	quoted := func(text string) string {
		q, err := json.Marshal(text)
		if err != nil {
			panic(err)
		}
		return string(q)
	}
	var keys strings.Builder
	for i := range 30_000 {
		fmt.Fprintf(&keys, `,"k%d":%d`, i, i)
	}
	nested := func(levels int) string {
		return strings.Repeat(`{"a":`, levels) + "1" +
			strings.Repeat("}", levels)
	}
	color := func(value string) string { return `,"spec":{"color":` + value + `}` }
	return map[string]string{
		"text": `{"apiVersion":"example.com/v1","kind":"Gizmo","metadata":{"name":` + quoted(hostileText) +
			`,"namespace":` + quoted(hostileText) +
			`,"resourceVersion":"1","uid":"u","labels":{` + quoted(hostileText) + ":" + quoted(hostileText) +
			`},"annotations":{` + quoted(hostileText) + ":" + quoted(hostileText) + `}}` +
			`,"spec":{"color":` + quoted(hostileText) + `,` + quoted(hostileText) + `:{` + quoted(hostileText) + `:1}}}`,
		"kind": `{"apiVersion":` + quoted("example.com/v1"+hostileText) + `,"kind":` + quoted(hostileText) +
			`,"metadata":{"name":"a","namespace":"web","resourceVersion":"1","uid":"u"}}`,
		"long name":  gizmo(`"`+strings.Repeat("n", 1_000_000)+`"`, ""),
		"long value": gizmo(`"a"`, color(`"`+strings.Repeat("v", 1_000_000)+`"`)),
		"many keys":  gizmo(`"a"`, `,"spec":{"color":1`+keys.String()+`}`),
		"nested":     gizmo(`"a"`, color(nested(500))),
		"numbers": gizmo(`"a"`,
			`,"spec":{"color":-0,"size":9223372036854775808,"c":18446744073709551616,"d":1e-999,"e":0.1e1,"f":`+strings.Repeat("1", 300)+`}`),
		"other types":    gizmo(`"a"`, color(`{"x":[1,{"y":null}]}`)),
		"twice":          gizmo(`"a"`, `,"spec":{"color":"a","color":"b"},"kind":"Gizmo"`),
		"surrogates":     gizmo(`"a\ud800b"`, color(`"\udfff\ud800"`)),
		"no characters":  gizmo("\"a\xff\"", color("\"\xc3\x28\xed\xa0\x80\"")),
		"wrong metadata": `{"apiVersion":"example.com/v1","kind":"Gizmo","metadata":{"name":"a","namespace":"web","resourceVersion":"1","labels":"no","annotations":[1],"creationTimestamp":"never","managedFields":{"a":1},"ownerReferences":7}}`,
	}
}

func invalidObjects() map[string]string {
	gizmo := func(spec string) string {
		return `{"apiVersion":"example.com/v1","kind":"Gizmo","metadata":{"name":"a","namespace":"web","resourceVersion":"1","uid":"u"},"spec":` + spec + `}`
	}
	return map[string]string{
		"very nested": gizmo(strings.Repeat("[", 1_000_000) + strings.Repeat("]", 1_000_000)),
		"too nested":  gizmo(strings.Repeat(`{"a":`, 10_000) + "1" + strings.Repeat("}", 10_000)),
		"infinite":    gizmo("1e999"),
		"digits":      gizmo(strings.Repeat("1", 10_000)),
		"never ends":  gizmo(strings.Repeat("[", 100_000)),
		"no object":   "[1]",
	}
}

// newHostileServer serves objects byte for byte as gizmos, in lists and events. The type has columns.
func newHostileServer(t testing.TB, supportsWatchList bool, objects ...string) string {
	t.Helper()
	storage := apiserver.NewStorage(apiserver.StorageOptions{})
	gizmo := readapi.Type{
		Group: "example.com", Names: crd.Names{Plural: "gizmos", Kind: "Gizmo"}, Namespaced: true,
		Versions: []readapi.Version{{Name: "v1", Columns: []crd.Column{
			{Name: "Color", Type: "string", JSONPath: ".spec.color"}, {Name: "Size", Type: "integer",
				JSONPath: ".spec.size"},
		}}},
	}
	must(t, storage.SetType(gizmo))
	injector := testcluster.NewInjector(readapi.NewHandler(storage, readapi.HandlerOptions{}))
	injector.Add(testcluster.Fault{
		Match: testcluster.Match{Path: gizmosPath},
		Effect: func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
			w.Header().Set("Content-Type", "application/json")
			switch {
			case r.URL.Query().Get("watch") == "":
				fmt.Fprintf(w,
					`{"apiVersion":"example.com/v1","kind":"GizmoList","metadata":{"resourceVersion":"1"},"items":[%s]}`, strings.Join(objects, ","))
				return
			case r.URL.Query().Get("sendInitialEvents") != "" && !supportsWatchList:
				w.WriteHeader(http.StatusUnprocessableEntity)
				fmt.Fprint(
					w, `{"apiVersion":"v1","kind":"Status","status":"Failure","code":422,"reason":"Invalid","details":{"causes":[{"reason":"FieldValueForbidden","message":"sendInitialEvents is forbidden","field":"sendInitialEvents"}]}}`)
				return
			case r.URL.Query().Get("sendInitialEvents") != "":
				for _, object := range objects {
					fmt.Fprintf(w, `{"type":"ADDED","object":%s}`+"\n", object)
				}
				fmt.Fprint(
					w, `{"type":"BOOKMARK","object":{"apiVersion":"example.com/v1","kind":"Gizmo","metadata":{"resourceVersion":"1","annotations":{"k8s.io/initial-events-end":"true"}}}}`+"\n")
			}
			if err := http.NewResponseController(w).Flush(); err == nil {
				<-r.Context().Done()
			}
		},
	})
	server := httptest.NewServer(injector)
	t.Cleanup(server.Close)
	return server.URL
}

var hostileFormats = []string{
	"table", "wide", "name", "json", "yaml", "kyaml", "jsonl", "csv",
	"custom-columns=N:.metadata.name,C:.spec.color,L:.metadata.labels", "jsonpath={.items[*]}",
	"jsonpath-as-json={.items[*].spec}",
	"go-template={{range .items}}{{.metadata.name}} {{.spec}}{{\"\\n\"}}{{end}}",
}
