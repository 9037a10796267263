package cli_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

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

// TestUnansweredLists verifies that an unknown answer never looks like an empty or a complete one, for each
// verb, form of output and failure: nothing is on stdout, and the exit code is that of the failure.
func TestUnansweredLists(t *testing.T) {
	const begun = `{"kind":"GizmoList","apiVersion":"example.com/v1","metadata":{"resourceVersion":"9"},"items":[{"metadata":{"name":"a","namespace":"web"}},{"meta`
	cut := func(_ http.ResponseWriter, _ *http.Request, _ http.Handler) { panic(http.ErrAbortHandler) }
	failures := map[string]struct {
		effect testcluster.Effect
		code   int
	}{
		"forbidden":           {testcluster.Status(http.StatusForbidden, "Forbidden", "no"), cli.ExitForbidden},
		"unauthorized":        {testcluster.Status(http.StatusUnauthorized, "Unauthorized", "no"), cli.ExitForbidden},
		"not found":           {testcluster.Status(http.StatusNotFound, "NotFound", "no"), cli.ExitFailed},
		"internal error page": {answerWith(500, "text/html", "<title>no</title>", true), cli.ExitNotSynced},
		"login page":          {answerWith(200, "text/html", "<title>Log in</title>", true), cli.ExitFailed},
		"throttled":           {testcluster.Status(http.StatusTooManyRequests, "TooManyRequests", "no"), cli.ExitNotSynced},
		"no answer":           {testcluster.Hang(), cli.ExitNotSynced},
		"reset":               {cut, cli.ExitNotSynced},
		"reset in the middle": {answerWith(200, "application/json", begun, false), cli.ExitNotSynced},
		"half an answer":      {answerWith(200, "application/json", begun, true), cli.ExitFailed},
		"gone between pages": {onlyPage(false, testcluster.Status(http.StatusNotFound, "NotFound", "no")),
			cli.ExitFailed},
		"expired between pages": {onlyPage(false, testcluster.Status(http.StatusGone, "Expired", "no")), cli.ExitFailed},
		"reset between pages":   {onlyPage(false, cut), cli.ExitNotSynced},
	}
	file, before := filepath.Join(t.TempDir(), "file"), filepath.Join(t.TempDir(), "before")
	commands := []string{"query gizmos -A --count", "query gizmos -A --count -o json", "query gizmos -A --keys-only",
		"query gizmos -A --group-by .spec.color -o csv", "query gizmos -A --group-by .spec.color -o json",
		"stats gizmos -A", "stats gizmos -A -o json", "tree gizmos/g0 -n web --types gizmos", "tree gizmos/g0 -n web --types gizmos -o json",
		"snapshot save - gizmos", "snapshot save " + file + " gizmos", "snapshot diff " + before + " live gizmos",
		"snapshot diff " + before + " live gizmos -o json"}
	for _, format := range hostileFormats {
		if strings.Contains(format, " ") {
			continue
		}
		commands = append(commands, "dump gizmos -A -o "+format, "query gizmos -A -o "+format)
	}
	server := newCluster(t)
	for i := range 501 { // two pages
		server.Create(t, gizmos, newObject("Gizmo", "web", fmt.Sprint("g", i), map[string]any{"color": "red"}))
	}
	if r := crdcache(t, "snapshot", "save", before, "gizmos", "-s", server.URL); r.code != cli.ExitOK {
		t.Fatal(r.errOut)
	}
	for name, failure := range failures {
		t.Run(name, func(t *testing.T) {
			for _, path := range []string{gizmosPath, "/apis/example.com/v1/namespaces/web/gizmos"} {
				server.AddFaults(apitest.Fault{Path: path, Verb: "list", Effect: failure.effect})
			}
			defer server.Repair()
			timeout := "1m"
			if failure.code == cli.ExitNotSynced { // also if discovery is slow
				timeout = "200ms"
			}
			for _, command := range commands {
				r := crdcache(t, append(strings.Fields(command), "-s", server.URL, "--timeout", timeout)...)
				checkUnanswered(t, command, r, failure.code)
			}
		})
	}
}

func checkUnanswered(t *testing.T, command string, r result, code int) {
	t.Helper()
	isTree, isDiff := strings.HasPrefix(command, "tree"), strings.HasPrefix(command, "snapshot diff")
	switch {
	case isDiff && code == cli.ExitFailed:
		code = cli.ExitUsage // 1 means differences
	case r.code == cli.ExitOK: // the list has no pages
		if !isTree && !strings.Contains(r.out, "501") && strings.Count(r.out, "\n") < 501 {
			t.Errorf("%s: exit code 0 without all objects; stdout:\n%.300s\nstderr:\n%s", command, r.out, r.errOut)
		}
		return
	}
	isValid := r.out == ""
	if isTree { // the named object was read
		isValid = strings.Contains(r.out, "g0") && !strings.Contains(r.out, "g1")
		if strings.HasSuffix(command, "json") {
			isValid = isValid && json.Valid([]byte(r.out)) && strings.Contains(r.out, `"notRead"`)
		}
	}
	if r.code != code || !isValid || !strings.Contains(r.errOut, "error: ") ||
		strings.Contains(r.errOut, "No resources found") {
		t.Errorf("%s: exit code %d, want %d; stdout:\n%.300s\nstderr:\n%.600s", command, r.code, code, r.out, r.errOut)
	}
}
