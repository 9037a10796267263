package testcluster

import (
	"context"
	"fmt"
	"io/fs"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	kjson "sigs.k8s.io/json"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/internal/apiserver"
	"github.com/crdcache/crdcache/internal/naming"
	"github.com/crdcache/crdcache/serving/readapi"
)

// Options configures a cluster. The zero value is a cluster with the built-in types and the initial
// namespaces.
type Options struct {
	// Paths are files and directories of manifests to load, see Cluster.LoadFiles and, if FS is set,
	// Cluster.LoadFS.
	Paths []string
	// FS is the file system of Paths, such as an embed.FS. Default: the file system of the machine.
	FS fs.FS
	// Objects are loaded after Paths, see Cluster.Load.
	Objects []runtime.Object
	// Types are types without a CustomResourceDefinition, in addition to the built-in types.
	Types []readapi.Type
	// Scheme has the Go types of typed objects. It is needed for typed objects without a kind, and for
	// strategic merge patches of built-in types. Optional.
	Scheme *runtime.Scheme
	// WithoutBuiltIns omits the built-in types and the checks of namespaces.
	WithoutBuiltIns bool
	// History is the minimum number of changes that each type remembers for watches. Default 1000.
	History int
	// BookmarkInterval is the interval of bookmarks in watches. Default readapi.DefaultBookmarkInterval.
	BookmarkInterval time.Duration
	// Now is the clock of the cluster. Default time.Now.
	Now func() time.Time
}

// Cluster is a Kubernetes API in memory. It is an http.Handler, safe for concurrent use, and needs no
// shutdown. Create it with New.
type Cluster struct {
	options Options
	storage *apiserver.Storage
	faults  *Injector
}

// New returns a cluster. The error joins the errors of all files and objects, each with its location.
func New(ctx context.Context, options Options) (*Cluster, error) {
	c := &Cluster{options: options, storage: apiserver.NewStorage(apiserver.StorageOptions{
		History: options.History, Now: options.Now, Stamp: true, Conform: true,
		Namespaces: !options.WithoutBuiltIns,
	})}
	writer := apiserver.WriterOptions{ParsePatch: c.parsePatch, ReadBody: readBody}
	if options.Scheme != nil {
		writer.Decodable = c.checkDecodable
	}
	c.faults = NewInjector(readapi.NewHandler(c.storage.Writer(writer),
		readapi.HandlerOptions{BookmarkInterval: options.BookmarkInterval}))
	if err := c.addInitialObjects(); err != nil {
		return nil, err
	}
	load := c.LoadFiles
	if options.FS != nil {
		load = func(ctx context.Context, paths ...string) error { return c.LoadFS(ctx, options.FS, paths...) }
	}
	if err := load(ctx, options.Paths...); err != nil {
		return nil, err
	}
	return c, c.Load(ctx, options.Objects...)
}

func (c *Cluster) addInitialObjects() error {
	if !c.options.WithoutBuiltIns {
		for _, b := range naming.BuiltinTypes {
			if err := c.storage.SetBuiltIn(typeAndRules(b)); err != nil {
				return err
			}
		}
	}
	for _, t := range c.options.Types {
		if err := c.storage.SetType(t); err != nil {
			return err
		}
	}
	if c.options.WithoutBuiltIns {
		return nil
	}
	for _, name := range []string{metav1.NamespaceDefault, "kube-node-lease", metav1.NamespacePublic,
		metav1.NamespaceSystem} {
		namespace := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name},
		}}
		if _, err := c.storage.Apply(namespace); err != nil {
			return fmt.Errorf("namespace %s: %w", name, err)
		}
	}
	return nil
}

// Config returns a new config for clients of client-go and controller-runtime. They need no socket.
func (c *Cluster) Config() *rest.Config { return readapi.Config(c) }

// Client returns a dynamic client of the cluster.
func (c *Cluster) Client() dynamic.Interface {
	return dynamic.NewForConfigOrDie(c.Config()) // the config is valid
}

// Compact drops the history of all types: watches from before now end with 410 Expired, as after a compaction
// of etcd.
func (c *Cluster) Compact() { c.storage.Compact() }

// Restore stores objects of another cluster with their resource versions, like a restore of etcd. It drops
// the history of their types: their watches end with 410 Expired.
func (c *Cluster) Restore(objects ...*unstructured.Unstructured) error {
	for _, o := range objects {
		if _, err := c.storage.Restore(o); err != nil {
			return err
		}
	}
	return nil
}

// Faults injects faults into the cluster's answers, and counts requests.
func (c *Cluster) Faults() *Injector { return c.faults }

// ServeHTTP implements http.Handler, for clients in other processes such as kubectl.
func (c *Cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) { c.faults.ServeHTTP(w, r) }

// admissionGroup is the group of webhook configurations and admission policies.
const admissionGroup = "admissionregistration.k8s.io"

// admissionRejected is the reason why objects of admissionGroup cannot be written.
const admissionRejected = "a cluster in memory does not call webhooks or evaluate admission policies: leave them out, or use envtest"

func typeAndRules(b naming.BuiltinType) (readapi.Type, apiserver.Rules) {
	version := readapi.Version{
		Name: b.Version, UnsupportedSubresources: b.Subresources, SelectableFields: b.SelectableFields,
	}
	if b.Has(naming.HasStatus) {
		version.Subresources = []string{"status"}
	}
	rules := apiserver.Rules{
		NoGeneration: !b.Has(naming.HasGeneration), UnconditionalUpdate: b.Has(naming.UnconditionalUpdate),
		CreateOnUpdate: b.Has(naming.CreateOnUpdate), AnyName: b.Has(naming.AnyName),
		AnyFinalizer: b.Group == "coordination.k8s.io",
	}
	if b.Group == admissionGroup {
		rules.RefusalReason = admissionRejected
	}
	return readapi.Type{
		Group: b.Group, Namespaced: b.Has(naming.Namespaced), Versions: []readapi.Version{version},
		Names: crd.Names{Plural: b.Plural, Kind: b.Kind, ShortNames: b.ShortNames,
			Categories: b.Categories},
	}, rules
}

func (c *Cluster) checkDecodable(gvk schema.GroupVersionKind, object []byte) error {
	typed, err := c.options.Scheme.New(gvk)
	if err != nil {
		return nil // any object of a type outside the scheme is accepted
	}
	return kjson.UnmarshalCaseSensitivePreserveInts(object, typed)
}
