package snapshot_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/adapters/storage/disk"
	"github.com/crdcache/crdcache/dynamicinformer/persistence"
	"github.com/crdcache/crdcache/internal/packed"
	"github.com/crdcache/crdcache/internal/snapshot"
)

// persistedType is a type of the test's cache, with its objects by key.
type persistedType struct {
	persistence.View
	at      persistence.Checkpoint
	objects map[string]string
}

func persisted(resource string) *persistedType {
	return &persistedType{
		persistence.View{Resource: schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: resource},
			Complete: true},
		persistence.Checkpoint{ResourceVersion: "7", APIVersion: "v1", Kind: "Gizmo", Namespaced: true, Cluster: "here",
			Endpoint: "https://server checksum", Time: time.Unix(1000, 0).UTC()},
		map[string]string{},
	}
}

func (p *persistedType) set(numbers ...int) *persistedType {
	for _, n := range numbers {
		name := fmt.Sprintf("g-%06d", n)
		p.objects["web/"+name] = string(gizmo("web", name, fmt.Sprint(p.at.ResourceVersion, strings.Repeat(" text", 20), n)))
	}
	return p
}

// save saves the objects in blocks of 50, or those that differ from before.
func (p *persistedType) save(t *testing.T, s *disk.Store, before map[string]string) {
	t.Helper()
	p.at.Objects = len(p.objects)
	content, err := s.Open(t.Context(), p.View)
	if err == nil && before != nil {
		err = content.Load(t.Context(),
			func(persistence.Checkpoint, persistence.LoadFunc) error { return nil })
	}
	noError(t, err)
	err = content.Save(t.Context(), p.at, before == nil, func(put persistence.PutRecord) error {
		if before != nil {
			var text []byte
			for key := range before {
				if p.objects[key] == "" {
					text = packed.AppendChange(text, key, nil)
				}
			}
			for key, json := range p.objects {
				if before[key] != json {
					text = packed.AppendChange(text, key, []byte(json))
				}
			}
			return put(text, nil)
		}
		var w packed.BlockWriter
		for keys := range slices.Chunk(slices.Sorted(maps.Keys(p.objects)), 50) {
			for _, key := range keys {
				o := (*packed.Packer)(nil).TryPack([]byte(p.objects[key]))
				if added, err := w.Add(o); err != nil || !added {
					return errors.Join(errors.New("not added"), err)
				}
			}
			if err := put(w.AppendBlock(nil)); err != nil {
				return err
			}
			w.Reset()
		}
		return nil
	})
	if err = errors.Join(err, content.Close()); err != nil {
		t.Fatal(err)
	}
}

func numbers(from, to int) (list []int) {
	for n := from; n < to; n++ {
		list = append(list, n)
	}
	return list
}

// expectFolder opens a folder and compares it with the expected types.
func expectFolder(t *testing.T, dir string, types ...*persistedType) *snapshot.File {
	t.Helper()
	f, err := snapshot.Open(dir)
	noError(t, err)
	want := map[string]string{}
	for _, p := range types {
		for key, json := range p.objects {
			want[p.Resource.Resource+" "+key] = json
			r, ok, err := f.Objects(p.Resource.GroupResource()).Get(key)
			if !ok || err != nil || string(r.JSON) != json {
				t.Fatalf("%s = %s, %v, want %s", key, r.JSON, err, json)
			}
		}
	}
	got, err := readAll(f)
	if err = errors.Join(err, f.Verify(t.Context())); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("objects (-want +got):\n%s", diff)
	}
	return f
}

// TestFolder verifies that the folder of a running process is read like a file: with all changes, selected
// objects as partial, and other types and clusters as unknown.
func TestFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	s := disk.New(dir, disk.Options{})
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	changed := persisted("gizmos").set(numbers(100, 600)...)
	changed.save(t, s, nil)
	before := maps.Clone(changed.objects)
	changed.at.ResourceVersion = "9"
	changed.set(1, 2, 150, 299, 399, 700) // before, within and after blocks, and at their ends
	delete(changed.objects, "web/g-000450")
	changed.objects["web/g-000520a"] = string(gizmo("web", "g-000520a", "between two objects"))
	changed.save(t, s, before)
	empty, selected, onlyChanges := persisted("empties"), persisted("selected").set(5), persisted("additions")
	empty.save(t, s, nil)
	selected.Complete, selected.Options = false, `"" ["" "app=x"]`
	selected.save(t, s, nil)
	onlyChanges.save(t, s, nil)
	onlyChanges.set(1, 2).save(t, s, map[string]string{})
	other := persisted("others").set(6)
	other.at.Cluster, other.at.Time = "there", time.Unix(900, 0)
	other.save(t, s, nil)
	other.View, other.objects = selected.View, map[string]string{} // of another cluster
	other.Options, other.Complete = "", true
	other.set(8).save(t, s, nil)

	f := expectFolder(t, dir, changed, empty, selected, onlyChanges)
	c := f.Contents()
	if len(c.Damage) > 0 || len(c.Notes) != 2 || c.Server.UID != "here" || c.Server.Host != "https://server" ||
		!c.Created.Equal(time.Unix(1000, 0)) || len(c.UnknownGroups) != 1 ||
		c.UnknownGroups[0].Group != snapshot.AllGroups {
		t.Errorf("contents = %+v, want those of the server, two notes, and unknown groups", c)
	}
	var got []string
	for _, saved := range c.Types {
		text := fmt.Sprintf("%s %s %v %s %d", saved.Resource, saved.Kind, saved.Namespaced,
			saved.ResourceVersion, saved.Objects)
		if saved.Partial != "" {
			text += " partial"
		}
		got = append(got, text)
		bytes := 0
		for r := range f.Objects(saved.GVR().GroupResource()).All {
			bytes += len(r.JSON)
		}
		if saved.Bytes != int64(bytes) {
			t.Errorf("%s has %d bytes, want %d", saved.Resource, saved.Bytes, bytes)
		}
	}
	want := []string{"additions Gizmo true 7 2", "empties Gizmo true 7 0", "gizmos Gizmo true 9 503",
		"selected Gizmo true 7 1 partial"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("types (-want +got):\n%s", diff)
	}
}

// TestDamagedFolder verifies that an incomplete save is reported and leads to the one before, and that logs
// that cannot be read are reported.
func TestDamagedFolder(t *testing.T) {
	dir := t.TempDir()
	s := disk.New(dir, disk.Options{})
	p := persisted("gizmos").set(1, 2)
	p.save(t, s, nil)
	before := maps.Clone(p.objects)
	p.set(3).save(t, s, before)
	if err := s.Close(t.Context()); err != nil || !snapshot.IsFolder(dir) || snapshot.IsFolder(t.TempDir()) {
		t.Fatalf("IsFolder(), %v", err)
	}
	logs, err := filepath.Glob(filepath.Join(dir, "*.cache"))
	if err != nil || len(logs) != 1 {
		t.Fatal(logs, err)
	}
	info, err := os.Stat(logs[0])
	if err == nil {
		err = os.Truncate(logs[0], info.Size()-1)
	}
	noError(t, err)
	p.objects = before
	if c := expectFolder(t, dir, p).Contents(); len(c.Notes) != 1 || !strings.Contains(c.Notes[0].Error(), "at byte ") {
		t.Errorf("notes = %q, want the incomplete save", c.Notes)
	}
	encrypted := disk.New(dir, disk.Options{Keys: [][]byte{make([]byte, 32)}})
	persisted("secrets").save(t, encrypted, nil)
	if err := errors.Join(encrypted.Close(t.Context()),
		os.WriteFile(filepath.Join(dir, "x.cache"), []byte("x"), 0o600)); err != nil {
		t.Fatal(err)
	}
	c := expectFolder(t, dir, p).Contents()
	if len(c.Damage) != 2 || !strings.Contains(fmt.Sprint(c.Damage), "only programs with the key") ||
		!strings.Contains(fmt.Sprint(c.Damage), "x.cache") {
		t.Errorf("damage = %q, want an encrypted log, and one of another form", c.Damage)
	}
}
