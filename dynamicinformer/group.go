package dynamicinformer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/naming"
	"github.com/crdcache/crdcache/internal/requests"
	"github.com/crdcache/crdcache/internal/store"
)

var (
	// ErrClusterExists is returned by Group.Add for a name that the group has.
	ErrClusterExists = errors.New("the cluster is already in the group: use Update for another connection, or remove it first")
	// ErrUnknownCluster is returned for a name that the group does not have.
	ErrUnknownCluster = errors.New("the cluster is not in the group")
)

// GroupOptions configure a Group. The zero value is usable.
type GroupOptions struct {
	// MemoryBudget is Options.MemoryBudget for the caches of all clusters together. Objects that were
	// not read for long are compressed first. Among equally cold objects, objects of unreachable clusters
	// come first. Default: zero, no budget.
	MemoryBudget int64

	// ListConcurrency is the maximum number of concurrent lists over all clusters. A free slot goes to the
	// waiting cluster with the fewest lists. Clusters that do not respond use no slots.
	// Options.ListConcurrency also limits the lists of each cluster. Default: 40.
	ListConcurrency int
}

const defaultGroupLists = 40

// Group has a Factory for each of many clusters, by name. The factories share a memory budget, a limit on
// lists, and the compression dictionaries of equal types. An unreachable cluster does not affect the
// others. It is safe for concurrent use.
type Group struct {
	options      GroupOptions
	listPool     *requests.ListPool
	sweeper      *store.Sweeper
	dictionaries *store.Dictionaries

	mu struct {
		sync.Mutex
		clusters map[string]*Factory // nil while Add makes the factory
		shutdown bool
	}
}

// NewGroup returns a group without clusters.
func NewGroup(options GroupOptions) (*Group, error) {
	if options.MemoryBudget < 0 || options.ListConcurrency < 0 {
		return nil, fmt.Errorf("dynamicinformer: MemoryBudget is %d and ListConcurrency is %d; they must not be negative",
			options.MemoryBudget, options.ListConcurrency)
	}
	options.ListConcurrency = cmp.Or(options.ListConcurrency, defaultGroupLists)
	return newGroup(options), nil
}

func newGroup(options GroupOptions) *Group {
	g := &Group{options: options, listPool: requests.NewListPool(options.ListConcurrency),
		sweeper: store.NewSweeper(options.MemoryBudget), dictionaries: &store.Dictionaries{}}
	g.mu.clusters = map[string]*Factory{}
	return g
}

// Add adds a cluster and returns its factory, which the caller starts. It sends no request. Its name
// identifies its persisted objects, so clusters can share Options.Persistence. Add returns ErrClusterExists
// for a name that the group has, also while Remove has not returned, and ErrShutdown after Shutdown.
func (g *Group) Add(cluster string, options Options) (*Factory, error) {
	f, err := g.add(cluster, options)
	if err != nil {
		return nil, fmt.Errorf("dynamicinformer: add cluster %q: %w", cluster, err)
	}
	return f, nil
}

func (g *Group) add(cluster string, options Options) (*Factory, error) {
	switch {
	case cluster == "":
		return nil, errors.New("its name is empty")
	case options.MemoryBudget != 0:
		return nil, errors.New("option MemoryBudget is set: set GroupOptions.MemoryBudget, which all clusters share")
	}
	if options.Config != nil && connectionOf(options.Config) == nil {
		config, err := Reconnectable(options.Config, options.HTTPClient)
		if err != nil {
			return nil, err
		}
		options.Config, options.HTTPClient = config, nil
	}
	if err := g.reserve(cluster); err != nil {
		return nil, err
	}
	f, err := g.newFactory(cluster, options)
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case err != nil:
		delete(g.mu.clusters, cluster)
		return nil, err
	case g.mu.shutdown:
		delete(g.mu.clusters, cluster)
		return nil, errors.Join(ErrShutdown, f.Close())
	}
	g.mu.clusters[cluster] = f
	return f, nil
}

// reserve takes the name of a cluster.
func (g *Group) reserve(cluster string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mu.shutdown {
		return ErrShutdown
	}
	if _, exists := g.mu.clusters[cluster]; exists {
		return ErrClusterExists
	}
	g.mu.clusters[cluster] = nil
	return nil
}

// drop removes a factory from the group, if it is in it.
func (g *Group) drop(f *Factory) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mu.clusters[f.cluster] == f {
		delete(g.mu.clusters, f.cluster)
	}
}

// Factory returns the factory of a cluster, or nil if the group does not have the cluster.
func (g *Group) Factory(cluster string) *Factory {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.mu.clusters[cluster]
}

// All returns the clusters at the time of the call, ordered by name.
func (g *Group) All() iter.Seq2[string, *Factory] {
	g.mu.Lock()
	clusters := maps.Clone(g.mu.clusters)
	g.mu.Unlock()
	maps.DeleteFunc(clusters, func(_ string, f *Factory) bool { return f == nil })
	names := slices.Sorted(maps.Keys(clusters))
	return func(yield func(string, *Factory) bool) {
		for _, name := range names {
			if !yield(name, clusters[name]) {
				return
			}
		}
	}
}

// Status returns the state of each cluster, ordered by name. It sends no request.
func (g *Group) Status() []status.Cluster {
	clusters := []status.Cluster{}
	nameByUID := map[types.UID]string{}
	for name, f := range g.All() {
		c := status.Cluster{Name: name, Reachable: f.Condition(status.ConditionReachable),
			Ready: f.Condition(status.ConditionReady)}
		if connection := connectionOf(f.options.Config); connection != nil {
			c.UID = connection.UID()
		}
		if c.UID != "" {
			if c.SameAs = nameByUID[c.UID]; c.SameAs == "" {
				nameByUID[c.UID] = name
			}
		}
		clusters = append(clusters, c)
	}
	return clusters
}

// MemoryStats returns the memory of the caches of all clusters. Its cost grows with the number of types.
func (g *Group) MemoryStats() status.MemoryStats {
	total := status.MemoryStats{Budget: g.options.MemoryBudget}
	for _, f := range g.All() {
		clusterStats := f.MemoryStats()
		total.Used += clusterStats.Used
		total.Compressed += clusterStats.Compressed
		total.Compressible += clusterStats.Compressible
	}
	return withOverBudget(total)
}

// Update replaces the address and the credentials of a cluster, for example after its kubeconfig was rotated.
// Open watches end and continue with the new connection, without a new list. Before that, the factory
// compares the UIDs of the namespace kube-system, or the address and the certificate authority if the
// UID cannot be read. If the new connection leads to another cluster, all its requests fail with a
// message in Status, and the caches remain as they are: remove the cluster and add it again.
//
// Update sends no request itself. It returns ErrUnknownCluster, and an error if Options.Client is set.
func (g *Group) Update(cluster string, config *rest.Config) error {
	f := g.Factory(cluster)
	if f == nil {
		return fmt.Errorf("dynamicinformer: update cluster %q: %w", cluster, ErrUnknownCluster)
	}
	connection := connectionOf(f.options.Config)
	if connection == nil {
		return fmt.Errorf("dynamicinformer: update cluster %q: its Client cannot be replaced: add it with Options.Config", cluster)
	}
	if err := connection.Update(config); err != nil {
		return fmt.Errorf("dynamicinformer: update cluster %q: %w", cluster, err)
	}
	for _, i := range f.Informers() {
		i.Retry()
	}
	return nil
}

// Remove shuts the factory of a cluster down and empties its caches, so that their memory is free even while
// the program refers to the factory. HasSynced of its informers is false afterwards. Handlers receive no
// deletions. Remove returns the error of Factory.Shutdown, and ErrUnknownCluster for a name that the group
// does not have. If handlers of an informer are still running when ctx ends, it is emptied after they return.
//
// Factory.Shutdown also removes a cluster, but leaves its caches readable.
func (g *Group) Remove(ctx context.Context, cluster string) error {
	f := g.Factory(cluster)
	if f == nil {
		return fmt.Errorf("dynamicinformer: remove cluster %q: %w", cluster, ErrUnknownCluster)
	}
	return f.remove(ctx)
}

func (f *Factory) remove(ctx context.Context) error {
	informers := slices.Concat(naming.Map(f.informerGroups(),
		func(group *informerGroup) []*Informer { return group.informers })...)
	err := f.Shutdown(ctx)
	for _, i := range informers {
		select {
		case <-i.stopped:
			i.core.Discard()
		default:
			go func() { // ended by the informer's handlers
				<-i.stopped
				i.core.Discard()
			}()
		}
	}
	return err
}

// Shutdown removes all clusters. The group cannot be used again. The error joins the errors of Remove.
func (g *Group) Shutdown(ctx context.Context) error {
	g.mu.Lock()
	g.mu.shutdown = true
	g.mu.Unlock()
	var failures []error
	var mu sync.Mutex
	var removals sync.WaitGroup
	for name, f := range g.All() {
		removals.Go(func() { // ended by ctx at the latest
			if err := f.remove(ctx); err != nil {
				mu.Lock()
				defer mu.Unlock()
				failures = append(failures, fmt.Errorf("cluster %q: %w", name, err))
			}
		})
	}
	removals.Wait()
	return errors.Join(failures...)
}

// Reconnectable returns a config for the same server. Group.Update can replace its address and credentials.
// Use it for Options.Config and for the other clients of the cluster, such as a discovery.Tracker, so that
// Update applies to all of them. The HTTP client takes precedence over the transport settings of config; it
// may be nil. Group.Add makes such a config itself from any other one.
func Reconnectable(config *rest.Config, httpClient *http.Client) (*rest.Config, error) {
	connection, err := requests.NewConnection(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("dynamicinformer: %w", err)
	}
	return connection.Config(), nil
}

// connectionOf returns the connection of a result of Reconnectable, or nil.
func connectionOf(config *rest.Config) *requests.Connection {
	if config == nil {
		return nil
	}
	connection, _ := config.Transport.(*requests.Connection)
	return connection
}
