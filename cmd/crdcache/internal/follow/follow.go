package follow

import (
	"context"
	"errors"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/session"
	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/indexers/query"
	"github.com/crdcache/crdcache/internal/manifest"
)

// Run prints objects and changes of the clusters until ctx ends or the reader of the output closes the pipe.
// It prints missing types as pending and follows them after they are installed. If a cluster has none of the
// types, Run returns an error unless Wait is set or a name is a wildcard.
func Run(ctx context.Context, readers []*session.Reader, o Options) error {
	o.Reader = readers[0]
	for _, r := range readers {
		r.AllowWatches()
	}
	readCtx, stop := print.WithHangup(ctx, o.Out)
	defer stop()
	output := newStdout(o.Out, o.Color)
	var textPrinter printer
	if !o.printsTables() {
		var err error
		if textPrinter, err = o.newTextPrinter(output); err != nil {
			return err
		}
	}
	err := session.EachCluster(readCtx, readers, func(ctx context.Context, r *session.Reader) error {
		clusterOptions := o
		clusterOptions.Reader = r
		return clusterOptions.followCluster(ctx, output, textPrinter)
	})
	if errors.Is(context.Cause(readCtx), print.ErrHungUp) {
		return print.WriteHungUp(o.Out)
	}
	return err
}

func (o Options) followCluster(ctx context.Context, output *stdout, textPrinter printer) error {
	syncCtx, cancel := o.WithTimeout(ctx)
	defer cancel()
	resources, unresolved := o.Resolve(syncCtx, o.TypeNames(), "list")
	noMatches, otherErr := o.splitUnresolved(unresolved)
	if len(resources) == 0 && (otherErr != nil || !o.WaitForTypes &&
		!slices.ContainsFunc(o.TypeNames(), isWildcard)) {
		return unresolved
	}
	for _, r := range resources {
		if _, err := o.newMatcher(r); err != nil {
			return err
		}
	}
	if len(resources) == 1 && o.Query != nil { // a query rarely fits several types
		o.UseSchema(resources[0], o.Config, o.Query)
	}
	return errors.Join(otherErr, o.run(ctx, syncCtx, output, textPrinter, resources, noMatches))
}

// splitUnresolved separates missing types from other errors. It only warns about unknown groups and
// files, because their types are followed once they are discovered, or the files are corrected.
func (o Options) splitUnresolved(unresolved error) (noMatches []*discovery.NoMatchError, otherErr error) {
	for _, err := range session.SplitJoined(unresolved) {
		switch noMatch, isNoMatch := errors.AsType[*discovery.NoMatchError](err); {
		case isNoMatch:
			noMatches = append(noMatches, noMatch)
		case errors.As(err, new(*session.UnknownGroupsError)), errors.As(err, new(*session.UncollectedError)),
			errors.As(err, new(*manifest.Problem)):
			o.Warnf("%v", err)
		default:
			otherErr = errors.Join(otherErr, err)
		}
	}
	return noMatches, otherErr
}

func isWildcard(typeName string) bool {
	name, err := discovery.ParseName(typeName)
	return err == nil && name.HasWildcard()
}

func (o Options) newMatcher(r discovery.Resource) (*query.Matcher, error) {
	declared, _, err := o.Declared(r)
	if err != nil {
		return nil, err
	}
	q := o.Query
	if q != nil {
		q = o.WithSchema(r, q)
	}
	matcher, err := query.NewMatcher(q, declared.Indexes...)
	return matcher, session.ExplainQuery(err)
}

// run follows the existing types in resources and the missing types in noMatches.
func (o Options) run(ctx, syncCtx context.Context, output *stdout, textPrinter printer,
	resources []discovery.Resource, noMatches []*discovery.NoMatchError) (err error) {
	tracker, err := o.Tracker()
	if err != nil {
		return err
	}
	selection, err := discovery.NewSelection(o.TypeNames()...)
	if err != nil {
		return err
	}
	selector := &selector{Selection: selection, snapshot: tracker.Snapshot}
	runCtx, stop := context.WithCancel(ctx)
	r := &follower{
		Options: o, ctx: runCtx, tracker: tracker, typeSelector: selector, resources: resources,
		screen: &screen{stdout: output}, textPrinter: textPrinter, status: newStatusReporter(o.ErrOut),
		unwatchable:      newUnwatchableTypes(),
		mayGainTypes:     len(noMatches) > 0 || selector.hasPatterns(),
		firstTypeStarted: newSignal(), initialObjectsReceived: map[schema.GroupVersionResource]onceSignal{},
	}
	var background sync.WaitGroup
	defer background.Wait()
	defer stop()
	defer r.status.end()
	defer r.screen.stopOutput() // runs first, so that the last line is complete
	// ended by stop; it fails only if called twice
	background.Go(func() { _ = tracker.Run(runCtx) })
	background.Go(func() { o.Follow(runCtx, tracker.Refresh) }) // ended by stop
	for _, noMatch := range noMatches {
		r.status.printLine("%s: Pending: %s", noMatch.Name, print.Printable(noMatch.Error()))
	}
	followEnded := make(chan error, 1)
	background.Go(func() { followEnded <- r.follow(syncCtx) }) // ended by stop
	select {
	case err := <-followEnded:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-r.screen.failed:
		return r.screen.err
	}
}

// Options select the followed types and the output format.
type Options struct {
	*session.Reader // of the current cluster; Run sets it
	Style           print.Style
	// Query filters the objects. An object that stops matching is reported as deleted.
	Query query.Query
	// Events prints the event type with each object, and prints each type as soon as it is synced.
	// Without Events, the output is like kubectl get --watch and starts when all types are synced.
	Events      bool
	ChangesOnly bool
	// Diff prints the changed fields below each changed object. It needs a table.
	Diff bool
	// Color colors events and differences.
	Color bool
	// WaitForTypes waits for types even if none exists.
	WaitForTypes bool
}

func (o Options) Validate() error {
	switch {
	case o.Diff && !o.printsTables():
		return session.Usagef("--diff needs a table: omit --output, or use wide")
	case o.Style.Format.Name == print.CSV:
		return session.Usagef("changes cannot be printed as csv: use jsonl or custom-columns")
	}
	return nil
}

func (o Options) printsTables() bool { return o.Style.Format.IsTable() }
