package snapshot

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/dynamicinformer/persistence"
	"github.com/crdcache/crdcache/internal/block"
	"github.com/crdcache/crdcache/internal/naming"
	"github.com/crdcache/crdcache/internal/packed"
)

// AllGroups is the group of an UnknownGroup for all types that the file does not have.
const AllGroups = "*"

// folderLog is a log in a folder of adapters/storage/disk. It is read without the lock of the folder: the
// valid part of a log never changes, so each type is consistent even while a process saves it.
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

// openFolder loads the content of a folder.
func openFolder(path string) (*File, error) {
	if !IsFolder(path) {
		return nil, fmt.Errorf("%s is neither a snapshot nor a folder of saved caches", path)
	}
	f := &File{close: func() error { return nil }}
	var logs []folderLog
	for _, path := range logsIn(path) {
		l, err := openLog(path)
		if errors.Is(err, fs.ErrNotExist) { // a process has removed it
			continue
		}
		defer l.file.Close()
		if err != nil {
			f.damage("%s: a type is unknown: %w", path, err)
			continue
		}
		if logs = append(logs, l); l.Damage != nil {
			f.note("%s: the last save of %s is not complete, so an earlier one is read: %w", path, l.resource(), l.Damage)
		}
	}
	f.loadLogs(logs)
	slices.SortFunc(f.types, func(a, b *Objects) int { return compareTypes(a.entry, b.entry) })
	f.addNames()
	f.contents.Types = naming.Map(f.types, func(o *Objects) SavedType { return o.entry.SavedType })
	return f, nil
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

func (f *File) note(format string, args ...any) {
	f.contents.Notes = append(f.contents.Notes, fmt.Errorf(format, args...))
}

func (f *File) damage(format string, args ...any) {
	f.contents.Damage = append(f.contents.Damage, fmt.Errorf(format, args...))
}

func (l folderLog) resource() schema.GroupResource { return l.View.Resource.GroupResource() }

// loadLogs loads the types of the cluster that was saved last. It prefers complete and later logs.
func (f *File) loadLogs(logs []folderLog) {
	byTime := func(a, b folderLog) int { return a.At.Time.Compare(b.At.Time) }
	origin := &f.contents.Origin
	origin.UnknownGroups = []UnknownGroup{{Group: AllGroups, Version: AllGroups,
		Reason: "a persisted cache has only the types that its program reads"}}
	var last persistence.Checkpoint
	if len(logs) > 0 {
		last = slices.MaxFunc(logs, byTime).At
		origin.Server.UID, origin.Created = string(last.Cluster), last.Time.UTC().Truncate(time.Second)
		origin.Server.Host, _, _ = strings.Cut(last.Endpoint, " ")
	}
	slices.SortFunc(logs, func(a, b folderLog) int {
		switch {
		case a.View.Complete == b.View.Complete:
			return byTime(b, a)
		case a.View.Complete:
			return -1
		}
		return 1
	})
	for _, l := range logs {
		gr, name := l.resource(), l.file.Name()
		o := &Objects{file: f, entry: typeEntry{SavedType: l.describe()}}
		switch {
		case l.At.Cluster != last.Cluster || l.At.Cluster == "" && l.At.Endpoint != last.Endpoint:
			f.note("%s has %s of another cluster (UID %s), which are not read", name, gr, l.At.Cluster)
		case f.Objects(gr) != nil:
			f.note("%s has another cache of %s, which is not read", name, gr)
		default:
			if err := o.load(l); err != nil {
				f.damage("%s: %s is unknown: %w", name, gr, err)
				continue
			}
			if f.contents.Size += l.End; l.At.Time.Before(origin.Created) {
				origin.Created = l.At.Time.UTC().Truncate(time.Second)
			}
			f.types = append(f.types, o)
		}
	}
}

// describe returns the type of a log, as far as the log and the built-in types describe it.
func (l folderLog) describe() SavedType {
	t := Type{Group: l.View.Resource.Group, Version: l.At.APIVersion, Resource: l.View.Resource.Resource,
		Kind: l.At.Kind, Namespaced: l.At.Namespaced, Versions: []string{l.At.APIVersion}}
	if known, ok := naming.FindBuiltin(t.Group, "", t.Resource); ok {
		t.Kind, t.Namespaced = known.Kind, known.Has(naming.Namespaced)
		t.ShortNames, t.Categories = known.ShortNames, known.Categories
	}
	switch {
	case !l.View.Complete:
		t.Partial = "the program reads only some objects or fields: " + l.View.Options
	case l.At.Namespaces != "":
		t.Partial = "the program reads only some namespaces, each at its version: " + l.At.Namespaces
	}
	return SavedType{Type: t, ResourceVersion: l.At.ResourceVersion, Stored: l.End}
}

// load loads the objects of a log. Their bodies stay compressed until they are read.
func (o *Objects) load(l folderLog) error {
	add := func(object *packed.Object) { o.loaded = append(o.loaded, object) }
	load := func(onRecord func(persistence.Record) error) error { return l.Load(l.file, onRecord) }
	if err := packed.ReadRecords(load, nil, add); err != nil {
		return err
	}
	slices.SortFunc(o.loaded, func(a, b *packed.Object) int { return strings.Compare(a.Key(), b.Key()) })
	e, size := &o.entry, 0
	for i, object := range o.loaded {
		n := object.JSONSize()
		if e.Bytes, size = e.Bytes+int64(n), size+n; i == 0 || size > blockSize {
			size, e.Blocks = n, append(e.Blocks, blockInfo{Offset: int64(i), First: object.Key()})
		}
		b := &e.Blocks[len(e.Blocks)-1]
		if b.Last == object.Key() {
			return block.ErrDamaged
		}
		b.Objects, b.Last = b.Objects+1, object.Key()
		e.count(object)
	}
	if len(o.loaded) > 0 && e.Kind == "" {
		e.Kind, e.Namespaced = o.loaded[0].GroupVersionKind().Kind, o.loaded[0].Namespace() != ""
	}
	if e.finish(); e.Objects != l.At.Objects {
		return fmt.Errorf("it has %d objects, and its checkpoint %d", e.Objects, l.At.Objects)
	}
	if problem := e.problem(); problem != "" {
		return errors.New(problem)
	}
	return nil
}

// addNames adds the names of custom types from their definitions, if the folder has them.
func (f *File) addNames() {
	definitions := f.Objects(crd.GVR.GroupResource())
	if definitions == nil {
		return
	}
	for _, o := range f.types {
		t := &o.entry.Type
		record, ok, _ := definitions.Get(t.GVR().GroupResource().String()) // their readers get errors
		if d, err := crd.Decode(record.JSON); ok && err == nil {
			t.Singular, t.ShortNames, t.Categories = d.Names.Singular, d.Names.ShortNames, d.Names.Categories
			t.Versions = d.ServedVersions()
		}
	}
}
