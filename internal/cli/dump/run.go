package dump

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/internal/cli/caches"
	"github.com/crdcache/crdcache/internal/cli/tables"
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
	cached, unsynced := caches.Sync(waiting, client, resources, caches.Options{Namespace: o.target.Namespace, Defaults: o.cached})
	defer cached.Shutdown()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	loader, err := tables.NewLoader(o.target.Config, httpClient, client, o.target.Namespace, selectors(o.cached), o.ErrOut)
	if err != nil {
		return err
	}
	printed := o.print(ctx, loader, cached.Synced)
	return errors.Join(unresolved, unsynced, printed)
}

// selectors are those of the objects that are cached, as the server takes them.
func selectors(cached dynamicinformer.ResourceOptions) metav1.ListOptions {
	var options metav1.ListOptions
	if cached.LabelSelector != nil {
		options.LabelSelector = cached.LabelSelector.String()
	}
	if cached.FieldSelector != nil {
		options.FieldSelector = cached.FieldSelector.String()
	}
	return options
}
