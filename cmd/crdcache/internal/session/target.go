package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/filesource"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/internal/manifest"
	"github.com/crdcache/crdcache/internal/naming"
	"github.com/crdcache/crdcache/internal/snapshot"
)

// Target is an API server, or files served like one.
type Target struct {
	// IOStreams are the streams of the command. With --quiet, ErrOut discards everything.
	genericiooptions.IOStreams
	// Rest connects to the server without a client-side rate limit.
	Rest *rest.Config
	// Context is the kubeconfig context. It is empty if the server is not from a kubeconfig.
	Context string
	// Cluster is the name in the output. It is empty if the command reads only one cluster.
	Cluster string
	// Namespace is the namespace to read. Empty means all.
	Namespace string
	// Timeout bounds the wait for types to be found and synced. 0 means no limit.
	Timeout time.Duration

	turn         outputTurn // set by EachCluster, like report
	report       *Report    // nil without a caller that wants one
	contextErr   error      // of the kubeconfig, with which the cluster fails
	noKubeconfig bool       // and no --server
	// CommaList is set if types are separated by commas, so that no object names can follow.
	CommaList bool
	traffic   receivedBytes
	responses responses
	// watchesServer is set by AllowWatches, and usesWatchLists by AllowWatchLists.
	watchesServer, usesWatchLists bool
	// fetchedCRDs maps a schema.GroupResource to its fetched CRD.
	fetchedCRDs sync.Map
	// listDefinitions guards listedDefinitions, the names of all CRDs.
	listDefinitions   sync.Once
	listedDefinitions []string
	source            *filesource.Source // nil for a cluster
	// followsFiles is set by Follow. FilesErr returns earlier problems. Later problems are printed.
	followsFiles bool
	// reportedPartial has the types with a report of missing objects.
	reportedPartial sync.Map
	sharesSource    bool
	configDigest    string   // of the index configs, which determine the indexes of shared caches
	paths           []string // of the files
	// typesChanged, if set, is called when Follow finds types without a CRD.
	typesChanged func()
}

const gcPercentFiles = 50

// gcPercentSnapshot is lower, because reading a snapshot quickly discards compressed blocks.
const gcPercentSnapshot = 25

// openFiles reads files instead of a cluster.
func (t *Target) openFiles(ctx context.Context, options filesource.Options) error {
	// Most of the heap is JSON without pointers. More frequent collection costs 10 % more time and saves 25 %
	// of the memory.
	debug.SetGCPercent(gcPercentFiles)
	t.paths, t.report = options.Paths, ReportOf(ctx)
	options.In, options.Received = t.In, &t.traffic.received
	options.Report = func(p *manifest.Problem) {
		switch {
		case p.Warning:
			t.Warnf("%v", p)
		case t.followsFiles:
			fmt.Fprintf(t.ErrOut, "error: %s\n", print.OneSafeLine(p.Error()))
		}
	}
	options.TypesChanged = func() {
		if t.typesChanged != nil {
			t.typesChanged()
		}
	}
	var err error
	defer t.Progress(func() (int, int) { return 0, 0 })()
	shared := sharedOf(ctx)
	t.sharesSource = shared != nil
	if t.source, err = shared.open(ctx, options); err != nil {
		return err
	}
	t.Rest = t.source.Config()
	t.responses.target = t
	t.Rest.Wrap(t.responses.wrap)
	if t.source.Snapshot() != nil {
		debug.SetGCPercent(gcPercentSnapshot)
		t.Rest.WarningHandler = rest.NewWarningWriter(t.ErrOut, rest.WarningWriterOptions{Deduplicate: true})
	}
	return nil
}

// Warnf writes a warning to stderr.
func (t *Target) Warnf(format string, args ...any) { print.Warnf(t.ErrOut, format, args...) }

func (t *Target) ReadsFiles() bool { return t.source != nil }

// ReadsOnlyIdentities reports whether only the identities of the objects in files are kept.
func (t *Target) ReadsOnlyIdentities() bool { return t.source != nil && t.source.KeepsIdentity() }

// Snapshot returns the snapshot that --from names, or nil.
func (t *Target) Snapshot() *snapshot.File {
	if t.source == nil {
		return nil
	}
	return t.source.Snapshot()
}

// Announce works like filesource.Source.Announce. Without files, it does nothing.
func (t *Target) Announce(header http.Header, r *http.Request) {
	if t.source != nil {
		t.source.Announce(header, r)
	}
}

// FilesHandler returns the read API of the files.
func (t *Target) FilesHandler() http.Handler { return t.source.Handler() }

// SnapshotOrigin returns the origin of the served snapshot. It is zero for manifests.
func (t *Target) SnapshotOrigin() snapshot.Origin {
	if file := t.Snapshot(); file != nil {
		return file.Contents().Origin
	}
	return snapshot.Origin{}
}

// FilesTime returns the time of the content of the files, also those of a server that has answered a request.
// It is zero if it is unknown.
func (t *Target) FilesTime() time.Time {
	if t.source != nil {
		return t.source.Time()
	}
	at, _ := t.responses.filesTime.Load().(time.Time)
	return at
}

// Now returns the time until which ages count: that of the files, if it is known.
func (t *Target) Now() time.Time { return cmp.Or(t.FilesTime(), time.Now()) }

// Partial returns why a snapshot lacks objects or fields of a type. It is empty if it does not.
func (t *Target) Partial(gr schema.GroupResource) string { return t.source.Partial(gr) }

// Reasons works like filesource.Source.Reasons, also for a server of files that has answered a request.
func (t *Target) Reasons(types ...schema.GroupResource) (reasons []snapshot.Reason) {
	if t.source != nil {
		return t.source.Reasons(types...)
	}
	if all := t.responses.reasons.Load(); all != nil {
		reasons = slices.DeleteFunc(slices.Clone(all.list),
			func(r snapshot.Reason) bool { return !r.Concerns(types...) })
	}
	return reasons
}

// IncompleteTypes returns the types that a name can mean and of which not all objects are known.
func (t *Target) IncompleteTypes(text string) (types []schema.GroupResource) {
	name, err := discovery.ParseName(text)
	if err != nil {
		return nil
	}
	for _, r := range t.Reasons() {
		gr := schema.ParseGroupResource(r.Type)
		matches := func(i discovery.Interpretation) bool {
			i.Version = "" // the versions are unknown
			plural := i
			plural.Resource = naming.GuessPlural(i.Resource)
			return i.Matches(gr.Group, nil, []string{gr.Resource}) ||
				plural.Matches(gr.Group, nil, []string{gr.Resource})
		}
		if r.Type != "" && (slices.ContainsFunc(name.Interpretations, matches) ||
			name.HasWildcard() && gr == crd.GVR.GroupResource()) {
			types = append(types, gr)
		}
	}
	return types
}

// FilesNotice describes the files and the time of their content.
func (t *Target) FilesNotice() string {
	paths := strings.Join(t.paths, ", ")
	if file := t.source.Snapshot(); file != nil {
		contents := file.Contents()
		text := "The snapshot " + paths
		if !contents.Created.IsZero() {
			text += ", taken on " + contents.Created.Format(time.RFC1123)
		}
		if contents.Server.Host != "" {
			text += " of " + contents.Server.Host
		}
		return text + ". It does not change."
	}
	return fmt.Sprintf("Files, read on %s: %s. Changes are shown when they are saved; standard input is read once.",
		time.Now().Format(time.RFC1123), paths)
}

// FilesTitle returns a short name of the files.
func (t *Target) FilesTitle() string {
	title := filepath.Base(t.paths[0])
	if len(t.paths) > 1 {
		title += fmt.Sprintf(" and %d more", len(t.paths)-1)
	}
	return title
}

// FilesErr returns the problems of the files that --from names or that the server reads. They include the
// types of the arguments of which not all objects are known, or all such types without names.
func (t *Target) FilesErr(names []string, types ...schema.GroupResource) error {
	errs := []error{nil}
	if t.source != nil {
		errs[0] = t.source.Err()
	}
	types = append(types, schema.GroupResource{}) // not empty, which would mean all
	for _, name := range names {
		types = append(types, t.IncompleteTypes(name)...)
	}
	if len(names) == 0 {
		types = nil
	}
	for _, r := range t.Reasons(types...) {
		if t.source == nil || r.Type != "" { // others are in errs[0]
			errs = append(errs, &UncollectedError{r.Text})
		}
	}
	return errors.Join(errs...)
}

// RecordUse records that types are shown, as filesource.Source.RecordUse does.
func (t *Target) RecordUse(readsObjects bool, types ...schema.GroupResource) {
	if t.source == nil {
		return
	}
	t.source.RecordUse(readsObjects, types...)
	for _, gr := range types {
		partial := t.Partial(gr)
		if !readsObjects || partial == "" {
			continue
		}
		if _, wasReported := t.reportedPartial.LoadOrStore(gr, true); !wasReported {
			t.Warnf("%s: %s: %s", t.source.PathNames(), gr, partial)
		}
	}
}

// SelectVersions limits the objects of files to the versions in names, or does not convert them.
func (t *Target) SelectVersions(convert bool, typeNames ...string) {
	if t.source != nil && !t.sharesSource {
		t.source.SelectVersions(convert, typeNames...)
	}
}

// Follow watches the files for changes until ctx ends, and prints problems to stderr. It calls typesChanged
// for new types without a CRD. For a cluster it does nothing.
func (t *Target) Follow(ctx context.Context, typesChanged func()) {
	if t.source == nil {
		return
	}
	t.typesChanged, t.followsFiles = typesChanged, true
	t.source.Follow(ctx)
}

// AllowWatches lets the clients of the target watch. By default they only list, because most commands read
// once. It must be called before the first request.
func (t *Target) AllowWatches() { t.watchesServer = true }

// AllowWatchLists works like AllowWatches with watch-lists, which need less memory of the server than lists,
// but wait for a timeout behind proxies that buffer.
func (t *Target) AllowWatchLists() { t.watchesServer, t.usesWatchLists = true, true }

func (t *Target) Tracker() (*discovery.Tracker, error) {
	options := discovery.TrackerOptions{}
	if t.ReadsFiles() {
		options.DiscoveryLag = -1 // files need no grace period for deleted types
	}
	return discovery.NewTracker(t.Rest, options)
}

// HTTPClient returns a client that counts received bytes for the progress line.
func (t *Target) HTTPClient() (*http.Client, error) {
	config := rest.CopyConfig(t.Rest)
	config.Wrap(t.traffic.wrap)
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	return client, nil
}

// PlainClient returns a client that does not decode answers.
func (t *Target) PlainClient() (rest.Interface, error) { return clientOf(t, print.NewPlainClient) }

// Client returns a client that packs the objects of lists.
func (t *Target) Client() (dynamic.Interface, error) { return clientOf(t, dynamicinformer.NewClient) }

func clientOf[C any](t *Target, newClient func(*rest.Config, *http.Client) (C, error)) (client C, err error) {
	httpClient, err := t.HTTPClient()
	if err != nil {
		return client, err
	}
	return newClient(t.Rest, httpClient)
}

func (t *Target) WithTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	if t.Timeout == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, t.Timeout)
}
