package dump

import (
	"context"
	"errors"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/internal/cli/caches"
	"github.com/crdcache/crdcache/internal/cli/show"
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
	cached, err := caches.New(client, resources, caches.Options{Namespace: o.target.Namespace, Defaults: o.cached})
	if err != nil {
		return errors.Join(unresolved, err)
	}
	defer cached.Shutdown()
	done := o.target.Progress(cached.Progress)
	unsynced := cached.Sync(waiting)
	done()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	loader, err := tables.NewLoader(o.target.Config, httpClient, client, o.target.Namespace, caches.Selectors(o.cached), o.ErrOut)
	if err != nil {
		return err
	}
	sections := make([]show.Section, len(cached.Synced))
	for i, c := range cached.Synced {
		sections[i] = c.Section()
	}
	printed := show.Print(ctx, sections, show.Options{
		IOStreams: o.IOStreams, Style: show.Style{Format: o.format, NoHeaders: o.noHeaders}, Namespace: o.target.Namespace, Loader: loader,
	})
	return errors.Join(unresolved, unsynced, printed)
}
