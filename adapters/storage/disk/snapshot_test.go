package disk

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crdcache/crdcache/dynamicinformer/persistence"
	"github.com/crdcache/crdcache/internal/packed"
	"github.com/crdcache/crdcache/internal/snapshot"
)

// writeSnapshot writes a snapshot with types of two objects, and returns its path. The name of a type can be
// followed by a problem.
func writeSnapshot(t *testing.T, origin snapshot.Origin, types ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "before.snapshot")
	w, err := snapshot.Create(path, origin)
	must(t, err)
	for _, name := range types {
		resource, problem, _ := strings.Cut(name, " ")
		described := snapshot.Type{Version: "v1", Resource: resource, Kind: "Thing", Namespaced: true}
		objects, version := []string{"v1 a", "v1 b"}, "7"
		switch problem {
		case "failed":
			err = errors.Join(err, w.AddMissing(described, metav1.Status{Message: "a broken webhook"}, false))
			continue
		case "partial":
			described.Partial = "only some"
		case "unsorted":
			objects = []string{"v1 b", "v1 a"}
		case "repeated":
			objects = []string{"v1 a", "v1 a"}
		case "versions":
			objects = []string{"v1beta1 a", "v1 b"}
		case "opaque":
			version = ""
		}
		section := w.BeginType(described)
		for _, object := range objects {
			apiVersion, name, _ := strings.Cut(object, " ")
			err = errors.Join(err, section.Add(fmt.Appendf(nil,
				`{"apiVersion":%q,"kind":"Thing","metadata":{"name":%q,"namespace":"ns"}}`, apiVersion, name)))
		}
		err = errors.Join(err, section.Close(version))
	}
	if err = errors.Join(err, w.Commit()); err != nil {
		t.Fatal(err)
	}
	return path
}

// loadKeys returns the checkpoint of a content and the keys of its objects.
func loadKeys(content persistence.StoredContent) (at persistence.Checkpoint, keys []string, err error) {
	onRecord := func(record persistence.Record) error {
		objects, err := packed.ReadBlock(record.Head, record.Bodies, record.Retained)
		for _, o := range objects {
			if _, jsonErr := o.AppendJSON(nil); jsonErr != nil {
				err = errors.Join(err, jsonErr)
			}
			keys = append(keys, o.Key())
		}
		return err
	}
	return at, keys, content.Load(context.Background(),
		func(saved persistence.Checkpoint, load persistence.LoadFunc) error {
			at = saved
			return load(onRecord)
		})
}

// TestSnapshot verifies that contents that are not in the folder come from the snapshot, that the folder has
// precedence, and that the snapshot does not change.
func TestSnapshot(t *testing.T) {
	origin := snapshot.Origin{Server: snapshot.Server{UID: "here"}}
	path, dir := writeSnapshot(t, origin, "widgets", "gadgets"), t.TempDir()
	before := read(t, path)
	store := newStore(t, dir, Options{Snapshot: path})
	widgets := openContent(t, store, "widgets")
	at, keys, err := loadKeys(widgets)
	if err != nil || fmt.Sprint(keys) != "[ns/a ns/b]" || at.Objects != 2 || at.ResourceVersion != "7" ||
		at.APIVersion != "v1" || at.Cluster != "here" || at.Endpoint != "" {
		t.Fatalf("loaded %v at %+v, %v", keys, at, err)
	}
	if !widgets.NeedsRewrite() {
		t.Error("NeedsRewrite() = false, want that the first save writes everything")
	}
	save(t, widgets, 9, numbered(1, 9))
	expect(t, widgets, "9", numbered(1, 9).texts())
	expect(t, openContent(t, store, "others"), "", nil)
	closeStore(t, store)
	if !bytes.Equal(read(t, path), before) {
		t.Error("the snapshot has changed")
	}

	before[len(before)/3] ^= 1
	write(t, path, before)
	store = newStore(t, dir, Options{Snapshot: path})
	expect(t, openContent(t, store, "widgets"), "9", numbered(1, 9).texts())
	if _, keys, err := loadKeys(openContent(t, store, "gadgets")); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("loaded %v, %v of a damaged snapshot, want an error with its path", keys, err)
	}
}

// TestSnapshotRefuses verifies that objects that are not all objects of a type, as the server has them, are
// refused with file, cause and remedy.
func TestSnapshotRefuses(t *testing.T) {
	here := snapshot.Server{UID: "here"}
	tests := map[string]struct {
		typ    string
		origin snapshot.Origin
		want   string
	}{
		"redacted": {"widgets", snapshot.Origin{Server: here, Redacted: []snapshot.Redaction{{Resources: []string{"widgets"},
			Paths: []string{".data"}}}}, "saved without .data: save it without --redact"},
		"one namespace": {"widgets", snapshot.Origin{Server: here, Namespace: "web"}, "only the namespace web was saved"},
		"some objects":  {"widgets partial", snapshot.Origin{Server: here}, "only some"},
		"unsorted":      {"widgets unsorted", snapshot.Origin{Server: here}, "not sorted"},
		"repeated":      {"widgets repeated", snapshot.Origin{Server: here}, "several have one name"},
		"versions":      {"widgets versions", snapshot.Origin{Server: here}, "several versions"},
		"not a number":  {"widgets opaque", snapshot.Origin{Server: here}, "unknown"},
		"no cluster":    {"widgets", snapshot.Origin{}, "the cluster is unknown"},
		"failed":        {"widgets failed", snapshot.Origin{Server: here}, "a broken webhook"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			path := writeSnapshot(t, tt.origin, tt.typ)
			_, keys, err := loadKeys(openContent(t, newStore(t, t.TempDir(), Options{Snapshot: path}), "widgets"))
			if err == nil || len(keys) > 0 {
				t.Fatalf("loaded %v, %v", keys, err)
			}
			for _, part := range []string{path + ": ", "restore widgets", tt.want, "Options.Snapshot"} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("the error is %q, want %q in it", err, part)
				}
			}
		})
	}
	store := newStore(t, t.TempDir(), Options{Snapshot: writeSnapshot(t, snapshot.Origin{Server: here}, "widgets")})
	selected := viewOf("widgets")
	selected.Options, selected.Complete = "labels", false
	content, err := store.Open(t.Context(), selected)
	if err == nil {
		_, _, err = loadKeys(content)
	}
	if err == nil || !strings.Contains(err.Error(), "labels") {
		t.Errorf("a selection is not refused: %v", err)
	}
	missing := openContent(t, newStore(t, t.TempDir(), Options{Snapshot: "/missing/file"}), "widgets")
	if _, _, err := loadKeys(missing); err == nil || !strings.Contains(err.Error(), "/missing/file") {
		t.Errorf("a missing file is not reported: %v", err)
	}
}
