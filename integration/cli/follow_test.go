package cli_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/crdcache/crdcache/integration/harness"
)

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1",
	Resource: "customresourcedefinitions"}

func widget(group, namespace, name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": group + "/v1", "kind": "Widget", "metadata": map[string]any{"namespace": namespace,
			"name": name},
	}}
}

func (f *runningCommand) stderrText() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.stderr.String()
}

// awaitStderr waits until stderr contains a text.
func (f *runningCommand) awaitStderr(t *testing.T, text string) {
	t.Helper()
	harness.Eventually(t, func(context.Context) error {
		if strings.Contains(f.stderrText(), text) {
			return nil
		}
		return fmt.Errorf("no %q on stderr of %q:\n%s", text, f.cmd.Args, f.stderrText())
	})
}

// TestFollowWildcard checks that a wildcard includes types that are installed later and drops deleted ones,
// even if it matches no type at first.
func TestFollowWildcard(t *testing.T) {
	group := harness.Group(t)
	ns := harness.Namespace(t)
	watch := startCommand(t, harness.Crdcache(t), "watch", "*."+group, "-n", ns, "-o", "name")
	dump := startCommand(t, harness.Crdcache(t), "dump", "*."+group, "-n", ns, "-w")
	for _, f := range []*runningCommand{watch, dump} {
		f.awaitStderr(t, "*."+group+`: Pending: the server has no resource type`)
	}
	widgets := harness.NewCRD(group, "Widget")
	harness.InstallCRDs(t, widgets)
	harness.Apply(t, widget(group, ns, "a"))
	watch.awaitOutput(t, "widget."+group+"/a\n")
	dump.awaitOutput(t, "widget."+group+"/a ")
	harness.InstallCRDs(t, harness.NewCRD(group, "Gadget"))
	gadget := widget(group, ns, "g")
	gadget.SetKind("Gadget")
	harness.Apply(t, gadget)
	watch.awaitOutput(t, "gadget."+group+"/g\n")
	dump.awaitOutput(t, "\n\nNAME")
	dump.awaitOutput(t, "gadget."+group+"/g ")

	client, err := dynamic.NewForConfig(harness.Config(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Resource(definitions).Delete(t.Context(), widgets.GetName(),
		metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, f := range []*runningCommand{watch, dump} {
		f.awaitStderr(t, "widgets."+group+": Gone: ")
	}
	gadget = widget(group, ns, "g-2")
	gadget.SetKind("Gadget")
	harness.Apply(t, gadget)
	for _, f := range []*runningCommand{watch, dump} {
		f.awaitOutput(t, "gadget."+group+"/g-2")
		// The deletion of the object of the deleted type is printed after the status.
		harness.Eventually(t, func(context.Context) error {
			if n := strings.Count(f.stdoutText(), "widget."+group+"/a"); n != 2 {
				return fmt.Errorf("the output has %d events of the object a, want 2:\n%s", n, f.stdoutText())
			}
			return nil
		})
		if code := f.interrupt(t); code != 130 || !strings.HasSuffix(f.stderrText(), "error: interrupted\n") {
			t.Errorf("exit code %d, stderr:\n%s", code, f.stderrText())
		}
		if text := f.stdoutText(); !strings.HasSuffix(text, "\n") ||
			strings.Count(text, "widget."+group+"/a") != 2 {
			t.Errorf("the output is\n%s\nwant two events of the object a, and a complete last line", text)
		}
	}
}
