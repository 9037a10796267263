package watch

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"k8s.io/client-go/dynamic"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/indexers/query"
	"github.com/crdcache/crdcache/internal/cli/caches"
	"github.com/crdcache/crdcache/internal/cli/indexed"
	"github.com/crdcache/crdcache/internal/cli/output"
	"github.com/crdcache/crdcache/internal/cli/tables"
)

func (o *options) warn(text string) { fmt.Fprintf(o.ErrOut, "warning: %s\n", text) }

// run resolves the types, prints what happens, and ends with ctx or when it cannot write.
func (o *options) run(ctx context.Context) error {
	httpClient, err := o.target.HTTPClient()
	if err != nil {
		return err
	}
	waiting, cancel := o.target.Limit(ctx)
	defer cancel()
	resources, unresolved := o.target.Resolve(waiting, o.types)
	if len(resources) == 0 {
		return unresolved
	}
	matchers, err := o.matchers(resources)
	if err != nil {
		return errors.Join(unresolved, err)
	}
	client, err := dynamicinformer.NewClient(o.target.Config, httpClient)
	if err != nil {
		return errors.Join(unresolved, err)
	}
	screen := newScreen(o.Out)
	printers, err := o.printers(ctx, client, resources, screen)
	if err != nil {
		return errors.Join(unresolved, err)
	}
	if unresolved != nil {
		fmt.Fprintf(o.ErrOut, "warning: %v\n", unresolved)
	}
	return errors.Join(unresolved, o.follow(ctx, waiting, client, resources, matchers, printers, screen))
}

// matchers makes the query of each type.
func (o *options) matchers(resources []discovery.Resource) ([]*query.Matcher, error) {
	matchers := make([]*query.Matcher, len(resources))
	for i, r := range resources {
		indexes, err := o.config.Indexes(r)
		if err != nil {
			return nil, err
		}
		if matchers[i], err = query.NewMatcher(o.query, indexes...); err != nil {
			return nil, indexed.Explain(err)
		}
	}
	return matchers, nil
}

// printers makes the printer of each type.
func (o *options) printers(ctx context.Context, client dynamic.Interface, resources []discovery.Resource, screen *screen) ([]printer, error) {
	rows := make([]output.Rows, len(resources))
	if o.format.IsTable() {
		// The server prints rows only of what it lists, so that types without a CRD show name and age.
		rows = tables.NewDefinitionLoader(client, o.ErrOut).Load(ctx, resources)
	}
	printers := make([]printer, len(resources))
	for i, r := range resources {
		var err error
		if printers[i], err = o.newPrinter(r, rows[i], screen.out); err != nil {
			return nil, err
		}
	}
	return printers, nil
}

// follow runs the informers, and a tracker that tells them of their types.
func (o *options) follow(ctx, waiting context.Context, client dynamic.Interface, resources []discovery.Resource, matchers []*query.Matcher, printers []printer, screen *screen) error {
	tracker, err := discovery.NewTracker(o.target.Config, discovery.TrackerOptions{})
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(ctx)
	var tracking sync.WaitGroup
	defer tracking.Wait()
	defer stop()
	tracking.Go(func() { _ = tracker.Run(running) }) // ended by stop; it fails only when it has run before
	tracking.Go(func() {                             // ended by stop
		if err := o.target.Follow(running, tracker.Refresh); err != nil {
			o.warn("changes of the files are not followed: " + err.Error())
		}
	})

	cached, err := caches.New(client, resources, caches.Options{
		Namespace: o.target.Namespace, Defaults: o.cached, Types: tracker.Types(), Listener: dynamicinformer.Listener{StateChanged: o.tell},
	})
	if err != nil {
		return err
	}
	defer cached.Shutdown()
	for i, c := range cached.All {
		feed := &feed{screen: screen, printer: printers[i], changesOnly: o.changesOnly}
		subscription, err := query.Subscribe(c.Informer, matchers[i], feed.handle)
		if err != nil {
			return err
		}
		tracking.Go(func() { // ended by stop
			select {
			case <-subscription.Synced():
				feed.begin()
			case <-running.Done():
			}
		})
	}
	unsynced := cached.Sync(waiting)
	if len(cached.Synced) == 0 && unsynced != nil {
		return unsynced
	}
	select {
	case <-ctx.Done():
		return errors.Join(unsynced, ctx.Err())
	case <-screen.broken:
		return errors.Join(unsynced, screen.err)
	}
}

// tell says on stderr how a type is doing.
func (o *options) tell(before, after dynamicinformer.Status) {
	switch {
	case after.State == dynamicinformer.StateStopped || after.State == before.State && after.Reason == before.Reason:
	case before.State == "" || after.State == dynamicinformer.StateSyncing:
	case after.Message != "":
		fmt.Fprintf(o.ErrOut, "%s: %s: %s\n", after.GVR.GroupResource(), after.State, output.Printable(after.Message))
	default:
		fmt.Fprintf(o.ErrOut, "%s: %s\n", after.GVR.GroupResource(), after.State)
	}
}
