package filler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// ChurnOptions say how to change objects of a type. All but Seed are required.
type ChurnOptions struct {
	// Type is the name of a CRD, "plural.group".
	Type string
	// Rate is the number of operations per second: nine in ten update an
	// object, the rest are creates and deletes in equal parts.
	Rate     float64
	Duration time.Duration
	Size     Size // of created objects
	Seed     uint64
}

const (
	updateShare = 0.9
	createShare = 0.05
	// churnAnnotation is what an update of metadata changes.
	churnAnnotation = "platform.example.com/touched"
)

// churner is one run of Churn.
type churner struct {
	options   ChurnOptions
	dynamic   dynamic.Interface
	target    target
	generator generator
	live      *population
	stats     *churnStats
}

// Churn changes objects until Duration has passed or ctx ends, and then waits
// for the operations under way. Failed operations are counted, and do not end it.
func Churn(ctx context.Context, config *rest.Config, o ChurnOptions) (ChurnResult, error) {
	if o.Rate <= 0 || o.Duration <= 0 {
		return ChurnResult{}, errors.New("rate and duration must be positive")
	}
	dyn, err := unlimitedClient(config)
	if err != nil {
		return ChurnResult{}, err
	}
	t, err := findTarget(ctx, dyn, o.Type)
	if err != nil {
		return ChurnResult{}, err
	}
	live, err := listPopulation(ctx, config, t)
	if err != nil {
		return ChurnResult{}, err
	}
	someone, ok := live.random(rand.New(rand.NewPCG(o.Seed, 0)))
	if !ok {
		return ChurnResult{}, fmt.Errorf("there are no %s to change: fill some in first", o.Type)
	}
	gen, err := newGenerator(ctx, dyn, t, o.Size, someone.Namespace)
	if err != nil {
		return ChurnResult{}, err
	}
	c := &churner{options: o, dynamic: dyn, target: t, generator: gen, live: live, stats: newChurnStats()}
	start := time.Now()
	c.run(ctx)
	return c.stats.result(time.Since(start)), nil
}

func listPopulation(ctx context.Context, config *rest.Config, t target) (*population, error) {
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	live := &population{}
	options := metav1.ListOptions{Limit: 5000}
	for {
		list, err := client.Resource(t.gvr).List(ctx, options)
		if err != nil {
			return nil, err
		}
		for _, item := range list.Items {
			live.add(types.NamespacedName{Namespace: item.Namespace, Name: item.Name})
		}
		if list.Continue == "" {
			return live, nil
		}
		options.Continue = list.Continue
	}
}

// operation is one change, decided before it is handed to a worker.
type operation struct {
	number int
	kind   string
	object types.NamespacedName
}

// run hands out operations on schedule: operation n is due at n/Rate, so that a
// slow moment is caught up with instead of lowering the rate.
func (c *churner) run(ctx context.Context) {
	operations := make(chan operation)
	var running sync.WaitGroup
	for range writers {
		running.Go(func() { // ends when operations is closed
			for op := range operations {
				c.perform(context.WithoutCancel(ctx), op)
			}
		})
	}
	defer running.Wait()
	defer close(operations)
	rng := rand.New(rand.NewPCG(c.options.Seed, 0))
	end := time.NewTimer(c.options.Duration)
	defer end.Stop()
	start := time.Now()
	for n := 0; ; n++ {
		due := time.NewTimer(time.Until(start.Add(time.Duration(float64(n) / c.options.Rate * float64(time.Second)))))
		select {
		case <-due.C:
		case <-end.C:
			return
		case <-ctx.Done():
			return
		}
		select {
		case operations <- c.decide(rng, n):
		case <-end.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

func (c *churner) decide(rng *rand.Rand, n int) operation {
	op := operation{number: n, kind: opUpdate}
	object, ok := c.live.random(rng)
	if !ok {
		op.kind = opCreate
		op.object.Namespace = namespaceName(0)
		return op
	}
	op.object = object
	switch x := rng.Float64(); {
	case x < updateShare:
	case x < updateShare+createShare:
		op.kind = opCreate // in the namespace of the chosen object
	default:
		op.kind = opDelete
		c.live.remove(object)
	}
	return op
}

func (c *churner) perform(ctx context.Context, op operation) {
	start := time.Now()
	var err error
	switch op.kind {
	case opCreate:
		err = c.create(ctx, op)
	case opDelete:
		err = c.client(op).Delete(ctx, op.object.Name, metav1.DeleteOptions{})
	default:
		err = c.update(ctx, op)
	}
	if apierrors.IsNotFound(err) {
		// Somebody, maybe we, deleted it in the meantime.
		c.live.remove(op.object)
		op.kind, err = opMissed, nil
	}
	c.stats.count(op.kind, time.Since(start), err)
}

func (c *churner) client(op operation) dynamic.ResourceInterface {
	return c.target.client(c.dynamic, op.object.Namespace)
}

func (c *churner) create(ctx context.Context, op operation) error {
	id := c.identity(op)
	id.namespace = op.object.Namespace
	// A second run with the same seed must not run into the first one's names.
	id.name = fmt.Sprintf("churn-%d-%08x", op.number, rand.Uint32())
	if err := createThroughAPI(ctx, c.dynamic, c.target, buildObject(c.target, id, c.generator.content(id))); err != nil {
		return err
	}
	c.live.add(types.NamespacedName{Namespace: id.namespace, Name: id.name})
	return nil
}

// update changes the status on every other operation, as controllers do, and
// an annotation otherwise.
func (c *churner) update(ctx context.Context, op operation) error {
	var patch map[string]any
	var subresources []string
	if c.target.hasStatus && op.number%2 == 0 {
		patch = c.generator.statusPatch(c.identity(op))
		subresources = []string{"status"}
	}
	if patch == nil {
		subresources = nil
		patch = map[string]any{"metadata": map[string]any{
			"annotations": map[string]any{churnAnnotation: fmt.Sprintf("%d-%08x", op.number, rand.Uint32())},
		}}
	}
	data, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	_, err = c.client(op).Patch(ctx, op.object.Name, types.MergePatchType, data,
		metav1.PatchOptions{FieldManager: statusManager}, subresources...)
	return err
}

func (c *churner) identity(op operation) identity {
	id := newIdentity(c.options.Seed, op.number, 1)
	id.created = time.Now()
	return id
}
