package session

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/offline"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/internal/manifest"
)

// Target is an API server and how to read from it.
type Target struct {
	// Config is how to reach the server, without a client-side rate limit.
	Config *rest.Config
	// Context is that of the kubeconfig; empty where the server does not come from one.
	Context string
	// Namespace is the one to read; empty for all.
	Namespace string
	// Timeout bounds the wait for types to be found and synced; 0 waits without end.
	Timeout time.Duration

	errOut   io.Writer
	traffic  Traffic
	throttle throttle
	// fetched has the definition of each CRD that was fetched, by its schema.GroupResource.
	fetched sync.Map
	source  *offline.Source // nil for a cluster
	// following is set once the files are followed: until then Err has what is wrong with them, and
	// afterwards nobody asks.
	following bool
	paths     []string // of the files
	// typesChanged, if set, is called when Follow finds types that no CRD defines.
	typesChanged func()
}

const gcPercentOffline = 50

// gcPercentSnapshot is that for a snapshot, whose objects are in memory only once, and come faster than the
// collector takes the blocks that they come in.
const gcPercentSnapshot = 25

// open reads files in place of a cluster.
func (t *Target) open(ctx context.Context, paths []string, streams genericiooptions.IOStreams) error {
	// Nearly all of the heap are texts that hold no pointers, and stay: collecting it more often costs a
	// tenth more time and saves a quarter of the memory.
	debug.SetGCPercent(gcPercentOffline)
	t.paths = paths
	var err error
	t.source, err = offline.Open(ctx, offline.Options{
		Paths: paths, In: streams.In,
		Report: func(p *manifest.Problem) {
			switch {
			case p.Warning:
				fmt.Fprintf(streams.ErrOut, "warning: %s\n", print.Line(p.Error()))
			case t.following:
				fmt.Fprintf(streams.ErrOut, "error: %s\n", print.Line(p.Error()))
			}
		},
		TypesChanged: func() {
			if t.typesChanged != nil {
				t.typesChanged()
			}
		},
	})
	if err != nil {
		return err
	}
	t.Config = t.source.Config()
	if t.source.Snapshot() != nil {
		debug.SetGCPercent(gcPercentSnapshot)
		t.warnAs(streams.ErrOut)
	}
	return nil
}

// warnAs writes what the server warns of, as of deprecated versions.
func (t *Target) warnAs(out io.Writer) {
	t.Config.WarningHandler = rest.NewWarningWriter(out, rest.WarningWriterOptions{Deduplicate: true})
}

// Offline reports whether files take the place of a cluster.
func (t *Target) Offline() bool { return t.source != nil }

// Taken returns when the served snapshot was saved. It is zero for manifests, which have no time.
func (t *Target) Taken() time.Time {
	if file := t.source.Snapshot(); file != nil {
		return file.Contents().Created
	}
	return time.Time{}
}

// FilesNotice says which files are read, and of when what they have is.
func (t *Target) FilesNotice() string {
	paths := strings.Join(t.paths, ", ")
	if file := t.source.Snapshot(); file != nil {
		about := file.Contents()
		text := "The snapshot " + paths
		if !about.Created.IsZero() {
			text += ", which was taken on " + about.Created.Format(time.RFC1123)
		}
		if about.Server.Host != "" {
			text += " of " + about.Server.Host
		}
		return text + ". Nothing changes in it."
	}
	return fmt.
		Sprintf(
			"Files, read on %s: %s. What changes in them is shown as it is saved; standard input is read once.", time.Now().Format(time.RFC1123), paths)
}

// FilesTitle names the files in a word.
func (t *Target) FilesTitle() string {
	title := filepath.Base(t.paths[0])
	if len(t.paths) > 1 {
		title += fmt.Sprintf(" and %d more", len(t.paths)-1)
	}
	return title
}

// Err is what could not be read of the files; nil for a cluster.
func (t *Target) Err() error {
	if t.source == nil {
		return nil
	}
	return t.source.Err()
}

// Use warns of types of files that were made up, because somebody reads them.
func (t *Target) Use(types ...schema.GroupResource) {
	if t.source != nil {
		t.source.Use(types...)
	}
}

// Follow keeps up with changes of the files until ctx ends; for a cluster it does nothing. When types come
// that no CRD defines, typesChanged is called. What is wrong with a file that changes is written to stderr.
func (t *Target) Follow(ctx context.Context, typesChanged func()) {
	if t.source == nil {
		return
	}
	t.typesChanged, t.following = typesChanged, true
	t.source.Follow(ctx)
}

// Tracker follows which types there are.
func (t *Target) Tracker() (*discovery.Tracker, error) {
	options := discovery.TrackerOptions{}
	if t.Offline() {
		options.DiscoveryLag = -1 // what files lack is gone, and what they have is there
	}
	return discovery.NewTracker(t.Config, options)
}

// HTTPClient returns the client that everything of a command shares.
func (t *Target) HTTPClient() (*http.Client, error) {
	config := rest.CopyConfig(t.Config)
	config.Wrap(t.traffic.Wrap)
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	return client, nil
}

// PlainClient returns a client that gives answers as the server sent them.
func (t *Target) PlainClient() (rest.Interface, error) {
	httpClient, err := t.HTTPClient()
	if err != nil {
		return nil, err
	}
	return print.NewPlainClient(t.Config, httpClient)
}

// Progress shows on a terminal how far a sync is, until the returned func is called.
func (t *Target) Progress(synced func() (done, all int)) (stop func()) {
	return ShowProgress(t.errOut, &t.traffic, synced)
}

// Limit ends the context when the time for waiting is up.
func (t *Target) Limit(ctx context.Context) (context.Context, context.CancelFunc) {
	if t.Timeout == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, t.Timeout)
}
