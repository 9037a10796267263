package bind_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/crdcache/crdcache/indexers/bind"
	"github.com/crdcache/crdcache/indexers/reload"
)

// configMapMount is a folder like the mount of a ConfigMap. Its files are links through the link ..data,
// which points to a folder with the current version.
type configMapMount struct {
	*testing.T
	dir      string
	versions int
}

func (m *configMapMount) must(err error) {
	m.Helper()
	if err != nil {
		m.Fatal(err)
	}
}

// swap publishes a new version of the files and removes the previous one, like the kubelet.
func (m *configMapMount) swap(files map[string]string) {
	m.Helper()
	before := fmt.Sprintf("..%d", m.versions)
	m.versions++
	version := fmt.Sprintf("..%d", m.versions)
	m.must(os.Mkdir(filepath.Join(m.dir, version), 0o700))
	for name, text := range files {
		m.must(os.WriteFile(filepath.Join(m.dir, version, name), []byte(text), 0o600))
		if m.versions == 1 {
			m.must(os.Symlink(filepath.Join("..data", name), filepath.Join(m.dir, name)))
		}
	}
	m.must(os.Symlink(version, filepath.Join(m.dir, "..data_tmp")))
	m.must(os.Rename(filepath.Join(m.dir, "..data_tmp"), filepath.Join(m.dir, "..data")))
	m.must(os.RemoveAll(filepath.Join(m.dir, before)))
}

// TestBindingFollowsItsFiles verifies that a binding follows the files of a ConfigMap and a replaced file,
// also when a resource moves between files.
func TestBindingFollowsItsFiles(t *testing.T) {
	s := newFixture(t)
	m := &configMapMount{T: t, dir: t.TempDir()}
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
		m.must(os.WriteFile(thirdFile+".new", []byte(text), 0o600))
		m.must(os.Rename(thirdFile+".new", thirdFile))
	}
	writeThird("color")
	m.swap(map[string]string{"first.yaml": header("first") + widgetsByColor,
		"second.yaml": header("second") + definitions})

	var b *bind.Binding
	watcher, err := reload.New(s.ctx, reload.Options{
		Files: []string{filepath.Join(m.dir, "first.yaml"), filepath.Join(m.dir, "second.yaml"),
			thirdFile}, QuietPeriod: time.Millisecond, PollInterval: -1,
		Apply: func(_ context.Context, u reload.Update) error { return b.Apply(u.New) },
		Report: func(o reload.Outcome) {
			if o.Err != nil {
				t.Error(o)
			}
		},
	})
	m.must(err)
	b = s.follow(watcher.Config())
	ctx, cancel := context.WithCancel(s.ctx)
	done := make(chan error, 1)
	go func() { done <- watcher.Run(ctx) }() // ended by cancel
	defer func() {
		cancel()
		m.must(<-done)
	}()
	s.eventually("bound", func() bool { return queryReturns(b, "widgets", "color=red", "home/chair", "home/lamp") })
	target, err := b.Target("widgets")
	m.must(err)

	m.swap(map[string]string{"first.yaml": header("first") + definitions, "second.yaml": header("second") +
		widgetsBySize})
	s.eventually("the swapped files are applied", func() bool {
		return queryReturns(b, "widgets",
			"color=lamp && size>5", "home/lamp")
	})
	if now, err := b.Target("widgets"); err != nil || now.Informer != target.Informer ||
		len(b.Pending()) > 0 {
		t.Errorf("a resource that moved to another file has another informer, want the same one (%v)", err)
	}
	writeThird("colour")
	s.eventually("the replaced file is applied", func() bool {
		return queryReturns(b, "third", "colour=red", "home/chair", "home/lamp")
	})
	m.swap(map[string]string{"first.yaml": header("first") + widgetsByColor,
		"second.yaml": header("second") + definitions})
	s.eventually("the files of the first version are applied again",
		func() bool { return queryReturns(b, "widgets", "color=red", "home/chair", "home/lamp") })
}
