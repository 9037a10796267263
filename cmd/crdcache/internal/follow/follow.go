package follow

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/session"
	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/indexers/query"
)

// Run prints objects and changes of the clusters until ctx ends or the reader of the output closes it. It
// prints missing types as pending and follows them when they are installed. If a cluster has no named type,
// it fails unless Wait is set or a name is a wildcard.
func Run(ctx context.Context, readers []*session.Reader, o Options) error {
	o.Reader = readers[0]
	reading, stop := print.WithHangup(ctx, o.Out)
	defer stop()
	out := newStdout(o.Out, o.Color)
	var text printer
	if !o.printsTables() {
		var err error
		if text, err = o.newText(out); err != nil {
			return err
		}
	}
	err := session.EachCluster(reading, readers, func(ctx context.Context, r *session.Reader) error {
		cluster := o
		cluster.Reader = r
		return cluster.followCluster(ctx, out, text)
	})
	if errors.Is(context.Cause(reading), print.ErrHungUp) {
		return print.WriteHungUp(o.Out)
	}
	return err
}

func (o Options) followCluster(ctx context.Context, out *stdout, text printer) error {
	syncCtx, cancel := o.WithTimeout(ctx)
	defer cancel()
	resources, unresolved := o.Resolve(syncCtx, o.TypeNames())
	absent, failed := splitUnresolved(unresolved)
	if len(resources) == 0 && (failed != nil || !o.Wait && !slices.ContainsFunc(absent, isWildcard)) {
		return o.proposeWait(unresolved, absent, failed)
	}
	for _, r := range resources {
		if _, err := o.matcher(r); err != nil {
			return err
		}
	}
	if err := o.warnOfMismatches(syncCtx, resources); err != nil {
		return err
	}
	return errors.Join(failed, o.run(ctx, syncCtx, out, text, resources, absent))
}

// proposeWait suggests --wait if missing types are the only problem.
func (o Options) proposeWait(unresolved error, absent []*discovery.NoMatchError, failed error) error {
	if failed != nil || !o.Events || len(absent) != 1 || len(absent[0].Suggestions) > 0 ||
		o.ReadsFiles() {
		return unresolved
	}
	return fmt.Errorf("%w; to watch it once it is installed, add --wait", unresolved)
}

// warnOfMismatches compares the query with the schema of the type. It skips several types, because a query
// rarely fits all of them.
func (o Options) warnOfMismatches(ctx context.Context, resources []discovery.Resource) error {
	if len(resources) != 1 || !query.UsesWhere(o.Query) {
		return nil
	}
	client, err := dynamicinformer.NewClient(o.Rest, nil)
	if err != nil {
		return err
	}
	o.WarnOfMismatches(ctx, client, resources[0], o.Query)
	return nil
}

// splitUnresolved separates missing types from other errors.
func splitUnresolved(unresolved error) (absent []*discovery.NoMatchError, failed error) {
	for _, err := range session.SplitJoined(unresolved) {
		var none *discovery.NoMatchError
		if errors.As(err, &none) {
			absent = append(absent, none)
		} else {
			failed = errors.Join(failed, err)
		}
	}
	return absent, failed
}

func isWildcard(absent *discovery.NoMatchError) bool {
	name, err := discovery.ParseName(absent.Name)
	return err == nil && name.HasWildcard()
}

// matcher compiles the query for a type.
func (o Options) matcher(r discovery.Resource) (*query.Matcher, error) {
	matcher, err := query.NewMatcher(o.Query, o.Config.Indexes(r)...)
	return matcher, session.ExplainQuery(err)
}

// run follows the existing types in resources and the missing names in absent.
func (o Options) run(ctx, syncCtx context.Context, out *stdout, text printer, resources []discovery.Resource,
	absent []*discovery.NoMatchError) (err error) {
	tracker, err := o.Tracker()
	if err != nil {
		return err
	}
	selector, err := newSelector(o.TypeNames(), tracker.Snapshot)
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(ctx)
	r := &run{
		Options: o, ctx: running, tracker: tracker, typeSelector: selector, resources: resources,
		screen: &screen{stdout: out}, textPrinter: text, status: newStatusReporter(o.ErrOut),
		unwatchable:      newUnwatchableTypes(),
		mayGainTypes:     len(absent) > 0 || selector.hasPatterns(),
		firstTypeStarted: newSignal(), initialObjectsReceived: map[schema.GroupVersionResource]signal{},
	}
	var tracking sync.WaitGroup
	defer tracking.Wait()
	defer stop()
	defer r.status.end()
	defer r.screen.stopOutput() // runs first, so that the last line is complete
	// ended by stop; it fails only if called twice
	tracking.Go(func() { _ = tracker.Run(running) })
	tracking.Go(func() { o.Follow(running, tracker.Refresh) }) // ended by stop
	for _, none := range absent {
		r.status.printLine("%s: Pending: %s", none.Name, print.Printable(none.Error()))
	}
	ended := make(chan error, 1)
	tracking.Go(func() { ended <- r.follow(syncCtx) }) // ended by stop
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-r.screen.broken:
		return r.screen.err
	}
}

// Options select the followed types and the output format.
type Options struct {
	*session.Reader // of the current cluster; Run sets it
	Style           print.Style
	// Query filters the objects. An object that stops matching is reported as deleted.
	Query query.Query
	// Events prints the event type with each object, and each type as soon as it is synced. Without Events
	// the output is that of kubectl get --watch, which starts when all types are synced.
	Events bool
	// ChangesOnly omits the initial objects.
	ChangesOnly bool
	// Diff prints the changed fields below each changed object. It needs a table.
	Diff bool
	// Color colors events and differences.
	Color bool
	// Timestamps prints the time of each event, Managers its field managers. Managers needs objects that are
	// cached with managed fields. KeepManagedFields prints those as well.
	Timestamps, Managers, KeepManagedFields bool
	// Wait waits for types even if none of them exists.
	Wait bool
}

// Check rejects incompatible options.
func (o Options) Check() error {
	switch {
	case o.Diff && !o.printsTables():
		return session.Usagef("--diff needs a table: omit --output, or use wide")
	case (o.Timestamps || o.Managers) && !o.printsTables() && o.Style.Format.Name != print.JSON &&
		o.Style.Format.Name != print.JSONLines && o.Style.Format.Name != print.YAML:
		return session.Usagef("--timestamps and --managers need table, json, jsonl or yaml output")
	case o.Style.Format.Name == print.CSV:
		return session.Usagef("changes cannot be printed as csv: use jsonl or custom-columns")
	}
	return nil
}

func (o Options) printsTables() bool { return o.Style.Format.IsTable() }
