package bind_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/crdcache/crdcache/indexers/bind"
	"github.com/crdcache/crdcache/indexers/query"
	"github.com/crdcache/crdcache/indexers/references"
)

const gadgetsAndWidgets = `  - name: widgets
    match: {group: example.com, resource: widgets}
    indexes: [{name: color, path: .spec.color}]
    references: [{name: gadget, to: {group: example.com, kind: Gadget, namePath: .spec.color}}]
  - name: gadgets
    match: {group: example.com, kind: Gadget}
`

// TestReferences verifies that the graph of a binding has the dangling references after changes of objects,
// types and configs.
func TestReferences(t *testing.T) {
	s := newFixture(t)
	binding := s.follow(parse(t, gadgetsAndWidgets))
	graph, err := binding.References()
	if err != nil {
		t.Fatal(err)
	}
	if again, err := binding.References(); again != graph || err != nil {
		t.Errorf("the second References returned another graph, want the same one (%v)", err)
	}
	expectDangling := func(want ...string) {
		t.Helper()
		s.eventually(fmt.Sprint("exactly these references dangle: ", want), func() bool {
			got := []string{}
			for _, r := range graph.Dangling() {
				got = append(got, r.From.Key()+" "+r.To.String())
			}
			return slices.Equal(got, want)
		})
	}
	s.eventually("the graph has three references", func() bool { return graph.Stats().References == 3 })
	if graph.Stats().Dangling != 0 {
		t.Errorf("Dangling = %v, want none while the target type does not exist", graph.Dangling())
	}
	apply(s.cluster, definition("example.com", "gadgets", "Gadget"))
	expectDangling("home/chair Gadget.example.com home/red", "home/lamp Gadget.example.com home/red",
		"home/table Gadget.example.com home/blue")
	red := `{apiVersion: example.com/v1, kind: Gadget, metadata: {namespace: home, name: red}}`
	apply(s.cluster, red)
	expectDangling("home/table Gadget.example.com home/blue")

	querier, err := binding.Querier("widgets")
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{"dangling(gadget)": "home/table",
		"refersTo(gadgets.example.com, home/red) && color=red": "home/chair home/lamp"} {
		q, err := query.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if keys, err := querier.Keys(s.ctx, q, query.Options{}); err != nil ||
			strings.Join(keys, " ") != want {
			t.Errorf("keys of %s = %v, %v; want %s", text, keys, err, want)
		}
	}

	// the replacement of an informer sends no events
	var mu sync.Mutex
	events := 0
	subscription, err := graph.Subscribe(func(e references.Event) {
		mu.Lock()
		defer mu.Unlock()
		if !e.Initial {
			events++
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := binding.Apply(parse(t, strings.ReplaceAll(gadgetsAndWidgets, "    match:",
		"    storage: {mode: Object}\n    match:"))); err != nil {
		t.Fatal(err)
	}
	s.eventually("the informer of gadgets is replaced", func() bool {
		target, err := binding.Target("gadgets")
		return err == nil && target.Resource.Storage.Mode == "Object" && graph.Stats().Informers == 2 &&
			graph.Stats().Synced == 2
	})
	mu.Lock()
	if events > 0 {
		t.Errorf("the replacement of an informer sent %d events, want none", events)
	}
	mu.Unlock()
	subscription.Stop()

	if err := binding.Apply(parse(t, strings.ReplaceAll(gadgetsAndWidgets, ".spec.color}}]",
		".metadata.name}}]"))); err != nil {
		t.Fatal(err)
	}
	expectDangling("home/chair Gadget.example.com home/chair", "home/lamp Gadget.example.com home/lamp",
		"home/table Gadget.example.com home/table")
	if err := binding.Apply(parse(t,
		gadgetsAndWidgets[strings.Index(gadgetsAndWidgets, "  - name: gadgets"):])); err != nil {
		t.Fatal(err)
	}
	expectDangling()
	binding.Close()
	if _, err := binding.References(); !errors.Is(err, bind.ErrClosed) {
		t.Errorf("References after Close: got the error %v, want ErrClosed", err)
	}
}
