package cli

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/localserver"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/indexers/reload"
	"github.com/crdcache/crdcache/readapi"
	"github.com/crdcache/crdcache/readapi/live"
)

// cacheServer caches types and serves them.
type cacheServer struct {
	*serveVerb
	tracker    *discovery.Tracker
	factory    *dynamicinformer.Factory
	server     *live.Server
	reconciler *live.Reconciler
	// definitions is the informer of CustomResourceDefinitions, which define the columns of tables.
	definitions *dynamicinformer.Informer
	identity    string
	// accountKnown is false if identity is that of a token: the API server did not report the account.
	accountKnown bool
	started      time.Time
	watcher      *reload.Watcher // nil without files to watch
	// digest is that of the config in effect; empty while a config is being applied.
	digest atomic.Pointer[string]
	// announced has the initial types, which serve has printed. reportedAbsent has the names that matched no
	// type, which serve has reported. Only the reconciler's callbacks use both fields.
	announced      map[schema.GroupVersionResource]bool
	reportedAbsent map[string]bool
	shutdownOnce   sync.Once
}

// prepare creates the caches and their server. After an error nothing needs to be released.
func (s *cacheServer) prepare() (err error) {
	options := dynamicinformer.Options{
		Config: s.Rest, Types: s.tracker.Types(),
		Listener: status.Listener{StateChanged: s.stateChanged},
	}
	if s.Cluster == "" {
		s.factory, err = dynamicinformer.New(options)
	} else {
		options.Listener.ConditionChanged = s.conditionChanged
		s.factory, err = s.group.Add(s.Cluster, options)
	}
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			s.shutdown()
		}
	}()
	s.server, err = live.New(live.Options{Factory: s.factory, Types: s.tracker.Types(),
		Config: s.Rest})
	if err != nil {
		return err
	}
	definitions, err := s.factory.Acquire(crd.GVR) // shutdown releases it
	if err != nil {
		return err
	}
	s.definitions = definitions.Informer()
	if err := s.server.AddType(s.definitions); err != nil {
		return err
	}
	settings, err := s.settings(s.Config)
	if err != nil {
		return err
	}
	s.reconciler, err = live.NewReconciler(live.ReconcilerOptions{
		Server: s.server, Tracker: s.tracker, Settings: settings,
		OnServed: s.onCached, OnDropped: s.onDropped, OnRejected: s.onRejected,
	})
	return err
}

func (s *cacheServer) onCached(r discovery.Resource) {
	if !s.announced[r.GVR] {
		s.notef("%s is cached now", r)
	}
}

func (s *cacheServer) onDropped(r discovery.Resource) {
	delete(s.announced, r.GVR)
	s.notef("%s is no longer cached: it was deleted or replaced, or the config no longer selects it", r)
}

func (s *cacheServer) onRejected(name string, err error) {
	if !s.reportedAbsent[name] { // resolveTypes has reported it
		s.notef("%s is not cached: %v", name, err)
	}
	delete(s.reportedAbsent, name)
}

func (s *cacheServer) notef(format string, args ...any) {
	fmt.Fprintf(s.ErrOut, "note: %s\n", print.OneSafeLine(fmt.Sprintf(format, args...)))
}

// shutdown stops the informers and the server. It does not wait for handlers. It can be called again.
func (s *cacheServer) shutdown() {
	s.shutdownOnce.Do(func() {
		if s.server != nil {
			s.server.Close()
		}
		_ = s.factory.Close() // never fails
	})
}

func (s *cacheServer) cachedType(gvr schema.GroupVersionResource) (live.CachedType, bool) {
	if cached, ok := s.reconciler.Type(gvr.GroupResource()); ok && cached.GVR == gvr {
		return cached, true
	}
	return live.CachedType{Resource: discovery.Resource{GVR: crd.GVR}, Informer: s.definitions},
		gvr == crd.GVR
}

// stateChanged closes the clients' watches of a type when the server's own watch is no longer live. Clients
// then continue at the cluster. It reports types that cannot be read, such as forbidden ones.
func (s *cacheServer) stateChanged(before, after status.Status) {
	if isWatching(before) && !isWatching(after) {
		s.server.EndWatches(after.GVR.GroupResource())
	}
	if after.State == status.Degraded && before.State != after.State {
		s.notef("%s is read from the cluster until it can be cached: %s",
			after.GVR.GroupResource(), after.Message)
	}
}

// conditionChanged reports whether one of several clusters can be reached.
func (s *cacheServer) conditionChanged(before, after status.Condition) {
	was, is := connectionProblem(before), connectionProblem(after)
	switch {
	case was == "" && is != "":
		s.Warnf("%s", is)
	case was != "" && is == "":
		s.notef("the API server responds again")
	}
}

// connectionProblem returns why and since when a cluster cannot be read, or "" for other conditions.
func connectionProblem(c status.Condition) string {
	problem := map[status.ConditionType]string{
		status.ConditionReachable:     "the API server has not responded",
		status.ConditionAuthenticated: "the API server has refused the credentials",
	}[c.Type]
	if problem == "" || c.Status != metav1.ConditionFalse {
		return ""
	}
	return fmt.Sprintf("%s since %s: %s", problem, c.Since.Format(time.DateTime), c.Message)
}

// canAnswer returns why a request cannot be answered from the cache, or nil if it can.
func (s *cacheServer) canAnswer(request readapi.Request) error {
	k, ok := s.cachedType(request.GVR)
	if !ok {
		return errors.New("it is not cached")
	}
	switch h := k.Informer.History(); {
	case !s.isLive(k):
		return fmt.Errorf("the cache may be out of date: %s", s.stateText(k))
	case h.Namespace != "" && h.Namespace != request.Namespace:
		return fmt.Errorf("only the namespace %s is cached", h.Namespace)
	}
	return nil
}

// isLive reports whether a type is synced, watched and served.
func (s *cacheServer) isLive(k live.CachedType) bool {
	return isWatching(k.Informer.Status()) && s.server.Serves(k.Informer.GVR().GroupResource())
}

func (s *cacheServer) resolve(name string) ([]discovery.Resource, error) {
	found, err := s.tracker.Snapshot().Catalog().Resolve(name)
	if err != nil {
		return nil, err
	}
	if len(found.Alternatives)+len(found.FailedGroupVersions) > 0 {
		return nil, errors.New("the name is ambiguous, so the cluster resolves it")
	}
	return found.Resources, nil
}

func (s *cacheServer) info() localserver.Info {
	i := localserver.Info{Identity: s.identity, Host: s.Rest.Host, PID: os.Getpid(),
		Started: s.started,
		Config:  *s.digest.Load(), ConfigStatus: s.configStatus(), Page: s.web}
	for _, k := range s.reconciler.Types() {
		h := k.Informer.History()
		cachedType := localserver.CachedType{
			Resource: k.Resource, Namespace: h.Namespace, State: s.stateText(k), Objects: h.Snapshot.Len(),
			Live: s.isLive(k),
		}
		for _, index := range k.Indexes {
			cachedType.Indexes = append(cachedType.Indexes, index.Name)
		}
		i.Types = append(i.Types, cachedType)
	}
	for cluster, factory := range s.group.All() {
		for _, c := range factory.Conditions() {
			if problem := connectionProblem(c); problem != "" {
				i.Unreachable = append(i.Unreachable, localserver.Absence{Name: cluster, Reason: problem})
			}
		}
	}
	problems := s.reconciler.Problems()
	for _, name := range slices.Sorted(maps.Keys(problems)) {
		i.Absent = append(i.Absent, localserver.Absence{Name: name, Reason: problems[name].Error()})
	}
	return i
}

// isWatching reports whether a cache is synced and its watch is running. As soon as the watch has ended, the
// cache can lack recent writes. Reason and Stale show this before the state changes.
func isWatching(s status.Status) bool {
	return s.State == status.Synced && !s.Stale && s.Reason == ""
}

// stateText returns the state of a type with the reason why the cache is not used.
func (s *cacheServer) stateText(k live.CachedType) string {
	status := k.Informer.Status()
	switch {
	case status.Reason != "":
		return fmt.Sprintf("%s (%s)", status.State, status.Reason)
	case status.Stale:
		return fmt.Sprintf("%s (no contact since %s)", status.State, status.LastContact.Format(time.TimeOnly))
	case isWatching(status) && !s.isLive(k):
		return fmt.Sprintf("%s (not used: discovery or its CustomResourceDefinition is not known yet)", status.State)
	}
	return string(status.State)
}
