package session

import (
	"bytes"
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
	set.StringSliceVar(&f.contexts, "contexts", nil,
		"Read the clusters of these kubeconfig contexts, as in a,b,'prod-*'. Tables get the column CLUSTER. If a cluster cannot be read, the others are printed and the exit code is 5.")
	set.BoolVar(&f.allContexts, "all-contexts", false, "Read the clusters of all contexts, as with --contexts '*'.")
	markShared(set, "contexts", "all-contexts")
	_ = cmd.RegisterFlagCompletionFunc("contexts", completion(
		func(_ context.Context, _ []string, begun string) []string {
			return completeList(f.kubeconfigNames(contextNames), begun)
		}))
}

// Targets validates the flags and returns a target for each selected context. Without AddContexts, or if no
// contexts are selected, it returns the only target. It sends no request.
func (f *ServerFlags) Targets(ctx context.Context, streams genericiooptions.IOStreams) ([]*Target, error) {
	if !f.SelectsContexts() {
		t, err := f.Target(ctx, streams)
		return []*Target{t}, err
	}
	if f.allContexts {
		return f.ContextTargets(streams, "*")
	}
	if len(f.contexts) == 0 {
		return nil, Usagef("--contexts is empty: is a shell variable unset?")
	}
	return f.ContextTargets(streams, f.contexts...)
}

// ContextTargets validates the flags and returns a target for each context that matches the patterns, in
// their order. It sends no request.
func (f *ServerFlags) ContextTargets(streams genericiooptions.IOStreams,
	patterns ...string) ([]*Target, error) {
	if err := f.validate(); err != nil {
		return nil, err
	}
	if len(f.from) > 0 {
		return nil, Usagef("--from and contexts cannot be used together: files need no cluster")
	}
	raw, err := f.config.loader().RawConfig()
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	names, err := matchContexts(patterns, slices.Sorted(maps.Keys(raw.Contexts)))
	if err != nil {
		return nil, err
	}
	overrides := f.config.overridden()
	targets := make([]*Target, len(names))
	for i, name := range names {
		t := f.newTarget(streams)
		t.Cluster, t.Context = name, name
		t.ErrOut = clusterLines{t.ErrOut, name}
		loader := clientcmd.NewNonInteractiveClientConfig(raw, name, &overrides, f.config.rules())
		t.invalid = f.connect(t, loader)
		targets[i] = t
	}
	return targets, nil
}

// SelectsContexts reports whether the flags of AddContexts are given.
func (f *ServerFlags) SelectsContexts() bool { return f.allContexts || f.set.Changed("contexts") }

// ContextTarget returns the target of one context, as ContextTargets does.
func (f *ServerFlags) ContextTarget(streams genericiooptions.IOStreams, name string) (*Target, error) {
	targets, err := f.ContextTargets(streams, name)
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
		matched := false
		for _, name := range known {
			if !naming.Match(pattern, name) {
				continue
			}
			matched = true
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		if !matched {
			return nil, Usagef("no context of the kubeconfig matches %q; it has %s", pattern, listOf(known))
		}
	}
	return names, nil
}

func listOf(names []string) string {
	if len(names) == 0 {
		return "no contexts"
	}
	return strings.Join(names, ", ")
}

// clusterLines adds the name of a cluster to each line on stderr.
type clusterLines struct {
	io.Writer
	cluster string
}

func (w clusterLines) Write(text []byte) (int, error) {
	var named []byte
	for line := range bytes.Lines(text) {
		for _, level := range []string{"error: ", "warning: ", "note: ", "Warning: "} {
			if rest, ok := bytes.CutPrefix(line, []byte(level)); ok {
				named, line = append(named, level...), rest
			}
		}
		named = append(append(named, print.Printable(w.cluster)+": "...), line...)
	}
	if _, err := w.Writer.Write(named); err != nil {
		return 0, err
	}
	return len(text), nil
}

// IncompleteError is returned if some of several clusters could not be read.
type IncompleteError struct {
	clusters []string
	total    int
}

func (e *IncompleteError) Error() string {
	return fmt.Sprintf("the output is incomplete, because of errors in %d of %d clusters: %s",
		len(e.clusters), e.total, strings.Join(e.clusters, ", "))
}

// parallelClusters bounds the clusters that are read at the same time, and so the memory: a cluster keeps its
// place until it is printed.
const parallelClusters = 8

// cluster is a *Target or a *Reader.
type cluster interface {
	target() *Target
	// open prepares the first request.
	open(ctx context.Context) error
}

func (t *Target) target() *Target            { return t }
func (t *Target) open(context.Context) error { return t.Invalid() }

// Invalid returns the error of the kubeconfig about the context.
func (t *Target) Invalid() error { return t.invalid }

// turn orders the output of clusters that are read concurrently.
type turn struct {
	// before is closed when the earlier clusters are printed.
	before <-chan struct{}
	// read ends the reading of the cluster. It may be called several times.
	read func()
	// begin records that the command has something to print.
	begin func()
}

// AwaitTurn waits until the earlier clusters are printed. Only then may the command print.
func (t *Target) AwaitTurn(ctx context.Context) error {
	select {
	case <-t.turn.before:
		t.turn.begin()
		return ctx.Err()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// MarkRead lets the command read another cluster before this one ends. It is for commands that follow
// clusters and print in no order.
func (t *Target) MarkRead() {
	t.turn.begin()
	t.turn.read()
}

// EachCluster calls run for the clusters, a few at a time. An error of one of several clusters is a warning
// that names it, and the result is an *IncompleteError. If no cluster has anything to print, it returns the
// joined errors. A usage error, or an error of stdout, ends all.
func EachCluster[T cluster](ctx context.Context, clusters []T, run func(context.Context, T) error) error {
	running, stop := context.WithCancel(ctx)
	defer stop()
	g := clusterGroup{errs: make([]error, len(clusters)), stop: stop}
	printed := make(chan struct{})
	close(printed)
	var wait sync.WaitGroup
	places := make(chan struct{}, parallelClusters)
	names := make([]string, len(clusters))
	for i, c := range clusters {
		places <- struct{}{} // running clusters end with the context
		before, after := printed, make(chan struct{})
		printed = after
		read := sync.OnceFunc(func() { <-places })
		t := c.target()
		names[i] = t.Cluster
		t.turn = turn{before, read, g.begin}
		wait.Go(func() { // ended by the context
			defer close(after)
			err := running.Err()
			if err == nil {
				err = c.open(running)
			}
			if err == nil {
				err = run(running, c)
			}
			g.end(i, t, err)
			read()
			<-before
		})
	}
	wait.Wait()
	return g.err(ctx, names)
}

// clusterGroup collects the errors of clusters. It is safe for concurrent use.
type clusterGroup struct {
	stop func()

	mu     sync.Mutex
	errs   []error
	fatal  error
	prints bool     // the command has something to print
	held   []func() // warnings that become errors if the command prints nothing
}

// begin records that the command has something to print.
func (g *clusterGroup) begin() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.prints = true
	g.warnLocked()
}

// warnLocked prints the held warnings, unless they can still become errors.
func (g *clusterGroup) warnLocked() {
	if !g.prints {
		return
	}
	for _, warn := range g.held {
		warn()
	}
	g.held = nil
}

func (g *clusterGroup) end(i int, t *Target, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.errs[i] = err
	var usage *UsageError
	switch {
	case err == nil:
		g.prints = true
	case g.fatal != nil || t.Cluster == "":
	case errors.As(err, &usage) || print.OutputErr(t.Out) != nil:
		g.fatal = err
		g.stop()
	case !errors.Is(err, context.Canceled):
		g.held = append(g.held, func() {
			for _, e := range SplitJoined(err) {
				t.Warnf("%v", e)
			}
		})
	}
	g.warnLocked()
}

// err returns the error of the command after all clusters have ended.
func (g *clusterGroup) err(ctx context.Context, names []string) error {
	var failed []string
	var errs []error
	for i, err := range g.errs {
		for _, e := range SplitJoined(err) {
			errs = append(errs, fmt.Errorf("%s: %w", print.Printable(names[i]), e))
		}
		if err != nil {
			failed = append(failed, names[i])
		}
	}
	switch {
	case len(failed) == 0:
		return nil
	case names[0] == "":
		return g.errs[0]
	case ctx.Err() != nil:
		return ctx.Err()
	case g.fatal != nil:
		return g.fatal
	case !g.prints:
		return errors.Join(errs...)
	}
	return &IncompleteError{failed, len(names)}
}
