package session

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/internal/naming"
)

// AddContexts adds the flags that select several clusters, and their completion.
func (f *ServerFlags) AddContexts(cmd *cobra.Command) {
	set := cmd.Flags()
	set.StringSliceVar(&f.contexts, "contexts", nil, "")
	set.BoolVar(&f.allContexts, "all-contexts", false, "Read the clusters of all contexts, as with --contexts '*'.")
	markShared(set, "contexts", "all-contexts")
	setCompletion(cmd, "contexts", func(_ context.Context, _ []string, toComplete string) []string {
		return completeList(f.kubeconfigNames(contextNames), toComplete)
	})
}

// Targets validates the flags and returns a target for each selected context. Without selected contexts, it
// returns the target of the current context or of --from. It sends no request.
func (f *ServerFlags) Targets(ctx context.Context, streams genericiooptions.IOStreams) ([]*Target, error) {
	if !f.SelectsContexts() {
		t, err := f.Target(ctx, streams)
		return []*Target{t}, err
	}
	if f.allContexts {
		return f.ContextTargets(ctx, streams, "*")
	}
	if len(f.contexts) == 0 {
		return nil, Usagef("--contexts is empty: is a shell variable unset?")
	}
	return f.ContextTargets(ctx, streams, f.contexts...)
}

// ContextTargets validates the flags and returns a target for each context that matches the patterns, in
// their order. It sends no request.
func (f *ServerFlags) ContextTargets(ctx context.Context, streams genericiooptions.IOStreams,
	patterns ...string) ([]*Target, error) {
	if err := f.validate(); err != nil {
		return nil, err
	}
	if len(f.fromPaths) > 0 {
		return nil, Usagef("--from and contexts cannot be used together: files need no cluster")
	}
	raw, err := f.kubeconfig.loader().RawConfig()
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	names, err := matchContexts(patterns, slices.Sorted(maps.Keys(raw.Contexts)))
	if err != nil {
		return nil, err
	}
	overrides := f.kubeconfig.flagOverrides()
	targets := make([]*Target, len(names))
	for i, name := range names {
		t := f.newTarget(streams)
		t.Cluster, t.Context = name, name
		t.ErrOut = clusterPrefixWriter{t.ErrOut, name}
		loader := clientcmd.NewNonInteractiveClientConfig(raw, name, &overrides, f.kubeconfig.loadingRules())
		t.contextErr = f.connect(t, loader)
		targets[i] = t
	}
	return targets, nil
}

// SelectsContexts reports whether the flags of AddContexts are given.
func (f *ServerFlags) SelectsContexts() bool { return f.allContexts || f.flagSet.Changed("contexts") }

// ContextTarget returns the target of one context, as ContextTargets does.
func (f *ServerFlags) ContextTarget(ctx context.Context, streams genericiooptions.IOStreams,
	name string) (*Target, error) {
	targets, err := f.ContextTargets(ctx, streams, name)
	if err == nil && len(targets) > 1 {
		err = Usagef("%q matches %d contexts: name one", name, len(targets))
	}
	if err != nil {
		return nil, err
	}
	return targets[0], nil
}

// matchContexts returns the matching names once, in the order of the patterns.
func matchContexts(patterns, known []string) ([]string, error) {
	var names []string
	for _, pattern := range patterns {
		others := func(name string) bool { return !naming.Match(pattern, name) }
		matched := slices.DeleteFunc(slices.Clone(known), others)
		names = naming.AppendMissing(names, matched...)
		if len(matched) == 0 {
			return nil, Usagef("no context of the kubeconfig matches %q; it has %s", pattern,
				cmp.Or(strings.Join(known, ", "), "no contexts"))
		}
	}
	return names, nil
}

// clusterPrefixWriter adds the name of a cluster to each line, after the prefix error, warning or note.
type clusterPrefixWriter struct {
	io.Writer
	cluster string
}

func (w clusterPrefixWriter) Write(text []byte) (int, error) {
	var prefixed []byte
	for line := range bytes.Lines(text) {
		for _, level := range []string{"error: ", "warning: ", "note: ", "Warning: "} {
			if rest, ok := bytes.CutPrefix(line, []byte(level)); ok {
				prefixed, line = append(prefixed, level...), rest
			}
		}
		prefixed = append(append(prefixed, print.Printable(w.cluster)+": "...), line...)
	}
	if _, err := w.Writer.Write(prefixed); err != nil {
		return 0, err
	}
	return len(text), nil
}

// maxParallelClusters bounds the clusters that are in memory at the same time. A cluster is in memory until
// it is printed.
const maxParallelClusters = 8

type clusterSource interface {
	target() *Target
	// open prepares the first request.
	open(ctx context.Context) error
}

func (t *Target) target() *Target            { return t }
func (t *Target) open(context.Context) error { return t.ContextErr() }

// ContextErr returns the error of the kubeconfig about a context that ContextTargets selected.
func (t *Target) ContextErr() error { return t.contextErr }

// outputTurn orders the output of clusters that are read concurrently.
type outputTurn struct {
	earlierPrinted <-chan struct{}
	// release lets another cluster be read. It may be called several times.
	release func()

	markOutput func()
}

// AwaitTurn waits until the earlier clusters are printed. Only then may the command print.
func (t *Target) AwaitTurn(ctx context.Context) error {
	select {
	case <-t.turn.earlierPrinted:
		t.turn.markOutput()
		return ctx.Err()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// MarkRead lets the command read another cluster before this one ends. It is for commands that watch clusters
// and print their changes in any order.
func (t *Target) MarkRead() {
	t.turn.markOutput()
	t.turn.release()
}

// EachCluster calls run for the clusters, up to maxParallelClusters at a time. If some of several clusters
// fail, their errors are printed as warnings, and the result is an *IncompleteError. If no cluster has
// anything to print, the result joins their errors. A usage error, or an error of stdout, ends all runs.
func EachCluster[T clusterSource](ctx context.Context, clusters []T, run func(context.Context,
	T) error) error {
	runCtx, stop := context.WithCancel(ctx)
	defer stop()
	group := clusterGroup{errs: make([]error, len(clusters)), stop: stop}
	previousPrinted := make(chan struct{})
	close(previousPrinted)
	var workers sync.WaitGroup
	slots := make(chan struct{}, maxParallelClusters)
	names := make([]string, len(clusters))
	for i, c := range clusters {
		slots <- struct{}{} // running clusters end with the context
		earlierPrinted, printed := previousPrinted, make(chan struct{})
		previousPrinted = printed
		release := sync.OnceFunc(func() { <-slots })
		t := c.target()
		names[i] = t.Cluster
		t.turn, t.report = outputTurn{earlierPrinted, release, group.markOutput}, ReportOf(ctx)
		workers.Go(func() { // ended by the context
			defer close(printed)
			err := runCtx.Err()
			if err == nil {
				err = c.open(runCtx)
			}
			if err == nil {
				err = run(runCtx, c)
			}
			group.finish(i, t, err)
			release()
			<-earlierPrinted
		})
	}
	workers.Wait()
	return group.err(ctx, names)
}

type clusterGroup struct {
	stop func()

	mu           sync.Mutex
	errs         []error
	fatal        error
	hasOutput    bool     // the command has something to print
	heldWarnings []func() // dropped if the command prints nothing: then err returns the errors
}

func (g *clusterGroup) markOutput() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.hasOutput = true
	g.flushWarningsLocked()
}

// flushWarningsLocked prints the held warnings once the command has something to print.
func (g *clusterGroup) flushWarningsLocked() {
	if !g.hasOutput {
		return
	}
	for _, warn := range g.heldWarnings {
		warn()
	}
	g.heldWarnings = nil
}

func (g *clusterGroup) finish(i int, t *Target, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.errs[i] = err
	var usage *UsageError
	switch {
	case err == nil:
		g.hasOutput = true
	case g.fatal != nil || t.Cluster == "":
	case errors.As(err, &usage) || print.OutputErr(t.Out) != nil:
		g.fatal = err
		g.stop()
	case !errors.Is(err, context.Canceled):
		g.heldWarnings = append(g.heldWarnings, func() {
			for _, e := range SplitJoined(err) {
				t.Warnf("%v", e)
			}
		})
	}
	g.flushWarningsLocked()
}

func (g *clusterGroup) err(ctx context.Context, names []string) error {
	var failedNames []string
	var errs []error
	for i, err := range g.errs {
		for _, e := range SplitJoined(err) {
			errs = append(errs, fmt.Errorf("%s: %w", print.Printable(names[i]), e))
		}
		if err != nil {
			failedNames = append(failedNames, names[i])
		}
	}
	switch {
	case len(failedNames) == 0:
		return nil
	case names[0] == "":
		return g.errs[0]
	case ctx.Err() != nil:
		return ctx.Err()
	case g.fatal != nil:
		return g.fatal
	case !g.hasOutput:
		return errors.Join(errs...)
	}
	return Incompletef("the output is incomplete, because of errors in %d of %d clusters: %s",
		len(failedNames), len(names), strings.Join(failedNames, ", "))
}
