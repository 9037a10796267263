package bind_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/bind"
	"github.com/crdcache/crdcache/indexers/reload"
	"github.com/crdcache/crdcache/internal/testkit"
)

// TestBindingFollowsItsFiles verifies that a binding applies the new content of a ConfigMap and of a replaced
// file, also when a resource moves between files.
func TestBindingFollowsItsFiles(t *testing.T) {
	s := newFixture(t)
	mount := &testkit.ConfigMapMount{Dir: t.TempDir()}
	thirdFile := filepath.Join(t.TempDir(), "local.yaml")
	header := func(name string) string {
		return "apiVersion: crdcache.dev/v1beta1\nkind: IndexConfig\nmetadata: {name: " + name +
			"}\nspec:\n  resources:\n"
	}
	definitions := "  - name: definitions\n    match: {group: apiextensions.k8s.io, kind: CustomResourceDefinition}\n    optional: true\n"
	writeThird := func(index string) {
		t.Helper()
		text := header("third") + strings.NewReplacer("name: widgets", "name: third", "color, path",
			index+", path").Replace(widgetsByColor)
		testkit.ReplaceFile(t, thirdFile, text)
	}
	writeThird("color")
	mount.Swap(t, map[string]string{"first.yaml": header("first") + widgetsByColor,
		"second.yaml": header("second") + definitions})

	var binding *bind.Binding
	watcher, err := reload.New(reload.Options{
		Files: []string{filepath.Join(mount.Dir, "first.yaml"), filepath.Join(mount.Dir, "second.yaml"),
			thirdFile}, PollInterval: time.Millisecond,
		Apply: func(_ context.Context, config *indexers.Config) error { return binding.Apply(config) },
		Report: func(o reload.Outcome) {
			if o.Err != nil {
				t.Error(o)
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	binding = s.follow(watcher.Config())
	ctx, cancel := context.WithCancel(s.ctx)
	done := make(chan error, 1)
	go func() { done <- watcher.Run(ctx) }() // ended by cancel
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	s.eventually("bound", func() bool { return queryReturns(binding, "widgets", "color=red", "home/chair", "home/lamp") })
	target, err := binding.Target("widgets")
	if err != nil {
		t.Fatal(err)
	}

	mount.Swap(t, map[string]string{"first.yaml": header("first") + definitions, "second.yaml": header("second") +
		widgetsBySize})
	s.eventually("the swapped files are applied", func() bool {
		return queryReturns(binding, "widgets",
			"color=lamp && size>5", "home/lamp")
	})
	if now, err := binding.Target("widgets"); err != nil || now.Informer != target.Informer ||
		len(binding.Pending()) > 0 {
		t.Errorf("a resource that moved to another file has another informer, want the same one (%v)", err)
	}
	writeThird("colour")
	s.eventually("the replaced file is applied", func() bool {
		return queryReturns(binding, "third", "colour=red", "home/chair", "home/lamp")
	})
	mount.Swap(t, map[string]string{"first.yaml": header("first") + widgetsByColor,
		"second.yaml": header("second") + definitions})
	s.eventually("the files of the first version are applied again",
		func() bool { return queryReturns(binding, "widgets", "color=red", "home/chair", "home/lamp") })
}
