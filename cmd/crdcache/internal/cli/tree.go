package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation/path"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/filesource"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/session"
	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/indexers/references"
	"github.com/crdcache/crdcache/internal/naming"
)

// Limits of the printed tree.
const (
	defaultDepth = 10
	maxDepth     = 100 // lines are indented by depth, so the output grows with its square
	defaultFan   = 100
)

type treeVerb struct {
	streams   genericiooptions.IOStreams
	flags     session.ReadFlags
	types     []string // to read; empty means all
	depth     int
	limit     int
	format    string
	noHeaders bool

	readers          []*session.Reader
	records          []treeRecord
	*session.Reader  // of the current cluster
	objectArg        session.ObjectArg
	hasNamespaceFlag bool
}

func newTree(streams genericiooptions.IOStreams) *cobra.Command {
	o := &treeVerb{streams: streams}
	cmd := &cobra.Command{
		Use: "tree TYPE/NAME | TYPE NAME [flags]",
		SuggestFor: []string{"owners", "owner", "dependents", "children", "graph", "lineage",
			"refs", "references"},
		Short: "Show the owners, dependents and references of an object",
		Args: func(cmd *cobra.Command, args []string) error {
			_, err := parseObjectArg(cmd.CommandPath(), args)
			return err
		},
		RunE: session.RunE(o.complete, o.run),
	}
	o.flags.Add(cmd, false)
	o.flags.AddContexts(cmd)
	o.flags.AddCache(cmd)
	o.flags.CompleteNames(cmd, false)
	set := cmd.Flags()
	set.StringSliceVar(&o.types, "types", nil, "")
	set.IntVar(&o.depth, "depth", defaultDepth,
		fmt.Sprintf("How many steps to go from the object, at most %d.", maxDepth))
	set.IntVar(&o.limit, "limit", defaultFan,
		"Maximum number of children; 0 means all. The number of omitted objects is printed.")
	session.AddOutput(cmd, &o.format, session.FormatTable, session.FormatJSON, session.FormatYAML)
	set.BoolVar(&o.noHeaders, "no-headers", false, "Print the table without headers.")
	return cmd
}

func (o *treeVerb) complete(cmd *cobra.Command, args []string) (err error) {
	set := cmd.Flags()
	switch {
	case o.depth < 1 || o.depth > maxDepth:
		return session.Usagef("--depth is %d: give a number from 1 to %d", o.depth, maxDepth)
	case o.limit < 0:
		return session.Usagef("--limit is %d: it must not be negative; 0 prints all", o.limit)
	case set.Changed("types") && len(o.types) == 0:
		return session.Usagef("--types is empty: is a shell variable unset?")
	case o.noHeaders && o.format != session.FormatTable:
		return session.Usagef("--no-headers needs a table: omit --output")
	}
	if o.objectArg, err = parseObjectArg(cmd.CommandPath(), args); err != nil {
		return err
	}
	o.readers, err = o.flags.Readers(cmd.Context(), []string{o.objectArg.Type},
		dynamicinformer.ResourceOptions{}, o.streams)
	if err != nil {
		return err
	}
	first := o.readers[0]
	o.hasNamespaceFlag = set.Changed("namespace")
	o.objectArg.Type, o.objectArg.AllNamespaces = first.TypeNames()[0], true
	o.types, err = first.Config.TypeNames(o.types)
	return err
}

// parseObjectArg parses arguments that name one object.
func parseObjectArg(command string, args []string) (session.ObjectArg, error) {
	typeName, name, _ := strings.Cut(strings.Join(args, "/"), "/")
	if typeName == "" || name == "" || strings.ContainsAny(typeName, ",*/") ||
		len(path.IsValidPathSegmentName(name)) > 0 {
		return session.ObjectArg{},
			session.Usagef("name one object, as in '%s certificate/web-tls' or '%[1]s certificate web-tls'; got %q",
				command, args)
	}
	return session.ObjectArg{Type: typeName, Names: []string{name}}, nil
}

// run prints the trees of all clusters.
func (o *treeVerb) run(ctx context.Context) error {
	err := session.EachCluster(ctx, o.readers, func(ctx context.Context, r *session.Reader) error {
		cluster := *o
		cluster.Reader = r
		return cluster.runCluster(ctx, &o.records)
	})
	if ctx.Err() != nil {
		return err
	}
	return errors.Join(err, o.print())
}

// runCluster builds a tree for the named object, or for several objects of the name in different namespaces.
func (o *treeVerb) runCluster(ctx context.Context, records *[]treeRecord) error {
	tree, err := o.readTypes(ctx)
	if tree == nil {
		return err
	}
	defer tree.close()
	if waitErr := o.AwaitTurn(ctx); waitErr != nil {
		return waitErr
	}
	*records = append(*records, tree.record())
	tree.printScope()
	return err
}

// treeData has the named objects, and the caches of the types that can be related to them.
type treeData struct {
	*treeVerb
	roots  session.GetResult
	graph  *references.Graph
	caches *session.Caches
	// namespace is the only namespace that was read. Empty means all. scope reads it.
	namespace string
	scope     *session.Reader
	notRead   []unreadType // and not requested
	failed    []unreadType // which caused errors
}

type unreadType struct {
	Type   string `json:"type"`
	Reason string `json:"reason"`
	err    error
}

// Reasons why a type is not read, in addition to errors.
const (
	reasonNotRequested = "read only if --types names it"
	reasonForbidden    = "may not be read"
	reasonNotCollected = "not collected"
)

// readTypes reads the named objects and all types that can be related to them. If the result is not nil, the
// error names the types that could not be read.
func (o *treeVerb) readTypes(ctx context.Context) (*treeData, error) {
	syncCtx, cancel := o.WithTimeout(ctx)
	defer cancel()
	types, results, problems := o.Get(syncCtx, []session.ObjectArg{o.objectArg})
	if len(results) == 0 || len(results[0].Objects) == 0 {
		return nil, problems
	}
	data := &treeData{treeVerb: o, roots: results[0], namespace: o.Namespace, scope: o.Reader}
	if data.roots.Resource.Scope != discovery.Namespaced && !o.hasNamespaceFlag {
		// Its dependents can be in any namespace.
		data.namespace, data.scope = "", o.InAllNamespaces()
	}
	resources, unresolved, err := data.selectTypes(syncCtx)
	if err != nil {
		return nil, err
	}
	wide := *data
	if o.SharesAll {
		wide.scope = o.InAllNamespaces()
	}
	sharedOptionsOf := wide.cacheOptions
	if len(o.types) == 0 {
		sharedOptionsOf = nil // too many to keep
	}
	data.caches, err = session.NewCaches(session.OneClient(types.Client), resources, data.cacheOptions,
		sharedOptionsOf)
	if err != nil {
		return nil, err
	}
	data.graph = references.New()
	if err := data.syncAndLink(ctx, syncCtx); err != nil {
		data.close()
		return nil, err
	}
	if len(data.failed) > 0 {
		unresolved = errors.Join(unresolved, &incompleteError{data.failed})
	}
	return data, session.JoinDistinct(problems, unresolved)
}

func (w *treeData) close() {
	w.graph.Close()
	w.caches.Close()
}

// selectTypes returns the types to read. The first one is the type of the named objects. unresolved joins the
// errors of names without a type.
func (w *treeData) selectTypes(ctx context.Context) (types []discovery.Resource, unresolved, err error) {
	root := w.roots.Resource
	types = []discovery.Resource{root}
	add := func(r discovery.Resource) {
		if !slices.ContainsFunc(types,
			func(x discovery.Resource) bool { return x.GVR.GroupResource() == r.GVR.GroupResource() }) {
			types = append(types, r)
		}
	}
	if len(w.types) > 0 {
		resolved, unresolved := w.Resolve(ctx, w.types, "list")
		for _, r := range resolved {
			add(r)
		}
		return types, unresolved, nil
	}
	catalog, err := w.Catalog(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, r := range catalog.Resources() {
		name := r.GVR.GroupResource()
		switch {
		case !r.Preferred || name == root.GVR.GroupResource():
		case session.IsEvents(name):
			w.notRead = append(w.notRead, unreadType{Type: name.String(), Reason: reasonNotRequested})
		case !r.HasVerbs("list"):
			if r.HasVerbs("get") {
				w.notRead = append(w.notRead, unreadType{Type: name.String(), Reason: r.MissingVerbs("list")})
			}
		default:
			if _, err := w.cacheOptions(r); err != nil {
				w.notRead = append(w.notRead, unreadType{Type: name.String(), Reason: err.Error()})
				continue
			}
			add(r)
		}
	}
	unknownGroups := catalog.FailedGroupVersions()
	for _, failure := range unknownGroups {
		w.notRead = append(w.notRead, unreadType{Type: "*." + failure.GroupVersion.String(),
			Reason: fmt.Sprintf("could not be discovered: %v", failure.Err)})
	}
	return types, errors.Join(session.UnknownGroups("", unknownGroups), w.FilesErr(nil)), nil
}

// cacheOptions returns the cache options of each type: the config's namespaces and selectors. Objects without
// declared references need only their state.
func (w *treeData) cacheOptions(r discovery.Resource) (dynamicinformer.ResourceOptions, error) {
	declared, settings, err := w.scope.Settings(r)
	if err != nil {
		return settings, err
	}
	options := dynamicinformer.ResourceOptions{Namespaces: settings.Namespaces,
		LabelSelector: settings.LabelSelector, FieldSelector: settings.FieldSelector}
	if len(declared.References) > 0 {
		options.Prune.Presets = []dynamicinformer.PrunePreset{dynamicinformer.PruneManagedFields}
	} else {
		options.Keep.Paths = []string{".status.phase", ".status.conditions"}
	}
	return options, nil
}

// syncAndLink syncs the caches and adds their objects to the graph.
func (w *treeData) syncAndLink(ctx, syncCtx context.Context) error {
	err := w.caches.Sync(syncCtx, w.Target)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err := w.recordUnsynced(err); err != nil {
		return err
	}
	if err := session.AddToGraph(w.graph, w.scope, w.caches.Synced...); err != nil {
		return err
	}
	return w.graph.WaitForSync(ctx) // all objects are present, so this sends no request
}

func textsByReason(types []unreadType) []string {
	var reasons []string
	names := map[string][]string{}
	for _, u := range types {
		if names[u.Reason] == nil {
			reasons = append(reasons, u.Reason)
		}
		names[u.Reason] = append(names[u.Reason], u.Type)
	}
	return naming.Texts(reasons,
		func(reason string) string { return session.Abbreviate(names[reason]) + ": " + reason })
}

// incompleteError is returned for a tree that can lack objects.
type incompleteError struct{ types []unreadType }

func (e *incompleteError) Error() string {
	return "the tree is incomplete, because types could not be read: " +
		strings.Join(textsByReason(e.types), "; ") + " (select types with --types)"
}

func (e *incompleteError) Unwrap() []error {
	return naming.Map(e.types, func(u unreadType) error { return u.err })
}

// recordUnsynced records the types that did not sync. It returns other errors.
func (w *treeData) recordUnsynced(err error) error {
	unsynced, ok := errors.AsType[*dynamicinformer.NotSyncedError](err)
	if !ok {
		return err
	}
	for _, current := range unsynced.NotSynced {
		failure := unreadType{current.GVR.GroupResource().String(), print.OneSafeLine(current.Message),
			&dynamicinformer.NotSyncedError{NotSynced: []status.Status{current}, Cause: unsynced.Cause}}
		switch {
		case apierrors.ReasonForError(current.LastError) == filesource.ReasonNotCollected:
			failure.Reason = reasonNotCollected
		case current.Reason == status.ReasonForbidden:
			failure.Reason = reasonForbidden
		case failure.Reason == "":
			failure.Reason = "not synced in time"
		}
		w.failed = append(w.failed, failure)
	}
	return nil
}
