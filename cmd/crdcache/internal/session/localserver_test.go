package session

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/serving/readapi/live"
)

var gizmos = discovery.Resource{
	GVR: schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "gizmos"},
	GVK: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gizmo"},
}

// printAnswer prints the objects of an answer as JSON.
func printAnswer(t *testing.T, ctx context.Context, body io.Reader) (string, error) {
	t.Helper()
	reader, err := live.ReadAnswer(body)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	answer := &Answer{AnswerReader: reader, resource: gizmos}
	output := print.NewOutput(genericiooptions.IOStreams{Out: &out},
		print.Style{Format: print.Format{Name: print.JSON}})
	err = output.Print(ctx, []print.Section{answer.Section(nil, true)}, print.SectionOptions{})
	err = errors.Join(err, output.Close())
	return out.String(), err
}

const twoGizmos = `{"kind":"QueryAnswer","resourceVersion":"7","items":[` +
	`{"apiVersion":"example.com/v1","kind":"Gizmo","metadata":{"managedFields":[{"manager":"kubectl"}],"name":"a"}},` +
	`{"apiVersion":"example.com/v1","kind":"Gizmo","metadata":{"name":"b"}}]}`

// TestAnswerEndsEarly verifies that the received objects are printed, and that the command fails, if the
// server or the user ends the response.
func TestAnswerEndsEarly(t *testing.T) {
	half := twoGizmos[:len(twoGizmos)-20]
	reset := errors.New("connection reset")
	for name, tt := range map[string]struct {
		body io.Reader
		want error
	}{
		"cut":   {strings.NewReader(half), io.ErrUnexpectedEOF},
		"reset": {io.MultiReader(strings.NewReader(half), iotest.ErrReader(reset)), reset},
	} {
		text, err := printAnswer(t, t.Context(), tt.body)
		if !errors.Is(err, tt.want) || !strings.Contains(err.Error(),
			"the cache server ended its answer for gizmos.v1.example.com early") {
			t.Errorf("%s: got the error %v, want %v", name, err, tt.want)
		}
		if !strings.Contains(text, `"name": "a"`) || strings.Contains(text, `"kind": "List"`) {
			t.Errorf("%s: printed %s, want the gizmo a and no end of the list", name, text)
		}
	}
	interrupted, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := printAnswer(t, interrupted, strings.NewReader(twoGizmos)); !errors.Is(err,
		context.Canceled) {
		t.Errorf("interrupted: got the error %v, want context.Canceled", err)
	}
}
