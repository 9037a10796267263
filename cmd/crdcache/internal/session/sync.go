package session

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/indexers"
)

// Indexes are those of the types that have any.
type Indexes map[schema.GroupVersionResource][]*indexers.Index

// Steps are what a verb does with types of which it reads all objects once.
type Steps struct {
	// Check, if set, looks at the types that were found before anything of them is read.
	Check func(types *Types, indexes Indexes) error
	// Instead, if set, is told what was found, and may do all that there is to do.
	Instead func(ctx context.Context, types *Types, unresolved error) (done bool, err error)
	// Use works on the caches that are synced, which may be none.
	Use func(ctx context.Context, types *Types, indexes Indexes, synced []Cache) error
}

// Sync finds the types, reads all of their objects while it shows on a terminal how far that is, and takes the steps.
// Its error joins theirs with those of the types that failed, which do not keep the others from being used.
func (r *Reader) Sync(ctx context.Context, steps Steps) error {
	waiting, cancel := r.Target.Limit(ctx)
	defer cancel()
	types, unresolved := r.Find(waiting)
	if types == nil {
		return unresolved
	}
	indexes := types.Indexes()
	if steps.Check != nil {
		if err := steps.Check(types, indexes); err != nil {
			return errors.Join(unresolved, err)
		}
	}
	if steps.Instead != nil {
		if done, err := steps.Instead(waiting, types, unresolved); done {
			return err
		}
	}
	err := types.Sync(ctx, waiting, indexes, func(synced []Cache) error { return steps.Use(ctx, types, indexes, synced) })
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return errors.Join(unresolved, err)
}

// Sync reads all objects of the types, for as long as waiting lasts, and calls use with the caches that are synced.
func (t *Types) Sync(ctx, waiting context.Context, indexes Indexes, use func(synced []Cache) error) error {
	cached, err := t.Caches(indexes, CacheOptions{})
	if err != nil {
		return err
	}
	defer cached.Shutdown()
	done := t.reader.Target.Progress(cached.Progress)
	unsynced := cached.Sync(waiting)
	done()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return errors.Join(unsynced, use(cached.Synced))
}
