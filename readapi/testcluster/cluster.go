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
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/readapi"
	"github.com/crdcache/crdcache/readapi/faults"
)

// Options say what a cluster begins with. The zero value is a cluster with the built-in types and the
// namespaces that every cluster has.
type Options struct {
	// Paths are files and directories of manifests that are loaded first, as by Cluster.LoadFiles; or, with
	// FS, by Cluster.LoadFS.
	Paths []string
	// FS is where Paths are, such as an embed.FS. Default: the file system of the machine.
	FS fs.FS
	// Objects are loaded after those of Paths, as by Cluster.Load.
	Objects []runtime.Object
	// Types are served beside those that CustomResourceDefinitions define.
	Types []readapi.Type
	// Scheme knows Go types: it tells the kinds of typed objects that do not say theirs, and lets strategic
	// merge patches be served for the built-in kinds that it has. Default: objects have to say their kinds,
	// and such patches are refused.
	Scheme *runtime.Scheme
	// Bare leaves out the built-in types, and with them namespaces: objects may then be in any.
	Bare bool
	// History is how many changes of each type are remembered at least for watches. Default
	// readapi.DefaultHistory.
	History int
	// BookmarkInterval is how often a watch gets a bookmark. Default readapi.DefaultBookmarkInterval.
	BookmarkInterval time.Duration
	// Now is the clock of the cluster. Default time.Now.
	Now func() time.Time
}

// Cluster is a Kubernetes API in memory. It is an http.Handler, is safe for concurrent use, and only made by
// New. It needs no end: nothing runs but the requests of its clients.
type Cluster struct {
	options Options
	storage *readapi.Storage
	faults  *faults.Injector
}

// New returns a cluster that has what the options say. The error joins what cannot be read or loaded, each
// with its place.
func New(ctx context.Context, options Options) (*Cluster, error) {
	c := &Cluster{options: options, storage: readapi.NewStorage(readapi.StorageOptions{
		History: options.History, Now: options.Now, Stamp: true, Conform: true, Namespaces: !options.Bare,
	})}
	handler := readapi.HandlerOptions{Writes: true, BookmarkInterval: options.BookmarkInterval}
	if options.Scheme != nil {
		handler.StrategicMerge, handler.Decodable = c.strategicMerge, c.decodable
	}
	c.faults = faults.New(readapi.NewHandler(c.storage, handler))
	if err := c.begin(); err != nil {
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

// begin sets up what is there before anything is loaded.
func (c *Cluster) begin() error {
	var types []readapi.Type
	if !c.options.Bare {
		for _, b := range builtInTypes {
			types = append(types, b.definition())
		}
	}
	for _, t := range append(types, c.options.Types...) {
		if err := c.storage.SetType(t); err != nil {
			return err
		}
	}
	if c.options.Bare {
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

// Config returns a config for clients of the cluster, which then need no socket: any of client-go's and
// controller-runtime's. It is a copy.
func (c *Cluster) Config() *rest.Config { return readapi.Config(c) }

// Client returns a dynamic client of the cluster.
func (c *Cluster) Client() dynamic.Interface {
	return dynamic.NewForConfigOrDie(c.Config()) // the config is good
}

// Storage is where the cluster keeps its objects. What is applied there is not checked by the rules for
// clients.
func (c *Cluster) Storage() *readapi.Storage { return c.storage }

// Faults breaks answers of the cluster on demand, and counts and awaits requests.
func (c *Cluster) Faults() *faults.Injector { return c.faults }

// ServeHTTP implements http.Handler, for clients of other processes such as kubectl.
func (c *Cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) { c.faults.ServeHTTP(w, r) }
