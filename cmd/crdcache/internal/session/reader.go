package session

import (
	"context"
	"errors"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/localserver"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/dynamicinformer"
)

// Reader reads the types that the flags and arguments of a verb select.
type Reader struct {
	*Target
	// Config has the indexes and references.
	Config *Config
	// WholeObjects is set for commands that ignore keep and prune of the config.
	WholeObjects bool
	// PrintsTables is set for commands that print objects as tables.
	PrintsTables bool
	// SharesAll is set if shared caches have the objects of all namespaces, also if a namespace is read.
	SharesAll     bool
	allNamespaces bool // ignores the namespace of the flags

	flags           *ReadFlags
	typeNames       []string // type names for discovery
	args            []string // which can name resources of the config
	informerOptions dynamicinformer.ResourceOptions

	// localServer is nil if the verb reads from the cluster or files.
	localServer *localserver.Client
}

// TypeNames returns the names of the requested types in the form that discovery resolves.
func (r *Reader) TypeNames() []string { return r.typeNames }

// UseConfigTypes sets the types to the resources of the config.
func (r *Reader) UseConfigTypes() (err error) {
	if r.typeNames, err = r.Config.TypeNames(r.Config.Names()); err == nil && len(r.typeNames) == 0 {
		err = Usagef("the config declares no types: name the types to cache")
	}
	return err
}

// InformerOptions returns the selectors and the omitted fields that the flags determine, without namespaces.
func (r *Reader) InformerOptions() dynamicinformer.ResourceOptions { return r.informerOptions }

// OmitsManagedFields reports whether the flags omit metadata.managedFields.
func (r *Reader) OmitsManagedFields() bool { return r.informerOptions.Prune.Presets != nil }

// Types are resolved types with clients to read them.
type Types struct {
	Resources []discovery.Resource
	Client    dynamic.Interface

	reader *Reader
	// crdRows has nil for types whose rows only the API server knows. tableClient lists these types with
	// the rows. Both fields are nil before LoadRows.
	crdRows     map[schema.GroupVersionResource]*print.Rows
	tableClient *print.TableClient
	// lacksRows is set if the objects of a shared cache have no rows of the API server.
	lacksRows bool
}

// LoadRows must be called before objects are read that may be printed as tables.
func (t *Types) LoadRows(ctx context.Context) error {
	if !t.reader.PrintsTables || t.tableClient != nil {
		return nil
	}
	tables, err := t.reader.PlainClient()
	if err != nil {
		return err
	}
	t.tableClient = print.NewTableClient(tables, t.Client)
	t.crdRows = map[schema.GroupVersionResource]*print.Rows{}
	for i, rows := range print.LoadRows(ctx, t.reader.Definitions(t.Client), t.Resources, t.reader.ErrOut,
		t.reader.Now) {
		gvr := t.Resources[i].GVR
		if columns, cells := t.reader.localTable(gvr); rows == nil && len(columns) > 0 {
			rows = print.NewServerRows(columns,
				func(u *unstructured.Unstructured) []any { return cells(u.Object) })
		}
		t.crdRows[gvr] = rows
	}
	return nil
}

// localTable works like filesource.Source.Table for files in memory.
func (t *Target) localTable(gvr schema.GroupVersionResource) (columns []metav1.TableColumnDefinition,
	cells func(object map[string]any) []any) {
	if t.source == nil || t.Snapshot() != nil {
		return nil, nil
	}
	return t.source.Table(gvr.GroupResource())
}

// Rows returns the rows of a type after its objects were read. Without LoadRows it returns nil. It warns if
// the user may not read the CRD and the server has printed no rows.
func (t *Types) Rows(gvr schema.GroupVersionResource) *print.Rows {
	if rows := t.crdRows[gvr]; rows != nil || t.tableClient == nil {
		return rows
	}
	rows := t.tableClient.Rows(gvr)
	stored, _ := t.reader.fetchedCRDs.Load(gvr.GroupResource())
	if fetched, _ := stored.(fetchedCRD); apierrors.IsForbidden(fetched.err) && !rows.FromServer {
		print.WarnOfMissingColumns(t.reader.ErrOut, discovery.Resource{GVR: gvr}, fetched.err)
	}
	return rows
}

// HasColumns reports whether the columns of a type are known without the API server's rows.
func (t *Types) HasColumns(gvr schema.GroupVersionResource) bool { return t.crdRows[gvr] != nil }

// needsServerRows reports whether only the API server knows the rows of the first type.
func (t *Types) needsServerRows() bool {
	return t.tableClient != nil && !t.HasColumns(t.Resources[0].GVR)
}

// clientFor returns the client that reads a type. For types without columns of a CRD, the client adds the API
// server's rows to the objects.
func (t *Types) clientFor(gvr schema.GroupVersionResource) dynamic.Interface {
	if t.tableClient == nil || t.crdRows[gvr] != nil {
		return t.Client
	}
	return t.tableClient
}

// ResolveTypes returns the resolved types together with the joined errors of names without a type. It returns
// nil if it could resolve no name.
func (r *Reader) ResolveTypes(ctx context.Context) (*Types, error) {
	resources, unresolved := r.Resolve(ctx, r.typeNames, "list")
	if len(resources) == 0 {
		return nil, unresolved
	}
	if err := r.Config.CheckNames(resources); err != nil {
		return nil, err
	}
	types, err := r.newTypes(resources)
	return types, errors.Join(unresolved, err)
}

func (r *Reader) newTypes(resources []discovery.Resource) (*Types, error) {
	client, err := r.Client()
	return &Types{Resources: resources, Client: client, reader: r}, err
}

// Caches creates an informer for each type, with the settings and indexes of the config and the selectors of
// the flags.
func (t *Types) Caches() (*Caches, error) {
	wide := t.reader.WithoutSelectors()
	wide.allNamespaces = t.reader.SharesAll
	sharedOptionsOf := wide.CacheOptions
	if t.needsServerRows() && t.reader.ReadsFiles() {
		sharedOptionsOf = nil // the files are in memory, and several objects can have one name
	}
	return NewCaches(t.clientFor, t.Resources, t.reader.CacheOptions, sharedOptionsOf)
}

func (t *Types) SectionOptions() print.SectionOptions {
	return print.SectionOptions{Cluster: t.reader.Cluster, Namespace: t.reader.Namespace}
}

type SyncCallbacks struct {
	// BeforeSync, if set, validates the command after the types are resolved and before objects are read.
	BeforeSync func(types *Types) error
	// AfterSync is called with the synced caches, possibly none.
	AfterSync func(ctx context.Context, types *Types, synced []Cache) error
}

// Sync resolves the types, syncs their caches with a progress line, and calls the callbacks. The error joins
// the errors of the callbacks and of the types that did not sync. AfterSync is called for the other types.
func (r *Reader) Sync(ctx context.Context, callbacks SyncCallbacks) error {
	syncCtx, cancel := r.WithTimeout(ctx)
	defer cancel()
	types, unresolved := r.ResolveTypes(syncCtx)
	if types == nil {
		return unresolved
	}
	if callbacks.BeforeSync != nil {
		if err := callbacks.BeforeSync(types); err != nil {
			return errors.Join(unresolved, err)
		}
	}
	if err := types.LoadRows(syncCtx); err != nil {
		return err
	}
	err := types.Sync(ctx, syncCtx,
		func(synced []Cache) error { return callbacks.AfterSync(ctx, types, synced) })
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return errors.Join(unresolved, err)
}

// Sync syncs the types until syncCtx ends. Then it calls afterSync with the synced caches.
func (t *Types) Sync(ctx, syncCtx context.Context, afterSync func(synced []Cache) error) error {
	caches, err := t.Caches()
	if err != nil {
		return err
	}
	defer caches.Close()
	syncErr := caches.Sync(syncCtx, t.reader.Target)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	isShared := func(c Cache) bool { return c.Shared }
	t.lacksRows = t.needsServerRows() && slices.ContainsFunc(caches.Synced, isShared)
	return errors.Join(syncErr, afterSync(caches.Synced))
}
