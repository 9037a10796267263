package cli_test

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdcache/crdcache/internal/apitest"
	"github.com/crdcache/crdcache/internal/cli"
	"github.com/crdcache/crdcache/internal/cli/exit"
)

// watching is a command that runs until it is told to end.
type watching struct {
	t      *testing.T
	lines  chan string
	stop   context.CancelFunc
	code   chan int
	errOut *bytes.Buffer // to be read once code came
}

// watchGizmos runs a command line in the background.
func watchGizmos(t *testing.T, args ...string) *watching {
	t.Helper()
	t.Setenv("KUBECONFIG", "/none")
	t.Setenv("LC_ALL", "C.UTF-8")
	ctx, stop := context.WithCancel(t.Context())
	reader, writer := io.Pipe()
	w := &watching{t: t, lines: make(chan string, 100), stop: stop, code: make(chan int, 1), errOut: &bytes.Buffer{}}
	go func() { // ended by stop
		code := cli.Main(ctx, append([]string{"crdcache", "watch"}, args...), strings.NewReader(""), writer, w.errOut)
		writer.Close()
		w.code <- code
	}()
	go func() { // ended by the end of the command
		defer close(w.lines)
		scanner := bufio.NewScanner(reader)
		for scanner.Scan() {
			w.lines <- strings.Join(strings.Fields(scanner.Text()), " ")
		}
	}()
	return w
}

// next waits for a line, in which runs of spaces are one.
func (w *watching) next() string {
	w.t.Helper()
	select {
	case line, ok := <-w.lines:
		if !ok {
			w.t.Fatalf("the output ended; stderr: %s", w.errOut)
		}
		return line
	case <-time.After(time.Minute):
		w.t.Fatal("no line came")
	}
	return ""
}

// expect waits for these lines.
func (w *watching) expect(want ...string) {
	w.t.Helper()
	for _, line := range want {
		if got := w.next(); got != line {
			w.t.Errorf("got line %q, want %q", got, line)
		}
	}
}

// interrupt ends the command and checks how it ended.
func (w *watching) interrupt() {
	w.t.Helper()
	w.stop()
	select {
	case code := <-w.code:
		if code != exit.Interrupted {
			w.t.Errorf("exit code %d, stderr %s", code, w.errOut)
		}
	case <-time.After(time.Minute):
		w.t.Fatal("the command does not end")
	}
	for line := range w.lines {
		w.t.Errorf("got line %q, want no more", line)
	}
}

// TestWatch: what is there comes first, then each change with what differs.
func TestWatch(t *testing.T) {
	server := newShop(t)
	w := watchGizmos(t, "gz", "-n", "web", "--diff", "-s", server.URL)
	w.expect("EVENT NAME COLOR", "ADDED a red", "ADDED b blue")
	update(t, server, object("Gizmo", "web", "a", map[string]any{"color": "green", "size": int64(10), "tags": []any{"x"}}))
	w.expect("MODIFIED a green", `~ .spec.color: "red" → "green"`, `+ .spec.tags: ["x"]`)
	server.Create(t, gizmos, object("Gizmo", "web", "e", nil))
	w.expect("ADDED e")
	remove(t, server, "web", "b")
	w.expect("DELETED b blue")
	w.interrupt()
}

// TestWatchQuery: changes are relative to the query.
func TestWatchQuery(t *testing.T) {
	server := newShop(t)
	config := write(t, "c.yaml", gizmoIndexes)
	w := watchGizmos(t, "things", "-A", "--config", config, "--index", "color=red", "-o", "custom-columns=NAME:.metadata.name,COLOR:.spec.color", "-s", server.URL)
	w.expect("NAME COLOR", "c red", "a red")
	update(t, server, object("Gizmo", "web", "b", map[string]any{"color": "red"}))
	w.expect("b red")
	w.interrupt()

	w = watchGizmos(t, "gz", "-n", "db", "--where", "@.spec.color==\"red\"", "-o", "json", "-s", server.URL)
	for _, verb := range []string{"ADDED", "DELETED"} {
		if line := w.next(); !strings.Contains(line, `"type":"`+verb+`"`) || !strings.Contains(line, `"name":"c"`) {
			t.Errorf("got line %q, want that c is %s", line, verb)
		}
		if verb == "ADDED" {
			update(t, server, object("Gizmo", "db", "c", map[string]any{"color": "blue"}))
		}
	}
	w.interrupt()
}

// update writes an object that is there.
func update(t *testing.T, server *apitest.Server, obj *unstructured.Unstructured) {
	t.Helper()
	client := server.Client(t).Resource(gizmos).Namespace(obj.GetNamespace())
	now, err := client.Get(t.Context(), obj.GetName(), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	now.Object["spec"] = obj.Object["spec"]
	if _, err := client.Update(t.Context(), now, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, server *apitest.Server, namespace, name string) {
	t.Helper()
	if err := server.Client(t).Resource(gizmos).Namespace(namespace).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

func TestWatchErrors(t *testing.T) {
	server := newShop(t)
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"no type":       {nil, "name at least one type"},
		"csv":           {[]string{"gz", "-o", "csv"}, "changes cannot be printed as csv"},
		"diff of json":  {[]string{"gz", "--diff", "-o", "json"}, "--diff goes with tables"},
		"color":         {[]string{"gz", "--color", "blue"}, `--color is "blue"`},
		"unknown index": {[]string{"gz", "--index", "x=y"}, "x"},
	} {
		t.Run(name, func(t *testing.T) {
			r := crdcache(t, append([]string{"watch", "-s", server.URL}, tt.args...)...)
			r.expect(t, exit.Usage, "")
			if !strings.Contains(r.errOut, tt.want) {
				t.Errorf("stderr is %q, want %q in it", r.errOut, tt.want)
			}
		})
	}
}
