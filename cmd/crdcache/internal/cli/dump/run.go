package dump

import (
	"context"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/cli/caches"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/cli/follow"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/cli/reader"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/cli/show"
	"github.com/crdcache/crdcache/indexers/query"
)

// run syncs the types and prints those that are synced.
func (o *options) run(ctx context.Context) error {
	return o.Sync(ctx, reader.Steps{Use: o.print})
}

// follow prints the objects and then those that change.
func (o *options) follow(ctx context.Context) error {
	return follow.Run(ctx, follow.Options{Reader: o.Reader, Style: o.style, Query: query.All()})
}

func (o *options) print(ctx context.Context, types *reader.Types, _ reader.Indexes, synced []caches.Cache) error {
	options, err := types.Show(o.style)
	if err != nil {
		return err
	}
	sections := make([]show.Section, len(synced))
	for i, c := range synced {
		sections[i] = c.Section()
	}
	return show.Print(ctx, sections, options)
}
