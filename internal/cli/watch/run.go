package watch

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/indexers/query"
	"github.com/crdcache/crdcache/internal/cli/caches"
	"github.com/crdcache/crdcache/internal/cli/indexed"
	"github.com/crdcache/crdcache/internal/cli/output"
	"github.com/crdcache/crdcache/internal/cli/reader"
	"github.com/crdcache/crdcache/internal/cli/tables"
)

// run finds the types, prints what happens, and ends with ctx or when it cannot write.
func (o *options) run(ctx context.Context) error {
	waiting, cancel := o.Target.Limit(ctx)
	defer cancel()
	types, unresolved := o.Find(waiting)
	if types == nil {
		return unresolved
	}
	matchers, err := o.matchers(types)
	if err != nil {
		return errors.Join(unresolved, err)
	}
	screen := newScreen(o.Out)
	printers, err := o.printers(ctx, types, screen)
	if err != nil {
		return errors.Join(unresolved, err)
	}
	if unresolved != nil {
		o.Warn(unresolved.Error())
	}
	return errors.Join(unresolved, o.follow(ctx, waiting, types, matchers, printers, screen))
}

// matchers makes the query of each type.
func (o *options) matchers(types *reader.Types) ([]*query.Matcher, error) {
	indexes, err := types.Indexes()
	if err != nil {
		return nil, err
	}
	matchers := make([]*query.Matcher, len(types.Resources))
	for i, r := range types.Resources {
		if matchers[i], err = query.NewMatcher(o.query, indexes[r.GVR]...); err != nil {
			return nil, indexed.Explain(err)
		}
	}
	return matchers, nil
}

// printers makes the printer of each type.
func (o *options) printers(ctx context.Context, types *reader.Types, screen *screen) ([]printer, error) {
	rows := make([]output.Rows, len(types.Resources))
	if o.style.Format.IsTable() {
		// The server prints rows only of what it lists, so that types without a CRD show name and age.
		rows = tables.NewDefinitionLoader(types.Client, o.ErrOut).Load(ctx, types.Resources)
	}
	printers := make([]printer, len(types.Resources))
	for i, r := range types.Resources {
		var err error
		if printers[i], err = o.newPrinter(r, len(types.Resources) > 1, rows[i], screen.out); err != nil {
			return nil, err
		}
	}
	return printers, nil
}

// follow runs the informers, and a tracker that tells them of their types.
func (o *options) follow(ctx, waiting context.Context, types *reader.Types, matchers []*query.Matcher, printers []printer, screen *screen) error {
	tracker, err := discovery.NewTracker(o.Target.Config, discovery.TrackerOptions{})
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(ctx)
	var tracking sync.WaitGroup
	defer tracking.Wait()
	defer stop()
	tracking.Go(func() { _ = tracker.Run(running) }) // ended by stop; it fails only when it has run before
	tracking.Go(func() {                             // ended by stop
		if err := o.Target.Follow(running, tracker.Refresh); err != nil {
			o.Warn("changes of the files are not followed: " + err.Error())
		}
	})

	cached, err := types.Caches(nil, caches.Options{
		Types: tracker.Types(), Listener: dynamicinformer.Listener{StateChanged: o.tell},
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
