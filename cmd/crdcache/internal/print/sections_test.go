package print

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// TestPrintEndsLines verifies that an error is printed after a completed line.
func TestPrintEndsLines(t *testing.T) {
	const objects = 1000 // more than fit into the buffer
	broken := errors.New("interrupted")
	for _, name := range []string{"name", "jsonl"} {
		format, err := ParseFormat(name)
		if err != nil {
			t.Fatal(err)
		}
		section := Section{Each: func(w *Writer) error {
			object := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "v1", "kind": "A", "metadata": map[string]any{"name": strings.Repeat("a", 100)},
			}}
			for range objects {
				if err := w.Print(NewObject(object)); err != nil {
					return err
				}
			}
			return broken
		}}
		var out bytes.Buffer
		output := NewOutput(genericiooptions.IOStreams{Out: &out}, Style{Format: format})
		err = errors.Join(output.Print(t.Context(), []Section{section}, SectionOptions{}), output.Close())
		if !errors.Is(err, broken) || strings.Count(out.String(), "\n") != objects ||
			!strings.HasSuffix(out.String(), "\n") {
			t.Errorf("%s: %v, %d lines, the end is %q", name, err, strings.Count(out.String(), "\n"),
				out.String()[max(0, out.Len()-20):])
		}
	}
}

// TestClustersAreCompleted verifies that the output of several clusters is complete, although reading one of
// them fails in the middle.
func TestClustersAreCompleted(t *testing.T) {
	broken := errors.New("connection lost")
	section := func(err error, names ...string) []Section {
		return []Section{{Rows: NewRows(nil), Each: func(w *Writer) error {
			for _, name := range names {
				object := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": name}}}
				if err := w.Print(NewObject(object)); err != nil {
					return err
				}
			}
			return err
		}}}
	}
	for format, want := range map[string]string{
		TableOptions: "CLUSTER   NAME      AGE\none       first     \ntwo       another   \n",
		Name:         "one\t/first\ntwo\t/another\n",
		JSONLines: `{"metadata":{"annotations":{"crdcache.dev/cluster":"one"},"name":"first"}}` + "\n" +
			`{"metadata":{"annotations":{"crdcache.dev/cluster":"two"},"name":"another"}}` + "\n",
		YAML: "apiVersion: v1\nitems:\n" +
			"- metadata:\n    annotations:\n      crdcache.dev/cluster: one\n    name: first\n" +
			"- metadata:\n    annotations:\n      crdcache.dev/cluster: two\n    name: another\n" +
			"kind: List\nmetadata:\n  resourceVersion: \"\"\n",
		CSV: "CLUSTER,NAMESPACE,NAME,AGE\none,,first,\ntwo,,another,\n",
	} {
		var out strings.Builder
		output := NewOutput(genericiooptions.IOStreams{Out: &out}, Style{Format: Format{Name: format}})
		err := output.Print(t.Context(), section(broken, "first"), SectionOptions{Cluster: "one"})
		if !errors.Is(err, broken) {
			t.Errorf("%s: the error is %v, want %v", format, err, broken)
		}
		err = errors.Join(output.Print(t.Context(), section(nil, "another"), SectionOptions{Cluster: "two"}),
			output.Close())
		if err != nil || out.String() != want {
			t.Errorf("%s: %v, printed\n%swant\n%s", format, err, out.String(), want)
		}
	}
}
