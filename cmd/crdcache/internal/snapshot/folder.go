package snapshot

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/dynamicinformer/persistence"
	"github.com/crdcache/crdcache/internal/block"
	"github.com/crdcache/crdcache/internal/naming"
	"github.com/crdcache/crdcache/internal/packed"
)

// AllGroups is the group of an UnknownGroup for all types that the file does not have.
const AllGroups = "*"

// folder is a folder of adapters/storage/disk, which is read like a file. It is read without its lock: the
// valid part of a log never changes, so each type is consistent even while a process saves it.
type folder struct {
	logs          []folderLog
	damage, notes []error
}

type folderLog struct {
	*block.Log
	file *os.File
}

// IsFolder reports whether a path is a folder of persisted caches.
func IsFolder(path string) bool {
	_, err := os.Stat(filepath.Join(path, block.LockName))
	return err == nil && len(logsIn(path)) > 0
}

func logsIn(path string) (paths []string) {
	entries, _ := os.ReadDir(path) // other readers of the folder report the error
	for _, entry := range entries {
		if strings.HasSuffix(entry.Name(), block.LogSuffix) {
			paths = append(paths, filepath.Join(path, entry.Name()))
		}
	}
	return paths
}

// openFolder copies the content of a folder to a snapshot in memory.
func openFolder(path string) (*File, error) {
	f := &folder{}
	for _, path := range logsIn(path) {
		l, err := openLog(path)
		if errors.Is(err, fs.ErrNotExist) { // a process has removed it
			continue
		}
		defer l.file.Close()
		if err != nil {
			f.damage = append(f.damage, fmt.Errorf("%s: a type is unknown: %w", path, err))
			continue
		}
		if f.logs = append(f.logs, l); l.Damage != nil {
			f.note("%s: the last save of %s is not complete, so an earlier one is read: %w", path, l.resource(), l.Damage)
		}
	}
	var buffer bytes.Buffer
	var file *File
	err := f.write(NewWriter(&buffer, Origin{}))
	if err == nil {
		file, err = NewFile(bytes.NewReader(buffer.Bytes()), int64(buffer.Len()))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	file.contents.Damage, file.contents.Notes = f.damage, f.notes
	file.addNames()
	return file, nil
}

// openLog opens and checks a log. It returns an open file together with the error.
func openLog(path string) (l folderLog, err error) {
	if l.file, err = os.Open(path); err != nil {
		return l, err
	}
	info, err := l.file.Stat()
	if err == nil {
		l.Log, err = block.ReadLog(l.file, info.Size(), nil)
	}
	if errors.Is(err, block.ErrKey) {
		err = fmt.Errorf("%w: only programs with the key can read it", err)
	}
	return l, err
}

func (f *folder) note(format string, args ...any) {
	f.notes = append(f.notes, fmt.Errorf(format, args...))
}

func (l folderLog) resource() schema.GroupResource { return l.View.Resource.GroupResource() }

// write writes a file with all types. It prefers logs of the cluster that was saved last, complete logs, and
// later ones.
func (f *folder) write(w *Writer) error {
	byTime := func(a, b folderLog) int { return a.At.Time.Compare(b.At.Time) }
	origin := Origin{UnknownGroups: []UnknownGroup{{Group: AllGroups, Version: AllGroups,
		Reason: "a persisted cache has only the types that its program reads"}}}
	var last persistence.Checkpoint
	if len(f.logs) > 0 {
		last = slices.MaxFunc(f.logs, byTime).At
		origin.Server.UID, origin.Created = string(last.Cluster), last.Time
		origin.Server.Host, _, _ = strings.Cut(last.Endpoint, " ")
	}
	rank := func(l folderLog) int {
		switch {
		case l.At.Cluster != last.Cluster || l.At.Cluster == "" && l.At.Endpoint != last.Endpoint:
			return 2
		case !l.View.Complete:
			return 1
		}
		return 0
	}
	slices.SortFunc(f.logs, func(a, b folderLog) int { return cmp.Or(rank(a)-rank(b), byTime(b, a)) })
	written := map[schema.GroupResource]bool{}
	for _, l := range f.logs {
		gr := l.resource()
		if written[gr] {
			f.note("%s has another cache of %s, which is not read", l.file.Name(), gr)
			continue
		}
		written[gr] = true
		var err error
		if rank(l) == 2 {
			err = w.AddMissing(l.describe(), apierrors.NewForbidden(gr, "",
				fmt.Errorf("the persisted cache is of another cluster (UID %s)", l.At.Cluster)).Status(), false)
		} else if err = l.copyTo(w.BeginType(l.describe())); err == nil && l.At.Time.Before(origin.Created) {
			origin.Created = l.At.Time
		}
		if err != nil {
			f.damage = append(f.damage, fmt.Errorf("%s: %s is unknown: %w", l.file.Name(), gr, err))
		}
	}
	w.SetOrigin(func(o *Origin) { *o = origin })
	return w.Commit()
}

// describe returns the type of a log, as far as the log and the built-in types describe it.
func (l folderLog) describe() Type {
	t := Type{Group: l.View.Resource.Group, Version: l.At.APIVersion, Resource: l.View.Resource.Resource,
		Kind: l.At.Kind, Namespaced: l.At.Namespaced, Versions: []string{l.At.APIVersion}}
	if known, ok := naming.FindBuiltin(t.Group, "", t.Resource); ok {
		t.Kind, t.Namespaced = known.Kind, known.Has(naming.Namespaced)
		t.ShortNames, t.Categories = known.ShortNames(), known.Categories()
	}
	switch {
	case !l.View.Complete:
		t.Partial = "the program reads only some objects or fields: " + l.View.Options
	case l.At.Namespaces != "":
		t.Partial = "the program reads only some namespaces, each at its version: " + l.At.Namespaces
	}
	return t
}

// copyTo adds the objects of a log to a type. It copies records without changes as they are.
func (l folderLog) copyTo(t *TypeWriter) error {
	changed := map[string][]byte{}
	err := l.Records(func(record []byte) error {
		if block.Kind(record[0]) == block.Objects {
			return nil
		}
		text, err := block.ReadText(block.Changes, record)
		if err != nil {
			return err
		}
		return packed.ReadChanges(text, func(key string, json []byte) error {
			changed[key] = bytes.Clone(json)
			return nil
		})
	})
	if err != nil {
		return err
	}
	var added []string // the keys of changed objects that are not added yet, in their order
	for key, json := range changed {
		if json != nil {
			added = append(added, key)
		}
	}
	slices.Sort(added)
	addUntil := func(key string) (err error) {
		for err == nil && len(added) > 0 && (key == "" || added[0] < key) {
			err = t.Add(changed[added[0]], nil)
			added = added[1:]
		}
		return err
	}
	err = l.Records(func(record []byte) error {
		if block.Kind(record[0]) != block.Objects {
			return nil
		}
		stored, err := block.ReadObjects(record)
		if err != nil {
			return err
		}
		objects, err := packed.ReadBlock(stored.Head, stored.Bodies, stored.StoredSize())
		if err != nil || len(objects) == 0 {
			return err
		}
		if t.entry.Kind == "" {
			t.entry.Kind, t.entry.Namespaced = objects[0].GroupVersionKind().Kind, objects[0].Namespace() != ""
		}
		if err := addUntil(objects[0].Key()); err != nil {
			return err
		}
		isChanged := func(o *packed.Object) bool { _, ok := changed[o.Key()]; return ok }
		if !slices.ContainsFunc(objects, isChanged) &&
			(len(added) == 0 || added[0] > objects[len(objects)-1].Key()) {
			return t.addBlock(record, objects)
		}
		for _, o := range objects {
			err := addUntil(o.Key())
			if err == nil && !isChanged(o) {
				var json []byte
				if json, err = o.AppendJSON(nil); err == nil {
					err = t.Add(json, nil)
				}
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err = cmp.Or(err, addUntil("")); err != nil {
		return err
	}
	if t.entry.Objects != l.At.Objects {
		return fmt.Errorf("it has %d objects, and its checkpoint %d", t.entry.Objects, l.At.Objects)
	}
	return t.Close(l.At.ResourceVersion)
}

// addNames adds the names of custom types from their definitions, if the file has them.
func (f *File) addNames() {
	definitions := f.Objects(crd.GVR.GroupResource())
	for i := 0; definitions != nil && i < len(f.types); i++ {
		t := &f.types[i].entry.Type
		record, ok, _ := definitions.Get(t.GVR().GroupResource().String()) // their readers get errors
		if d, err := crd.Decode(record.JSON); ok && err == nil {
			t.Singular, t.ShortNames, t.Categories = d.Names.Singular, d.Names.ShortNames, d.Names.Categories
			t.Versions = d.ServedVersions()
			f.contents.Types[i].Type = *t
		}
	}
}
