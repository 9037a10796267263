package serve

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

	"github.com/crdcache/crdcache/adapters/storage/s2"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/localserver"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/bind"
	"github.com/crdcache/crdcache/indexers/reload"
	"github.com/crdcache/crdcache/internal/naming"
	"github.com/crdcache/crdcache/serving/readapi"
	"github.com/crdcache/crdcache/serving/readapi/live"
)

// cacheServer caches types and serves them.
type cacheServer struct {
	*verb
	tracker *discovery.Tracker
	factory *dynamicinformer.Factory
	server  *live.Server
	binding *bind.Binding
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
	// printed at the start, because they matched no type. Only the binding's callbacks use both fields.
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
	s.server, err = live.New(live.Options{Factory: s.factory, Types: s.tracker.Types(), Config: s.Rest,
		Handler: readapi.HandlerOptions{Now: s.Now}})
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
	s.binding, err = s.server.Bind(settings, bind.Options{Compression: s2.New(),
		OnChange: s.onChange, OnProblem: s.onProblem})
	return err
}

func (s *cacheServer) onChange(old, changed *bind.Target) {
	isOther := old == nil || changed == nil || old.GVR != changed.GVR
	if isOther && old != nil {
		delete(s.initialTypes, old.GVR)
		s.notef("%s is no longer cached: it was deleted or replaced, or the config no longer selects it", old.Type)
	}
	if isOther && changed != nil && !s.initialTypes[changed.GVR] {
		s.notef("%s is cached now", changed.Type)
	}
}

func (s *cacheServer) onProblem(name string, err error) {
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

// stateChanged ends the clients' watches of a type when the server's own watch is no longer live. Clients
// then watch the cluster. It also reports types that cannot be read, such as forbidden types.
func (s *cacheServer) stateChanged(before, after status.Status) {
	if live.IsWatching(before) && !live.IsWatching(after) {
		s.server.EndWatches(after.GVR.GroupResource())
	}
	switch {
	case after.State == status.Degraded && before.State != after.State:
		s.notef("%s is read directly until it can be cached: %s", after.GVR.GroupResource(), after.Message)
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

// checkRequest refuses requests for incomplete types of files, and for discovery if there are such types: the
// read API answers them with the reasons.
func (s *cacheServer) checkRequest(request readapi.Request) error {
	types := []schema.GroupResource{request.GVR.GroupResource()}
	if request.GVR.Empty() {
		types = nil
	}
	if reasons := s.Reasons(types...); len(reasons) > 0 {
		return errors.New(reasons[0].Text)
	}
	if request.GVR.Empty() {
		return nil
	}
	return s.server.CheckRequest(request)
}

func (s *cacheServer) info() localserver.Info {
	host := s.Rest.Host
	if s.ReadsFiles() {
		host = s.FilesTitle()
	}
	info := localserver.Info{Identity: s.identity, Host: host, PID: os.Getpid(), Started: s.started,
		FilesTime: s.FilesTime(), Config: *s.configDigest.Load(), ConfigStatus: s.configStatus(), Page: s.web}
	for _, cached := range s.binding.Targets() {
		history := cached.Informer.History()
		isLive, text := s.server.State(cached.GVR.GroupResource())
		if reasons := s.Reasons(cached.GVR.GroupResource()); len(reasons) > 0 {
			isLive, text = false, reasons[0].Text
		}
		info.Types = append(info.Types, localserver.CachedType{
			Resource: cached.Type, Namespace: history.Namespace, State: text,
			Objects: history.Snapshot.Len(),
			Live:    isLive,
			Reduced: history.Pruned,
			Indexes: naming.Texts(cached.Indexes(), func(index *indexers.Index) string { return index.Name }),
		})
		if current := cached.Informer.Status(); current.Reason == status.ReasonRepeatedKeys {
			info.Warnings = append(info.Warnings, localserver.Absence{
				Name: cached.GVR.GroupResource().String(), Reason: current.Message})
		}
	}
	for cluster, factory := range s.group.All() {
		for _, c := range factory.Conditions() {
			if problem := connectionProblem(c); problem != "" {
				info.Warnings = append(info.Warnings, localserver.Absence{Name: cluster, Reason: problem})
			}
		}
	}
	problems := s.binding.Problems()
	for _, name := range slices.Sorted(maps.Keys(problems)) {
		info.Absent = append(info.Absent, localserver.Absence{Name: name, Reason: problems[name].Error()})
	}
	return info
}
