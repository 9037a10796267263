package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/local"
	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/readapi"
	"github.com/crdcache/crdcache/readapi/live"
)

// serving is the types that are kept.
type serving struct {
	*serveOptions
	tracker *discovery.Tracker
	factory *dynamicinformer.Factory
	server  *live.Server
	types   []keptType
	// definitions are the CustomResourceDefinitions, which say how types are shown.
	definitions *dynamicinformer.Informer
	files       *local.State // nil without --state
	identity    string
	started     time.Time
}

// keptType is one of them.
type keptType struct {
	discovery.Resource
	*dynamicinformer.Informer
	indexes []*indexers.Index
}

// keep makes the informers of types, and what serves them. An error leaves nothing behind.
func (s *serving) keep(resources []discovery.Resource) (err error) {
	options := dynamicinformer.Options{
		Config: s.Target.Config, Types: s.tracker.Types(), Listener: dynamicinformer.Listener{StateChanged: s.stateChanged},
		PersistenceInterval: local.StateInterval,
	}
	if s.stateFolder != "" {
		if s.files, err = local.OpenState(s.stateFolder, s.identity); err != nil {
			return fmt.Errorf("--state: %w", err)
		}
		options.Persistence = s.files
	}
	if s.factory, err = dynamicinformer.New(options); err != nil {
		return errors.Join(err, s.closeFiles())
	}
	defer func() {
		if err != nil {
			s.shutdown()
		}
	}()
	s.server, err = live.New(live.Options{Factory: s.factory, Types: s.tracker.Types(), Config: s.Target.Config})
	if err != nil {
		return err
	}
	for _, r := range resources {
		if err := s.keepOne(r); err != nil {
			return err
		}
	}
	definitions, err := s.factory.Acquire(crd.GVR) // released by shutdown; the view that the server has, too
	if err != nil {
		return err
	}
	if s.definitions = definitions.Informer(); s.keeping(crd.GVR) == nil {
		return s.server.Keep(s.definitions)
	}
	return nil
}

func (s *serving) keepOne(r discovery.Resource) error {
	var options dynamicinformer.ResourceOptions
	if s.namespace != "" && r.Scope == discovery.Namespaced {
		options.Namespaces = dynamicinformer.InNamespaces(s.namespace)
	}
	indexes := s.Config.Indexes(r)
	options.Indexes = indexers.CompileIndexes(indexes...)
	handle, err := s.factory.Acquire(r.GVR, options) // released by shutdown
	if err != nil {
		return err
	}
	s.types = append(s.types, keptType{r, handle.Informer(), indexes})
	return s.server.Keep(handle.Informer(), indexes...)
}

func (s *serving) shutdown() {
	if s.server != nil {
		s.server.Close()
	}
	_ = s.factory.Shutdown(context.Background()) // nothing but requests is under way, which end at once, and saves of the state
	_ = s.closeFiles()                           // it has been saved
}

func (s *serving) closeFiles() error {
	if s.files == nil {
		return nil
	}
	return s.files.Close()
}

// keeping returns the informer of a type that is kept, or nil.
func (s *serving) keeping(gvr schema.GroupVersionResource) *keptType {
	i := slices.IndexFunc(s.types, func(k keptType) bool { return k.Resource.GVR == gvr })
	switch {
	case i >= 0:
		return &s.types[i]
	case s.definitions != nil && gvr == crd.GVR:
		return &keptType{Informer: s.definitions}
	}
	return nil
}

// stateChanged ends the watches of a type that no longer follows the cluster: whoever asks anew is told to ask there.
func (s *serving) stateChanged(before, after dynamicinformer.Status) {
	if !inContact(before) || inContact(after) {
		return
	}
	if k := s.keeping(after.GVR); k != nil {
		_ = s.server.Keep(k.Informer, k.indexes...) // which it could before
	}
}

// keeps returns why a request is not to be answered from what is kept; nil where it is.
func (s *serving) keeps(asked readapi.Request) error {
	k := s.keeping(asked.GVR)
	if k == nil {
		return errors.New("the server does not keep it")
	}
	switch h := k.History(); {
	case !s.fresh(k):
		return fmt.Errorf("the server's copy may be behind: %s", s.state(k))
	case h.Namespace != "" && h.Namespace != asked.Namespace:
		return fmt.Errorf("the server keeps the namespace %s alone", h.Namespace)
	}
	return nil
}

// fresh reports whether a type is filled, in contact with the cluster, and served.
func (s *serving) fresh(k *keptType) bool {
	return inContact(k.Status()) && s.server.Serves(k.Informer.GVR().GroupResource())
}

// resolve returns what a name stands for.
func (s *serving) resolve(name string) ([]discovery.Resource, error) {
	found, err := s.tracker.Snapshot().Catalog().Resolve(name)
	if err != nil {
		return nil, err
	}
	if len(found.Alternatives)+len(found.Unknown) > 0 {
		return nil, errors.New("the name has several meanings, of which the cluster has to be asked")
	}
	return found.Resources, nil
}

// info says what is kept.
func (s *serving) info() local.Info {
	i := local.Info{Identity: s.identity, Host: s.Target.Config.Host, PID: os.Getpid(), Started: s.started, Config: s.Config.Digest(), Page: s.web != nil}
	for n := range s.types {
		k := &s.types[n]
		h := k.History()
		one := local.Kept{
			Resource: k.Resource, Namespace: h.Namespace, State: s.state(k), Objects: h.Snapshot.Len(), Fresh: s.fresh(k),
		}
		for _, index := range k.indexes {
			one.Indexes = append(one.Indexes, index.Name)
		}
		i.Types = append(i.Types, one)
	}
	return i
}

// inContact reports whether a cache follows its type. A request that fails degrades the state of an informer later, if at
// all; until then its watch is not open, and the cache may lack what has just been written.
func inContact(s dynamicinformer.Status) bool {
	return s.State == dynamicinformer.StateSynced && !s.Stale && s.Reason == ""
}

// state is that of a type in a word, with what keeps it from being read here.
func (s *serving) state(k *keptType) string {
	status := k.Status()
	switch {
	case status.Reason != "":
		return fmt.Sprintf("%s (%s)", status.State, status.Reason)
	case status.Stale:
		return fmt.Sprintf("%s (no contact since %s)", status.State, status.LastContact.Format(time.TimeOnly))
	case inContact(status) && !s.fresh(k):
		return fmt.Sprintf("%s (not served: its definition is not known)", status.State)
	}
	return string(status.State)
}
