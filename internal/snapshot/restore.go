package snapshot

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/crdcache/crdcache/dynamicinformer/persistence"
)

// Source starts informers from a snapshot, which it opens on first use. It is safe for concurrent use.
type Source struct {
	path string
	mu   sync.Mutex
	file *File // nil before the first use
}

// NewSource returns the Source of a file; of none if path is empty.
func NewSource(path string) *Source { return &Source{path: path} }

// Close closes the file.
func (s *Source) Close() error {
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}

// Load calls f with the checkpoint from which an informer can continue, and with the objects of a view. It
// does nothing if the file does not have the type. Objects that are not those of the view are an error.
func (s *Source) Load(view persistence.View,
	f func(persistence.Checkpoint, persistence.LoadFunc) error) error {
	if s.path == "" {
		return nil
	}
	file, err := s.open()
	if err != nil {
		return err
	}
	objects := file.Objects(view.Resource.GroupResource())
	if objects == nil || objects.entry.NotRequested {
		return nil
	}
	e, origin := objects.entry, file.contents.Origin
	if problem := objects.whyNotRestorable(view); problem != "" {
		return fmt.Errorf("%s: cannot restore %s from the snapshot: %s, or remove Options.Snapshot", s.path,
			e.GVR().GroupResource(), problem)
	}
	at := persistence.Checkpoint{ResourceVersion: e.ResourceVersion, APIVersion: e.Version, Kind: e.Kind,
		Namespaced: e.Namespaced, Objects: e.Objects, Time: origin.Created,
		Cluster: types.UID(origin.Server.UID)}
	if err := f(at, objects.loadRecords); err != nil {
		return fmt.Errorf("%s: %w", s.path, err)
	}
	return nil
}

func (s *Source) open() (_ *File, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == nil {
		s.file, err = Open(s.path)
	}
	return s.file, err
}

// whyNotRestorable returns why a view cannot be restored, and the remedy; empty if it can.
func (o *Objects) whyNotRestorable(view persistence.View) string {
	contents := o.file.contents
	for _, r := range contents.Redacted {
		if slices.Contains(r.Resources, view.Resource.GroupResource().String()) {
			return "saved without " + strings.Join(r.Paths, ", ") + ": save it without --redact"
		}
	}
	for _, r := range contents.Incomplete {
		if r.Concerns(view.Resource.GroupResource()) {
			return r.Text + ": save it from the cluster"
		}
	}
	switch e := o.entry; {
	case !view.Complete:
		return "the informer has only some objects or fields (" + view.Options + "): cache all of them"
	case o.loaded != nil:
		return "it is a folder: name a file"
	case e.Missing != nil:
		return "saving failed (" + e.Missing.Message + "): save it again"
	case e.Partial != "":
		return e.Partial + ": save it from the cluster"
	case e.Namespaced && contents.Namespace != "":
		return "only the namespace " + contents.Namespace + " was saved: save it without --namespace"
	case e.Written != nil:
		return "the objects have several versions: save it from the cluster"
	case e.Unsorted:
		return "the objects are not sorted, or several have one name: save it from the cluster"
	case e.ResourceVersion == "" || contents.Server.UID == "":
		return "the resource version or the cluster is unknown: save it with the right to get the namespace kube-system"
	}
	return ""
}

// loadRecords is a persistence.LoadFunc.
func (o *Objects) loadRecords(onRecord func(persistence.Record) error) error {
	for i := range o.entry.Blocks {
		stored, _, err := o.read(i, nil)
		if err == nil {
			err = onRecord(persistence.Record{Head: stored.Head, Bodies: stored.Bodies,
				Retained: stored.StoredSize()})
		}
		if err != nil {
			return err
		}
	}
	return nil
}
