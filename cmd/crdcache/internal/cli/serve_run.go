package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/exit"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/local"
	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/readapi/live"
)

// run keeps the types and serves them until somebody or something ends it.
func (o *serveOptions) run(ctx context.Context) error {
	identity, err := local.Identity(o.Target.Config)
	if err != nil {
		return err
	}
	waiting, cancel := o.Target.Limit(ctx)
	defer cancel()
	types, unresolved := o.Find(waiting)
	if unresolved != nil {
		return unresolved
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	tracker, err := o.Target.Tracker()
	if err != nil {
		return err
	}
	tracked := make(chan struct{})
	go func() { defer close(tracked); _ = tracker.Run(ctx) }() // ended by end
	defer func() { end(nil); <-tracked }()
	s := &serving{serveOptions: o, tracker: tracker, identity: identity, started: time.Now()}
	if err := s.keep(types.Resources); err != nil {
		return err
	}
	defer s.shutdown()
	options := local.Options{Place: local.PlaceOf(identity), Info: s.info, Resolve: s.resolve, Handler: s.server, Idle: o.idle}
	if o.web != nil {
		page, err := newPage(s)
		if err != nil {
			return err
		}
		defer page.close()
		options.Page = page.local()
	}
	if err := s.factory.Start(ctx); err != nil {
		return err
	}
	err = local.Serve(ctx, options, func() {
		fmt.Fprintf(o.ErrOut, "serving what is kept of %s; 'query' asks here from now on\n", o.Target.Config.Host)
		if options.Page != nil {
			fmt.Fprintf(o.ErrOut, "open %s (lets one browser in, once)\n", options.Page.Link())
		}
	})
	if errors.Is(context.Cause(ctx), context.Canceled) && err == nil && ctx.Err() != nil {
		return exit.ErrInterrupted
	}
	return err
}

// serving is the types that are kept.
type serving struct {
	*serveOptions
	tracker   *discovery.Tracker
	factory   *dynamicinformer.Factory
	server    *live.Server
	resources []discovery.Resource
	informers []*dynamicinformer.Informer
	identity  string
	started   time.Time
}

// keep makes the informers of types, and what serves them. An error leaves nothing behind.
func (s *serving) keep(resources []discovery.Resource) (err error) {
	s.factory, err = dynamicinformer.New(dynamicinformer.Options{Config: s.Target.Config, Types: s.tracker.Types()})
	if err != nil {
		return err
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
		if err := s.server.Keep(handle.Informer(), indexes...); err != nil {
			return err
		}
		s.resources, s.informers = append(s.resources, r), append(s.informers, handle.Informer())
	}
	return nil
}

func (s *serving) shutdown() {
	if s.server != nil {
		s.server.Close()
	}
	_ = s.factory.Shutdown(context.Background()) // nothing but requests is under way, which end at once
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
	for n, informer := range s.informers {
		status, h := informer.Status(), informer.History()
		i.Types = append(i.Types, local.Kept{
			Resource: s.resources[n], Namespace: h.Namespace, State: state(status), Objects: h.Snapshot.Len(),
			Fresh: h.Synced && inContact(status),
		})
	}
	return i
}

// inContact reports whether a cache follows its type. A request that fails degrades the state of an informer later, if at
// all; until then its watch is not open, and the cache may lack what has just been written.
func inContact(s dynamicinformer.Status) bool {
	return s.State == dynamicinformer.StateSynced && !s.Stale && s.Reason == ""
}

// state is that of an informer in a word, with what keeps it from following its type.
func state(s dynamicinformer.Status) string {
	switch {
	case s.Reason != "":
		return fmt.Sprintf("%s (%s)", s.State, s.Reason)
	case s.Stale:
		return fmt.Sprintf("%s (no contact since %s)", s.State, s.LastContact.Format(time.TimeOnly))
	}
	return string(s.State)
}
