package dump

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/dynamicinformer"
)

// run resolves, syncs and prints. Its error joins those of the types that failed.
func (o *options) run(ctx context.Context) error {
	httpClient, err := rest.HTTPClientFor(o.config)
	if err != nil {
		return fmt.Errorf("reading the kubeconfig: %w", err)
	}
	resources, unresolved := o.resolve(ctx)
	if len(resources) == 0 {
		return unresolved
	}
	client, err := dynamic.NewForConfigAndClient(o.config, httpClient)
	if err != nil {
		return errors.Join(unresolved, err)
	}
	caches, unsynced := o.sync(ctx, client, resources)
	defer caches.shutdown()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	printed := o.print(ctx, client, caches.synced)
	return errors.Join(unresolved, unsynced, printed)
}

// resolve looks up every type, each once however many names it was given by.
func (o *options) resolve(ctx context.Context) ([]discovery.Resource, error) {
	client, err := discovery.NewClient(o.config, discovery.Options{})
	if err != nil {
		return nil, err
	}
	var resources []discovery.Resource
	var errs []error
	seen := map[string]bool{}
	for _, name := range o.types {
		resolution, err := client.Resolve(ctx, name)
		if err != nil {
			errs = append(errs, o.explain(err))
			if !isOwnFault(err) {
				break // the server did not answer: it will not for the next name either
			}
			continue
		}
		o.mention(name, resolution)
		for _, r := range resolution.Resources {
			if !seen[r.GVR.String()] {
				seen[r.GVR.String()] = true
				resources = append(resources, r)
			}
		}
	}
	return resources, errors.Join(errs...)
}

// isOwnFault reports whether a name could not be resolved because of the name itself.
func isOwnFault(err error) bool {
	var noMatch *discovery.NoMatchError
	var malformed *discovery.NameError
	return errors.As(err, &noMatch) || errors.As(err, &malformed)
}

// explain says of a server that did not answer where it was looked for, and why it did not, once.
func (o *options) explain(err error) error {
	var request *url.Error
	if !errors.As(err, &request) || errors.Is(err, context.Canceled) {
		return err
	}
	return fmt.Errorf("cannot reach the API server at %s: %w", o.config.Host, request.Err)
}

// mention tells on stderr what a resolution left open.
func (o *options) mention(name string, r discovery.Resolution) {
	for _, failed := range r.Unknown {
		fmt.Fprintf(o.ErrOut, "warning: %s may have members that could not be discovered: %v\n", name, failed)
	}
	if len(r.Resources) == 0 {
		fmt.Fprintf(o.ErrOut, "warning: %s has no types that can be listed and watched\n", name)
	}
	if len(r.Alternatives) > 0 {
		fmt.Fprintf(o.ErrOut, "warning: %s is read as %s; it could also be", name, r.Resources[0])
		for i, other := range r.Alternatives {
			if i > 0 {
				fmt.Fprint(o.ErrOut, ",")
			}
			fmt.Fprintf(o.ErrOut, " %s", other)
		}
		fmt.Fprintln(o.ErrOut)
	}
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
	if o.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.timeout)
		defer cancel()
	}
	c := &caches{}
	all, err := c.newFactory(dynamicinformer.Options{Client: client, Transform: o.transform()})
	if err != nil {
		return c, err
	}
	one := all
	if o.namespace != "" {
		one, err = c.newFactory(dynamicinformer.Options{Client: client, Transform: o.transform(), Namespace: o.namespace})
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
