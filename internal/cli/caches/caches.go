// Package caches runs the informers of a command: it makes one for each type, waits until they are synced, and
// prints what they hold.
package caches

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/dynamicinformer"
)

// Caches are the informers of one command.
type Caches struct {
	// Synced are the types whose informers are synced, in the order in which they were asked for.
	Synced []Cache

	factory *dynamicinformer.Factory
}

// Cache is a type and its informer.
type Cache struct {
	Resource discovery.Resource
	Informer *dynamicinformer.Informer
}

// Options say what is cached.
type Options struct {
	// Namespace limits namespaced types; empty means all.
	Namespace string
	// Defaults are for every type.
	Defaults dynamicinformer.ResourceOptions
	// Resources are for single types.
	Resources map[schema.GroupVersionResource]dynamicinformer.ResourceOptions
	// Types tells which types there are, for commands that follow them. Default: all that are asked for.
	Types dynamicinformer.TypeSource
}

// Sync runs an informer for each type and waits until all are settled or ctx ends. What is synced comes with the
// joined errors of the others. The informers run until Shutdown.
func Sync(ctx context.Context, client dynamic.Interface, resources []discovery.Resource, options Options) (*Caches, error) {
	c := &Caches{}
	perType := make(map[schema.GroupVersionResource]dynamicinformer.ResourceOptions, len(resources))
	for _, r := range resources {
		one := options.Resources[r.GVR]
		if options.Namespace != "" && r.Scope == discovery.Namespaced {
			one.Namespaces = dynamicinformer.InNamespaces(options.Namespace)
		}
		perType[r.GVR] = one
	}
	factory, err := dynamicinformer.New(dynamicinformer.Options{
		Client: client, Types: options.Types, Defaults: options.Defaults, Resources: perType,
	})
	if err != nil {
		return c, err
	}
	c.factory = factory
	wanted := make([]Cache, 0, len(resources))
	for _, r := range resources {
		informer, err := factory.ForResource(r.GVR)
		if err != nil {
			return c, err
		}
		wanted = append(wanted, Cache{Resource: r, Informer: informer})
	}
	if err := factory.Start(context.WithoutCancel(ctx)); err != nil {
		return c, err
	}
	_, err = factory.WaitForSync(ctx)
	for _, w := range wanted {
		if w.Informer.HasSynced() {
			c.Synced = append(c.Synced, w)
		}
	}
	return c, err
}

// Shutdown stops the informers. Nothing but list and watch requests can be under way, which end at once.
func (c *Caches) Shutdown() {
	if c.factory != nil {
		_ = c.factory.Shutdown(context.Background())
	}
}

// Selectors are those of the objects that are cached, as the server takes them.
func Selectors(cached dynamicinformer.ResourceOptions) metav1.ListOptions {
	var options metav1.ListOptions
	if cached.LabelSelector != nil {
		options.LabelSelector = cached.LabelSelector.String()
	}
	if cached.FieldSelector != nil {
		options.FieldSelector = cached.FieldSelector.String()
	}
	return options
}
