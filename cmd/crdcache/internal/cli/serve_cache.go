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
	"github.com/crdcache/crdcache/serving/readapi"
	"github.com/crdcache/crdcache/serving/readapi/live"
)

// cacheServer caches types and serves them.
type cacheServer struct {
	*serveVerb
	tracker    *discovery.Tracker
	factory    *dynamicinformer.Factory
	server     *live.Server
	reconciler *live.Reconciler
	// crdInformer is the informer of CustomResourceDefinitions, which define the columns of tables.
	crdInformer *dynamicinformer.Informer
	identity    string
	// accountKnown is false if identity was derived from a token: the API server did not report the account.
	accountKnown  bool
	started       time.Time
	configWatcher *reload.Watcher // nil without files to watch
	// configDigest identifies the config in effect. It is empty while a new config is being applied.
	configDigest atomic.Pointer[string]
	// initialTypes are the types found at the start. reportedAbsent are the names for which a warning was
	// printed at the start, because they matched no type. Only the reconciler's callbacks use both fields.
	initialTypes   map[schema.GroupVersionResource]bool
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
	s.crdInformer = definitions.Informer()
	if err := s.server.AddType(s.crdInformer); err != nil {
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
	if !s.initialTypes[r.GVR] {
		s.notef("%s is cached now", r)
	}
}

func (s *cacheServer) onDropped(r discovery.Resource) {
	delete(s.initialTypes, r.GVR)
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
	return live.CachedType{Resource: discovery.Resource{GVR: crd.GVR}, Informer: s.crdInformer},
		gvr == crd.GVR
}

// stateChanged ends the clients' watches of a type when the server's own watch is no longer live. Clients
// then watch the cluster. It also reports types that cannot be read, such as forbidden types.
func (s *cacheServer) stateChanged(before, after status.Status) {
	if isWatching(before) && !isWatching(after) {
		s.server.EndWatches(after.GVR.GroupResource())
	}
	switch {
	case after.State == status.Degraded && before.State != after.State:
		s.notef("%s is read from the cluster until it can be cached: %s",
			after.GVR.GroupResource(), after.Message)
	case after.Reason == status.ReasonRepeatedKeys && before.Reason != after.Reason:
		s.Warnf("%s: %s", after.GVR.GroupResource(), after.Message)
	}
}

// conditionChanged reports whether one of several clusters can be reached.
func (s *cacheServer) conditionChanged(before, after status.Condition) {
	problemBefore, problemAfter := connectionProblem(before), connectionProblem(after)
	switch {
	case problemBefore == "" && problemAfter != "":
		s.Warnf("%s", problemAfter)
	case problemBefore != "" && problemAfter == "":
		s.notef("the API server responds again")
	}
}

// connectionProblem says why and since when a cluster cannot be read. It returns "" for other conditions.
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

// validateRequest returns an error if the cache cannot answer a request.
func (s *cacheServer) validateRequest(request readapi.Request) error {
	cached, ok := s.cachedType(request.GVR)
	if !ok {
		return errors.New("it is not cached")
	}
	switch history := cached.Informer.History(); {
	case !s.isLive(cached):
		return fmt.Errorf("the cache may be out of date: %s", s.stateText(cached))
	case history.Namespace != "" && history.Namespace != request.Namespace:
		return fmt.Errorf("only the namespace %s is cached", history.Namespace)
	}
	return nil
}

// isLive reports whether a type is synced, watched and served.
func (s *cacheServer) isLive(cached live.CachedType) bool {
	return isWatching(cached.Informer.Status()) && s.server.Serves(cached.Informer.GVR().GroupResource())
}

func (s *cacheServer) resolve(name string) ([]discovery.Resource, error) {
	resolution, err := s.tracker.Snapshot().Catalog().Resolve(name)
	if err != nil {
		return nil, err
	}
	if len(resolution.Alternatives)+len(resolution.FailedGroupVersions) > 0 {
		return nil, errors.New("the name is ambiguous, so the cluster resolves it")
	}
	return resolution.Resources, nil
}

func (s *cacheServer) info() localserver.Info {
	info := localserver.Info{Identity: s.identity, Host: s.Rest.Host, PID: os.Getpid(),
		Started: s.started,
		Config:  *s.configDigest.Load(), ConfigStatus: s.configStatus(), Page: s.web}
	for _, cached := range s.reconciler.Types() {
		history := cached.Informer.History()
		cachedType := localserver.CachedType{
			Resource: cached.Resource, Namespace: history.Namespace, State: s.stateText(cached),
			Objects: history.Snapshot.Len(),
			Live:    s.isLive(cached),
		}
		for _, index := range cached.Indexes {
			cachedType.Indexes = append(cachedType.Indexes, index.Name)
		}
		info.Types = append(info.Types, cachedType)
		if current := cached.Informer.Status(); current.Reason == status.ReasonRepeatedKeys {
			info.Warnings = append(info.Warnings, localserver.Absence{
				Name: cached.GVR.GroupResource().String(), Reason: current.Message})
		}
	}
	for cluster, factory := range s.group.All() {
		for _, c := range factory.Conditions() {
			if problem := connectionProblem(c); problem != "" {
				info.Warnings = append(info.Warnings, localserver.Absence{Name: cluster,
					Reason: problem})
			}
		}
	}
	problems := s.reconciler.Problems()
	for _, name := range slices.Sorted(maps.Keys(problems)) {
		info.Absent = append(info.Absent, localserver.Absence{Name: name, Reason: problems[name].Error()})
	}
	return info
}

// isWatching reports whether a cache is synced and its watch is running. After the watch has ended, the cache
// can lack recent writes. Reason and Stale show the end before State changes.
func isWatching(s status.Status) bool {
	return s.State == status.Synced && !s.Stale && s.Reason == ""
}

// stateText returns the state of a type with the reason why the cache is not used.
func (s *cacheServer) stateText(cached live.CachedType) string {
	status := cached.Informer.Status()
	switch {
	case status.Reason != "":
		return fmt.Sprintf("%s (%s)", status.State, status.Reason)
	case status.Stale:
		return fmt.Sprintf("%s (no contact since %s)", status.State, status.LastContact.Format(time.TimeOnly))
	case isWatching(status) && !s.isLive(cached):
		return fmt.Sprintf("%s (not used: discovery or its CustomResourceDefinition is not known yet)", status.State)
	}
	return string(status.State)
}
