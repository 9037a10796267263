package cli_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/cli"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

type runningWatch struct {
	t      *testing.T
	lines  chan string
	stop   context.CancelFunc
	code   chan int
	errOut *bytes.Buffer // complete after a value was received from code
}

func watchGizmos(t *testing.T, args ...string) *runningWatch {
	t.Helper()
	return startWatch(t, append([]string{"watch"}, args...)...)
}

// startWatch runs a command line in the background.
func startWatch(t *testing.T, args ...string) *runningWatch {
	t.Helper()
	t.Setenv("KUBECONFIG", "/none")
	t.Setenv("LC_ALL", "C.UTF-8")
	ctx, stop := context.WithCancel(t.Context())
	reader, writer := io.Pipe()
	w := &runningWatch{t: t, lines: make(chan string, 100), stop: stop, code: make(chan int, 1),
		errOut: &bytes.Buffer{}}
	go func() { // ended by stop
		code := cli.Main(ctx, append([]string{"crdcache"}, args...), strings.NewReader(""), writer, w.errOut)
		writer.Close()
		w.code <- code
	}()
	go func() { // ended by the end of the command
		defer close(w.lines)
		scanner := bufio.NewScanner(reader)
		for scanner.Scan() {
			w.lines <- scanner.Text()
		}
	}()
	return w
}

// nextOutput waits for a line and joins runs of spaces.
func (w *runningWatch) nextOutput() string {
	w.t.Helper()
	return strings.Join(strings.Fields(w.nextLine()), " ")
}

func (w *runningWatch) nextLine() string {
	w.t.Helper()
	select {
	case line, ok := <-w.lines:
		if !ok {
			w.t.Fatalf("the output ended early; stderr: %s", w.errOut)
		}
		return line
	case <-time.After(5 * time.Minute):
		w.stop()
		code := <-w.code
		w.t.Fatalf("timeout before a line; exit code %d, stderr: %s", code, w.errOut)
	}
	return ""
}

// expect waits for lines, ignoring the number of spaces.
func (w *runningWatch) expect(want ...string) {
	w.t.Helper()
	for _, line := range want {
		if got := w.nextOutput(); got != line {
			w.t.Errorf("the watch printed %q, want %q", got, line)
		}
	}
}

// interrupt sends an interrupt and checks the exit code.
func (w *runningWatch) interrupt() {
	w.t.Helper()
	w.stop()
	select {
	case code := <-w.code:
		if code != cli.ExitInterrupted {
			w.t.Errorf("exit code %d, want %d; stderr %s", code, cli.ExitInterrupted, w.errOut)
		}
	case <-time.After(5 * time.Minute):
		w.t.Fatal("timed out waiting for the command to end")
	}
	for line := range w.lines {
		w.t.Errorf("the watch printed %q after the last wanted line", line)
	}
}

// TestWatchQuery verifies that changes are printed relative to the query.
func TestWatchQuery(t *testing.T) {
	server := newIndexedServer(t)
	config := writeTempFile(t, "c.yaml", gizmoIndexes)
	w := watchGizmos(t, "things", "-A", "--config", config, "--index", "color=red", "-o",
		"custom-columns=NAME:.metadata.name,COLOR:.spec.color", "-s", server.URL)
	w.expect("NAME COLOR", "c red", "a red")
	update(t, server, newObject("Gizmo", "web", "b", map[string]any{"color": "red"}))
	w.expect("b red")
	w.interrupt()

	w = watchGizmos(t, "gz", "-n", "db", "--where", "@.spec.color==\"red\"", "-o", "json", "-s", server.URL)
	paint := func(color string) func() {
		return func() { update(t, server, newObject("Gizmo", "db", "c", map[string]any{"color": color})) }
	}
	for _, step := range []struct {
		want string
		then func()
	}{
		{"ADDED c false", paint("blue")},
		{"DELETED c true", paint("red")},
		{"ADDED c false", func() { server.Delete(t, gizmos, "db", "c") }},
		{"DELETED c false", func() {}},
	} {
		var event struct {
			Type   string
			Object metav1.PartialObjectMetadata
			Exists bool
		}
		line := w.nextOutput()
		must(t, json.Unmarshal([]byte(line), &event))
		if got := fmt.Sprint(event.Type, " ", event.Object.Name, " ", event.Exists); got != step.want {
			t.Errorf("the watch printed %q in %s, want %q", got, line, step.want)
		}
		step.then()
	}
	w.interrupt()
}

// TestWatchQueryDiff verifies that --diff prints the changes because of which an object begins or ceases to
// match a query.
func TestWatchQueryDiff(t *testing.T) {
	server := newIndexedServer(t)
	w := watchGizmos(t, "gz", "-n", "db", "--where", "@.spec.size > 50", "--diff", "-s", server.URL)
	resize := func(name string, size int) {
		update(t, server, newObject("Gizmo", "db", name, map[string]any{"size": int64(size)}))
	}
	w.expect("EVENT NAME COLOR", "ADDED c red")
	resize("d", 60)
	w.expect("ADDED d", "~ .spec.size: 1 → 60")
	resize("d", 70)
	w.expect("MODIFIED d", "~ .spec.size: 60 → 70")
	resize("d", 2)
	w.expect("DELETED d", "still exists, but left the query:", "~ .spec.size: 70 → 2")
	resize("d", 3)
	server.Delete(t, gizmos, "db", "c")
	w.expect("DELETED c red")
	w.interrupt()
}

func update(t *testing.T, server *apitest.Server, obj *unstructured.Unstructured) {
	t.Helper()
	client := server.Client(t).Resource(gizmos).Namespace(obj.GetNamespace())
	now, err := client.Get(t.Context(), obj.GetName(), metav1.GetOptions{})
	must(t, err)
	now.Object["spec"] = obj.Object["spec"]
	if managers := obj.GetManagedFields(); managers != nil {
		now.SetManagedFields(managers)
	}
	if _, err := client.Update(t.Context(), now, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}
