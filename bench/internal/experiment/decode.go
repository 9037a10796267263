package experiment

import (
	"context"
	"fmt"

	"github.com/crdcache/crdcache/bench/internal/child"
	"github.com/crdcache/crdcache/bench/internal/measure"
)

// decodeObjects measures what becomes of JSON: single objects, and a list.
func decodeObjects(ctx context.Context, task child.Task, _ func() error) (child.Outcome, error) {
	list, items, err := samples(ctx, task)
	if err != nil {
		return child.Outcome{}, err
	}
	d, err := newDecoder(task.Subject)
	if err != nil {
		return child.Outcome{}, err
	}
	one, err := measure.Operation(task.Budget, func(n int) error { return d.object(items[n%len(items)]) })
	if err != nil {
		return child.Outcome{}, err
	}
	all, err := measure.Operation(2*task.Budget, func(int) error {
		got, err := d.list(list)
		if err == nil && got != len(items) {
			err = fmt.Errorf("%d items were decoded, want %d", got, len(items))
		}
		return err
	})
	if err != nil {
		return child.Outcome{}, err
	}
	count := float64(len(items))
	return child.Outcome{Metrics: map[string]float64{
		DecodeObject:       one.CPU,
		DecodeObjectAllocs: one.Allocations,
		DecodeList:         all.CPU / count,
		DecodeListAllocs:   all.Allocations / count,
	}}, nil
}
