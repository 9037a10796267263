package cli_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

// TestWatchOutlivesType checks that the deletion of a type prints the deletion of its objects and a message
// on stderr, and that its objects are printed when it is installed again. An interrupt ends the command with
// 130.
func TestWatchOutlivesType(t *testing.T) {
	group := harness.Group(t)
	crd := harness.NewCRD(group, "Widget")
	harness.InstallCRDs(t, crd)
	ns := harness.Namespace(t)
	harness.Apply(t, widget(group, ns, "a"))

	cmd := command(t, harness.Crdcache(t), "watch", "widgets."+group, "-n", ns, "-o",
		"jsonpath={.metadata.name}")
	stdout, stderr := lines(t, cmd.StdoutPipe), lines(t, cmd.StderrPipe)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	await(t, stdout, "a")
	harness.Apply(t, widget(group, ns, "b"))
	await(t, stdout, "b")

	client, err := dynamic.NewForConfig(harness.Config(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Resource(definitions).Delete(t.Context(), crd.GetName(),
		metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	await(t, stderr, "widgets."+group+": Gone: ")
	await(t, stdout, "a", "b")

	fresh := harness.NewCRD(group, "Widget")
	harness.Eventually(t, crdAbsent(client, crd.GetName()))
	harness.InstallCRDs(t, fresh)
	harness.Apply(t, widget(group, ns, "c"))
	await(t, stdout, "c")

	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	await(t, stderr, "error: interrupted")
	if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != 130 {
		t.Errorf("%v, exit code %d, want 130", err, cmd.ProcessState.ExitCode())
	}
}

// lines sends the lines of a command's pipe until it ends.
func lines(t *testing.T, open func() (io.ReadCloser, error)) <-chan string {
	t.Helper()
	pipe, err := open()
	if err != nil {
		t.Fatal(err)
	}
	found := make(chan string, 1000)
	go func() { // ends with the command
		defer close(found)
		for scanner := bufio.NewScanner(pipe); scanner.Scan(); {
			found <- scanner.Text()
		}
	}()
	return found
}

// await reads lines until each text was the start of a line.
func await(t *testing.T, from <-chan string, texts ...string) {
	t.Helper()
	var seen []string
	deadline := time.After(patience)
	for len(texts) > 0 {
		select {
		case line, ok := <-from:
			if !ok {
				t.Fatalf("no line begins with %q; there were %q", texts, seen)
			}
			seen = append(seen, line)
			for i, text := range texts {
				if strings.HasPrefix(line, text) {
					texts = append(texts[:i:i], texts[i+1:]...)
					break
				}
			}
		case <-deadline:
			t.Fatalf("no line begins with %q; there were %q", texts, seen)
		}
	}
}

// crdAbsent returns an error while the definition exists.
func crdAbsent(client dynamic.Interface, name string) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := client.Resource(definitions).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("%s is still there (%v)", name, err)
	}
}
