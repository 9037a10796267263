package cli_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/cli"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
	"github.com/crdcache/crdcache/test/testcluster"
)

// onlyPage applies an effect to the first page of a list, or to the others.
func onlyPage(isFirst bool, effect testcluster.Effect) testcluster.Effect {
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if (r.URL.Query().Get("continue") == "") == isFirst {
			effect(w, r, next)
			return
		}
		next.ServeHTTP(w, r)
	}
}

// answerWith answers with a body and aborts the connection if it is not complete.
func answerWith(status int, mediaType, body string, complete bool) testcluster.Effect {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.Header().Set("Content-Type", mediaType)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body) // the client may have disconnected
		if !complete {
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}
	}
}

type unanswered struct {
	effect testcluster.Effect
	code   int
	want   string // on stderr
}

// TestUnansweredLists verifies that an unknown answer never looks like an empty or a complete one, for each
// verb, form of output and failure: nothing is on stdout, and the exit code is that of the failure.
func TestUnansweredLists(t *testing.T) {
	const begun = `{"kind":"GizmoList","apiVersion":"example.com/v1","metadata":{"resourceVersion":"9"},"items":[{"metadata":{"name":"a","namespace":"web"}},{"meta`
	cut := func(_ http.ResponseWriter, _ *http.Request, _ http.Handler) { panic(http.ErrAbortHandler) }
	status := func(code int, reason string) testcluster.Effect {
		return testcluster.Status(code, metav1.StatusReason(reason), "no list")
	}
	failures := map[string]unanswered{
		"forbidden":    {status(http.StatusForbidden, "Forbidden"), cli.ExitForbidden, "no list"},
		"unauthorized": {status(http.StatusUnauthorized, "Unauthorized"), cli.ExitForbidden, "no list"},
		"not found":    {status(http.StatusNotFound, "NotFound"), cli.ExitFailed, "no list"},
		"bad request":  {status(http.StatusBadRequest, "BadRequest"), cli.ExitFailed, "no list"},
		"error page": {answerWith(502, "text/html", "<title>Out of order</title><h1>long</h1>", true), cli.ExitNotSynced,
			"502 Bad Gateway: Out of order"},
		"login page": {answerWith(200, "text/html", "<title>Log in</title>", true), cli.ExitFailed, ""},
		"throttled by a proxy": {answerWith(429, "text/plain", "slowly", true), cli.ExitNotSynced,
			"answers 429 Too Many Requests"},
		"no answer": {testcluster.Hang(), cli.ExitNotSynced, ""},
		"reset":     {cut, cli.ExitNotSynced, "warning: retrying: "},
		"reset in the middle": {answerWith(200, "application/json", begun, false), cli.ExitNotSynced,
			"warning: retrying: "},
		"gone between pages":    {onlyPage(false, status(http.StatusNotFound, "NotFound")), cli.ExitFailed, ""},
		"expired between pages": {onlyPage(false, status(http.StatusGone, "Expired")), cli.ExitFailed, ""},
		"reset between pages":   {onlyPage(false, cut), cli.ExitNotSynced, ""},
	}
	for _, body := range []string{begun, `{}`, `[]`, `"text"`, ``,
		`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"no","reason":"NotFound","code":404}`,
		`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success"}`,
		`{"kind":"Gizmo","apiVersion":"example.com/v1","metadata":{"name":"other","namespace":"web"}}`} {
		failures[body] = unanswered{answerWith(200, "application/json", body, true), cli.ExitFailed, ""}
	}
	file, before := filepath.Join(t.TempDir(), "file"), filepath.Join(t.TempDir(), "before")
	commands := []string{"query gizmos -A --count", "query gizmos -A --count -o json", "query gizmos -A --keys-only",
		"query gizmos -A --group-by .spec.color -o csv", "query gizmos -A --group-by .spec.color -o json",
		"dump gizmos/g1 -n web", "dump gizmos/g1 -n web -o json", "stats gizmos -A", "stats gizmos -A -o json",
		"tree gizmos/g0 -n web --types gizmos", "tree gizmos/g0 -n web --types gizmos -o json",
		"snapshot save - gizmos", "snapshot save " + file + " gizmos", "diff " + before + " live gizmos",
		"diff " + before + " live gizmos -o json"}
	for _, format := range hostileFormats {
		if !strings.Contains(format, " ") {
			commands = append(commands, "dump gizmos -A -o "+format, "query gizmos -A -o "+format)
		}
	}
	server := newCluster(t)
	for i := range 501 { // two pages
		server.Create(t, gizmos, newObject("Gizmo", "web", fmt.Sprint("g", i), map[string]any{"color": "red"}))
	}
	if r := crdcache(t, "snapshot", "save", before, "gizmos", "-s", server.URL); r.code != cli.ExitOK {
		t.Fatal(r.errOut)
	}
	hideSettings(t)
	first := 0 // with -short, each failure meets every third command
	for name, failure := range failures {
		first++
		t.Run(name, func(t *testing.T) {
			for _, path := range []string{gizmosPath, "/apis/example.com/v1/namespaces/web/gizmos",
				"/apis/example.com/v1/namespaces/web/gizmos/g1"} {
				server.AddFaults(apitest.Fault{Path: path, Effect: failure.effect})
			}
			defer server.Repair()
			timeout := "1m"
			if failure.code == cli.ExitNotSynced { // also if discovery is slow
				timeout = "200ms"
			}
			var running sync.WaitGroup
			var told atomic.Bool
			slots := make(chan struct{}, 6)
			for i, command := range commands {
				if testing.Short() && (i+first)%3 > 0 {
					continue
				}
				slots <- struct{}{}
				running.Go(func() {
					defer func() { <-slots }()
					r := runMain(t, append(strings.Fields(command), "-s", server.URL, "--timeout", timeout)...)
					checkUnanswered(t, command, r, failure, &told)
				})
			}
			running.Wait()
			if !told.Load() {
				t.Errorf("no command says %q", failure.want)
			}
		})
	}
}

var slowServer = regexp.MustCompile("did not complete discovery|Pending: not started|did not answer within|deadline exceeded")

func checkUnanswered(t *testing.T, command string, r result, failure unanswered, told *atomic.Bool) {
	t.Helper()
	code, isTree, isNamed := failure.code, strings.HasPrefix(command, "tree"), strings.Contains(command, "/g1")
	switch {
	case strings.HasPrefix(command, "diff") && code == cli.ExitFailed:
		code = cli.ExitUsage // 1 means differences
	case r.code == cli.ExitOK: // the list has no pages
		if !isTree && !isNamed && !strings.Contains(r.out, "501") && strings.Count(r.out, "\n") < 501 {
			t.Errorf("%s: exit code 0 without all objects; stdout:\n%.300s\nstderr:\n%s", command, r.out, r.errOut)
		}
		return
	}
	isJSON := json.Valid([]byte(r.out)) && strings.Contains(r.out, `"notRead"`)
	isValid := r.out == "" || isTree && strings.Contains(r.out, "g0") && !strings.Contains(r.out, "g1") &&
		isJSON == strings.HasSuffix(command, "json")
	isTold := isTree || strings.Contains(r.errOut, failure.want)
	if isTold {
		told.Store(true)
	}
	// The server may be too slow for the short timeout.
	isTold = isTold || code == cli.ExitNotSynced && slowServer.MatchString(r.errOut)
	if r.code != code || !isValid || !isTold || !strings.Contains(r.errOut, "error: ") ||
		strings.Contains(r.errOut, "No resources found") {
		t.Errorf("%s: exit code %d, want %d; stdout:\n%.300s\nstderr:\n%.600s", command, r.code, code, r.out, r.errOut)
	}
}
