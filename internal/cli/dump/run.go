package dump

import (
	"context"
	"errors"

	"k8s.io/client-go/dynamic"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/dynamicinformer"
)

// run resolves, syncs and prints. Its error joins those of the types that failed.
func (o *options) run(ctx context.Context) error {
	httpClient, err := o.target.HTTPClient()
	if err != nil {
		return err
	}
	waiting, cancel := o.target.Limit(ctx)
	defer cancel()
	resources, unresolved := o.target.Resolve(waiting, o.types)
	if len(resources) == 0 {
		return unresolved
	}
	client, err := dynamicinformer.NewClient(o.target.Config, httpClient)
	if err != nil {
		return errors.Join(unresolved, err)
	}
	caches, unsynced := o.sync(waiting, client, resources)
	defer caches.shutdown()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	printed := o.print(ctx, client, caches.synced)
	return errors.Join(unresolved, unsynced, printed)
}

// caches are running factories: at most one for all namespaces and one for a single namespace.
type caches struct {
	factories []*dynamicinformer.Factory
	synced    []cached
}

// cached is a type whose informer is synced.
type cached struct {
	resource discovery.Resource
	informer *dynamicinformer.Informer
}

// shutdown stops the factories. Nothing but list and watch requests can be under way, which end at once.
func (c *caches) shutdown() {
	for _, f := range c.factories {
		_ = f.Shutdown(context.Background())
	}
}

// sync runs an informer for each type, and waits until all are settled or the time is up.
func (o *options) sync(ctx context.Context, client dynamic.Interface, resources []discovery.Resource) (*caches, error) {
	c := &caches{}
	all, err := c.newFactory(dynamicinformer.Options{Client: client, Defaults: dynamicinformer.ResourceOptions{
		Transform: o.transform(),
	}})
	if err != nil {
		return c, err
	}
	one := all
	if o.target.Namespace != "" {
		one, err = c.newFactory(dynamicinformer.Options{Client: client, Defaults: dynamicinformer.ResourceOptions{
			Transform: o.transform(), Namespaces: dynamicinformer.InNamespaces(o.target.Namespace),
		}})
		if err != nil {
			return c, err
		}
	}
	wanted, err := o.request(resources, one, all)
	if err != nil {
		return c, err
	}
	var errs []error
	for _, f := range c.factories {
		if err := f.Start(context.WithoutCancel(ctx)); err != nil {
			return c, err
		}
	}
	for _, f := range c.factories {
		if _, err := f.WaitForSync(ctx); err != nil {
			errs = append(errs, err)
		}
	}
	for _, w := range wanted {
		if w.informer.HasSynced() {
			c.synced = append(c.synced, w)
		}
	}
	return c, errors.Join(errs...)
}

func (c *caches) newFactory(options dynamicinformer.Options) (*dynamicinformer.Factory, error) {
	f, err := dynamicinformer.New(options)
	if err == nil {
		c.factories = append(c.factories, f)
	}
	return f, err
}

// request asks the factory that fits the scope of each type for its informer.
func (o *options) request(resources []discovery.Resource, one, all *dynamicinformer.Factory) ([]cached, error) {
	wanted := make([]cached, 0, len(resources))
	for _, r := range resources {
		f := all
		if r.Scope == discovery.Namespaced {
			f = one
		}
		i, err := f.ForResource(r.GVR)
		if err != nil {
			return nil, err
		}
		wanted = append(wanted, cached{resource: r, informer: i})
	}
	return wanted, nil
}
