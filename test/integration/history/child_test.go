package history_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/rpc"
	"os"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/adapters/storage/disk"
	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/persistence"
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/test/integration/harness"
)

// childEnv has the childOptions of a process as JSON.
const childEnv = "CRDCACHE_TEST_HISTORY_PROCESS"

// saveInterval makes a process save several times in its life.
const saveInterval = 200 * time.Millisecond

type childOptions struct {
	Name, Host string
	Authority  []byte
	// Folder is the folder of its persisted caches.
	Folder     string
	Types      []schema.GroupVersionResource
	Namespaces []string
}

// Child is a process that follows all types twice and persists its caches: once for all namespaces with a
// tracker of types, and once for each namespace without a tracker. net/rpc requires exported types.
type Child struct {
	childOptions
	store     *disk.Store
	factories []*dynamicinformer.Factory
	informers []*childInformer
	checkers  []*incarnationChecker
	stop      func() error
	ended     bool
}

// childInformer is an informer of a process. One of its witnesses can be slow.
type childInformer struct {
	*dynamicinformer.Informer
	name         string
	typeNumber   int // index in childOptions.Types
	tracked      bool
	incarnations *incarnationChecker
	witnesses    []*harness.Witness
}

// Report has the state of a process's informers.
type Report struct {
	Informers []InformerReport
	// Violations has the inconsistent events since the last report.
	Violations []string
}

// InformerReport has the state of an informer.
type InformerReport struct {
	Name string
	Type int
	// Problem is the reason why the informer cannot be compared with the server yet. It is empty if the
	// informer is synced and saved.
	Problem string
	Resumed bool
	// UID is the UID of the definition if Tracked is set.
	Tracked   bool
	UID       types.UID
	Objects   map[string]CachedObject
	Delivered []map[string]harness.WitnessedObject
	Last      []map[types.UID]int64
	Events    int
}

// CachedObject is an object that a cache returns.
type CachedObject struct {
	UID     types.UID
	Version string
	JSON    string
}

// runChild runs a process and returns its exit code.
func runChild(text string) int {
	c := &Child{}
	if err := errors.Join(json.Unmarshal([]byte(text), &c.childOptions), c.run()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// run serves the test until standard input ends.
func (c *Child) run() error {
	if err := c.start(); err != nil {
		return err
	}
	server := rpc.NewServer()
	if err := server.Register(c); err != nil {
		return err
	}
	server.ServeConn(struct {
		io.Reader
		io.WriteCloser
	}{os.Stdin, os.Stdout})
	if !c.ended {
		return errors.New("the test has ended")
	}
	return nil
}

func (c *Child) start() error {
	config := &rest.Config{Host: c.Host, QPS: -1, TLSClientConfig: rest.TLSClientConfig{CAData: c.Authority}}
	tracker, err := discovery.NewTracker(config, discovery.TrackerOptions{})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	tracked := make(chan error, 1)
	go func() { tracked <- tracker.Run(ctx) }() // ended by cancel
	c.stop = func() error {
		cancel()
		return <-tracked
	}
	c.store = disk.New(c.Folder, disk.Options{})
	err = c.follow(c.Name, dynamicinformer.Options{Config: config, Types: tracker.Types(),
		Resources: storagesByType(c.Types, 2)})
	return errors.Join(err, c.follow(c.Name+", by namespaces", dynamicinformer.Options{
		Config: config, Resources: storagesByType(c.Types, 3),
		Defaults: dynamicinformer.ResourceOptions{Namespaces: dynamicinformer.InNamespaces(c.Namespaces...)},
	}))
}

// follow starts a factory for all types.
func (c *Child) follow(name string, options dynamicinformer.Options) error {
	g := newIncarnationChecker(name)
	c.checkers = append(c.checkers, g)
	options.Listener, options.Persistence, options.PersistenceInterval = g.listener(), c.store, saveInterval
	factory, err := dynamicinformer.New(options)
	if err != nil {
		return err
	}
	c.factories = append(c.factories, factory)
	for number, gvr := range c.Types {
		informer, err := factory.ForResource(gvr)
		if err != nil {
			return err
		}
		i := &childInformer{Informer: informer, name: gvr.Resource + " over " + name, typeNumber: number,
			tracked: options.Types != nil, incarnations: g}
		for n := range 2 {
			i.witnesses = append(i.witnesses, harness.NewWitness(fmt.Sprintf("handler %d of %s", n, i.name),
				func() int { return informer.Status().Incarnation }))
			if _, err := informer.AddEventHandler(i.witnesses[n]); err != nil {
				return err
			}
		}
		c.informers = append(c.informers, i)
	}
	return factory.Start(context.Background())
}

// Inspect returns a report, with complete objects if whole is set.
func (c *Child) Inspect(whole bool, report *Report) error {
	for _, i := range c.informers {
		report.Informers = append(report.Informers, i.report(whole))
		for _, w := range i.witnesses {
			report.Violations = append(report.Violations, w.Violations()...)
		}
	}
	for _, g := range c.checkers {
		report.Violations = append(report.Violations, g.takeViolations()...)
	}
	return nil
}

func (i *childInformer) report(whole bool) InformerReport {
	current, saved := i.Status(), i.Persistence()
	r := InformerReport{Name: i.name, Type: i.typeNumber, Resumed: saved.Resumed, Tracked: i.tracked,
		UID: current.UID, Objects: map[string]CachedObject{}}
	switch {
	case current.State != status.Synced || !i.HasSynced():
		r.Problem = fmt.Sprintf("it is synced: %v, with the status %+v", i.HasSynced(), current)
		i.Retry() // skips the pause before the next attempt
	case saved.Err != nil || saved.Checkpoint == persistence.Checkpoint{}:
		// This is temporary: the informer saves again later.
		r.Problem = fmt.Sprintf("it is not saved: %+v", saved)
	default:
		if err := i.incarnations.checkStatus(current); err != nil {
			r.Problem = err.Error()
		}
	}
	for _, obj := range i.GetStore().List() {
		o := obj.(*unstructured.Unstructured)
		shown := CachedObject{UID: o.GetUID(), Version: o.GetResourceVersion()}
		if whole {
			shown.JSON = jsonOf(o)
		}
		r.Objects[o.GetNamespace()+"/"+o.GetName()] = shown
	}
	for _, w := range i.witnesses {
		r.Delivered, r.Last = append(r.Delivered, w.LiveObjects()), append(r.Last, w.LastStates())
		r.Events += w.Counts().Events
	}
	return r
}

// jsonOf returns an object as text for comparisons.
func jsonOf(o *unstructured.Unstructured) string {
	text, err := json.Marshal(o.Object)
	if err != nil {
		panic(err) // cannot fail, because the object was decoded from JSON
	}
	return string(text)
}

// Toggle makes a handler block at its next event, or unblocks it.
func (c *Child) Toggle(n int, _ *struct{}) error {
	c.informers[n%len(c.informers)].witnesses[1].ToggleBlocking()
	return nil
}

// UnblockAll unblocks all handlers.
func (c *Child) UnblockAll(struct{}, *struct{}) error {
	for _, i := range c.informers {
		for _, w := range i.witnesses {
			w.Unblock()
		}
	}
	return nil
}

// End shuts everything down, which saves the caches.
func (c *Child) End(struct{}, *struct{}) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	errs := []error{}
	for _, f := range slices.Backward(c.factories) {
		errs = append(errs, f.Shutdown(ctx))
	}
	c.ended = true
	return errors.Join(append(errs, c.stop(), c.store.Close(context.Background()))...)
}
