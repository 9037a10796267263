package experiment

import (
	"context"
	"fmt"
)

// decodeObjects measures the decoding of single objects and of a list.
func decodeObjects(ctx context.Context, task Task, _ func() error) (Outcome, error) {
	list, items, err := samples(ctx, task)
	if err != nil {
		return Outcome{}, err
	}
	d, err := newDecoder(task.Subject)
	if err != nil {
		return Outcome{}, err
	}
	one, err := costOfOperation(task.Budget, func(n int) error { return d.object(items[n%len(items)]) })
	if err != nil {
		return Outcome{}, err
	}
	all, err := costOfOperation(2*task.Budget, func(int) error {
		got, err := d.list(list)
		if err == nil && got != len(items) {
			err = fmt.Errorf("%d items were decoded, want %d", got, len(items))
		}
		return err
	})
	if err != nil {
		return Outcome{}, err
	}
	count := float64(len(items))
	return Outcome{Metrics: map[string]float64{
		DecodeObject:       one.CPU,
		DecodeObjectAllocs: one.Allocations,
		DecodeList:         all.CPU / count,
		DecodeListAllocs:   all.Allocations / count,
	}}, nil
}
