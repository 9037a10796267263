package live

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

// TestRestoredServer verifies that the API server is restored from a backup before the informer notices.
// Lists do not contain the lost objects, and watches from a lost version are refused once the cache is
// correct.
func TestRestoredServer(t *testing.T) {
	gadgets := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "gadgets"}
	const path = "/apis/example.com/v1/gadgets"
	gadget := func(name string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": map[string]any{"namespace": "a",
				"name": name},
		}}
	}
	cluster := apitest.New(t, apitest.Type{GVR: gadgets, Kind: "Gadget", Namespaced: true})
	cluster.Create(t, gadgets, gadget("kept"))
	restore := cluster.Backup(t)
	cluster.Create(t, gadgets, gadget("lost1"), gadget("lost2"))

	ctx, cancel := context.WithCancel(context.Background())
	tracker, err := discovery.NewTracker(cluster.Config(), discovery.TrackerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	tracked := make(chan struct{})
	go func() { defer close(tracked); _ = tracker.Run(ctx) }() // ended by cancel
	factory, err := dynamicinformer.New(dynamicinformer.Options{Config: cluster.Config(),
		Types: tracker.Types()})
	if err != nil {
		t.Fatal(err)
	}
	server, err := New(Options{Factory: factory, Types: tracker.Types(), Config: cluster.Config(),
		FreshTimeout: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		server.Close()
		_ = factory.Shutdown(context.Background())
		cancel()
		<-tracked
	})
	informer, err := factory.ForResource(gadgets)
	if err == nil {
		err = server.AddType(informer)
	}
	if err == nil {
		err = factory.Start(ctx)
	}
	if err == nil {
		err = server.WaitForSync(t.Context(), gadgets.GroupResource())
	}
	if err != nil {
		t.Fatal(err)
	}
	type list struct {
		Metadata struct{ ResourceVersion string }
		Items    []struct{}
	}
	var before, after list
	if err := json.Unmarshal(get(t, server, path).Body.Bytes(), &before); err != nil ||
		len(before.Items) != 3 {
		t.Fatalf("the list before the restore = %v, %v, want 3 objects", before, err)
	}

	historyBefore := informer.History()
	restore()
	if got := get(t, server, path); strings.Contains(got.Body.String(), "lost") {
		t.Errorf("the list before the relist = %d %s, want no lost objects", got.Code, got.Body)
	}
	cluster.CloseClientConnections()
	for history := historyBefore; history.Epoch == historyBefore.Epoch; history = informer.History() {
		select {
		case <-history.Next:
		case <-t.Context().Done():
			t.Fatal("timed out waiting for the informer's relist")
		}
	}
	if err := json.Unmarshal(get(t, server, path).Body.Bytes(), &after); err != nil || len(after.Items) != 1 {
		t.Errorf("the list after the restore = %v, %v, want 1 object", after, err)
	}
	lost := path + "?watch=true&timeoutSeconds=1&resourceVersion=" + before.Metadata.ResourceVersion
	if got := get(t, server, lost); got.Code != http.StatusGone {
		t.Errorf("a watch from a lost version = %d %s, want 410", got.Code, got.Body)
	}
}

// rowWithoutUnmarshaler is a row without UnmarshalJSON.
type rowWithoutUnmarshaler Row

func TestRowUnmarshalJSON(t *testing.T) {
	want := Row{Namespace: "n", Name: "é\"", Labels: map[string]string{"a": "b"},
		Cells: []any{"x", int64(1 << 60), 2.5, true, nil}}
	for _, want := range []Row{want, {Name: "n", Cells: []any{}}} {
		text, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got Row
		var stock rowWithoutUnmarshaler
		if err := got.UnmarshalJSON(text); err != nil {
			t.Error(err)
		}
		if err := utiljson.Unmarshal(text, &stock); err != nil {
			t.Error(err)
		}
		if !cmp.Equal(got, want) || !cmp.Equal(got, Row(stock)) {
			t.Errorf("UnmarshalJSON(%s) = %v, with apimachinery %v, want %v", text, got, stock, want)
		}
	}
	for _, text := range []string{"", `[]`, `{"name":"a"`, `{"name":"a"}`, `{"name":"a","cells":1}`} {
		if err := new(Row).UnmarshalJSON([]byte(text)); err == nil {
			t.Errorf("UnmarshalJSON(%q) succeeded, want an error", text)
		}
	}
}

func BenchmarkRow(b *testing.B) {
	text := []byte(`{"namespace":"team-000","name":"billing-admin-000001-00140","labels":{"app":"billing",` +
		`"team":"payments"},"cells":["billing-admin-000001-00140","True","billing-tls","letsencrypt",` +
		`"Certificate is up to date and has not expired","288d"]}`)
	b.Run("jsontext", func(b *testing.B) {
		for b.Loop() {
			if err := new(Row).UnmarshalJSON(text); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("reflection", func(b *testing.B) {
		for b.Loop() {
			if err := utiljson.Unmarshal(text, new(rowWithoutUnmarshaler)); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// TestReadAnswer checks that objects and rows are read one by one, and that a truncated answer is an error.
func TestReadAnswer(t *testing.T) {
	s := newFixture(t, Options{})
	for name, parameters := range map[string]string{"objects": "", "rows": "&rows=true", "keys": "&keys=true",
		"count": "&count=true"} {
		t.Run(name, func(t *testing.T) {
			answerText := get(t, s.server, QueryPath(demoGroup, "v1", "", "workloads")+"?scan=true"+
				parameters).Body.String()
			var fullAnswer struct{ Items, Rows []json.RawMessage }
			s.must(json.Unmarshal([]byte(answerText), &fullAnswer))
			var want []string
			for _, item := range append(fullAnswer.Items, fullAnswer.Rows...) {
				want = append(want, string(item))
			}
			r, err := ReadAnswer(strings.NewReader(answerText))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			if err := r.Each(func(answerText []byte) error {
				got = append(got, string(answerText))
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, want) || r.Kind != AnswerKind || r.ResourceVersion == "" {
				t.Errorf("the reader returned %d objects or rows, want %d; the answer is %+v", len(got),
					len(want), r.Answer)
			}
			step := 7
			if os.Getenv("CRDCACHE_NIGHTLY") != "" {
				step = 1
			}
			for end := 0; end < len(strings.TrimSpace(answerText)); end += step {
				cut, err := ReadAnswer(strings.NewReader(answerText[:end]))
				if err == nil {
					err = cut.Each(func([]byte) error { return nil })
				}
				if !errors.Is(err, io.ErrUnexpectedEOF) {
					t.Fatalf("answer truncated to %d of %d bytes: error %v, want io.ErrUnexpectedEOF", end,
						len(answerText), err)
				}
			}
		})
	}
	for _, answerText := range []string{"", "[]", "{}", `{"kind"}`, `{"kind":1}`, "<html>"} {
		if _, err := ReadAnswer(strings.NewReader(answerText)); err == nil {
			t.Errorf("ReadAnswer(%q) succeeded, want an error", answerText)
		}
	}
}

// TestReadAnswerOfAnotherShape verifies that text that is not a query answer is an error, not an answer
// without objects.
func TestReadAnswerOfAnotherShape(t *testing.T) {
	for _, text := range []string{
		`{"kind":"QueryAnswer","items":null`, `{"kind":"QueryAnswer","items":{"a":1}}`,
		`{"kind":"QueryAnswer","items":[1 2]}`, `{"kind":"QueryAnswer","items":[1,]}`,
		`{"kind":"Other","items":[1]}`,
	} {
		r, err := ReadAnswer(strings.NewReader(text))
		if err == nil {
			err = r.Each(func([]byte) error { return nil })
		}
		if err == nil {
			t.Errorf("ReadAnswer(%s) succeeded, want an error", text)
		}
	}
}
