package live

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/indexers"
)

// KeeperOptions say what a Keeper keeps. Server, Tracker and Selection are required. The functions are called
// by Run, one at a time, and with no lock held.
type KeeperOptions struct {
	// Server serves the types, whose informers are those of its factory.
	Server *Server
	// Tracker tells which types there are. It has to run.
	Tracker *discovery.Tracker
	// Selection says which of them are kept.
	Selection *discovery.Selection
	// View says which objects of a type are kept, and how, and with which indexes; those of the options count
	// for nothing. Default: all objects, with no indexes.
	View func(discovery.Resource) (dynamicinformer.ResourceOptions, []*indexers.Index)
	// Exclude returns why a type is not kept that is selected; nil where it is kept. Of what a pattern or a
	// category stands for nobody is told. Default: nothing is excluded.
	Exclude func(discovery.Resource) error
	// Kept and Dropped are told of each type that begins to be kept, and that is kept no longer. Default:
	// nobody is.
	Kept, Dropped func(discovery.Resource)
	// Refused is told of a name that stands for nothing which can be kept, when that or its reason is new.
	// Default: nobody is.
	Refused func(name string, why error)
}

// Keeper keeps the types of a selection in a Server: those that come later as well, and those that go no
// longer. It is made by NewKeeper, works in Run, and is safe for concurrent use.
type Keeper struct {
	options KeeperOptions
	changed chan struct{}

	mu struct {
		sync.Mutex
		types    map[schema.GroupResource]*KeptType
		problems map[string]error
		// reconciled is set once it was known which types there are.
		reconciled bool
	}
}

// KeptType is a type that is kept.
type KeptType struct {
	discovery.Resource
	Informer *dynamicinformer.Informer
	// Indexes are those that queries may name.
	Indexes []*indexers.Index

	handle *dynamicinformer.Handle
}

// NewKeeper returns a keeper that keeps nothing before Run. The error says what the options lack.
func NewKeeper(options KeeperOptions) (*Keeper, error) {
	if options.Server == nil || options.Tracker == nil || options.Selection == nil {
		return nil, errors.New("live: Server, Tracker and Selection are required")
	}
	if options.View == nil {
		options.View = func(discovery.Resource) (o dynamicinformer.ResourceOptions,
			_ []*indexers.Index) {
			return o, nil
		}
	}
	if options.Exclude == nil {
		options.Exclude = func(discovery.Resource) error { return nil }
	}
	if options.Kept == nil {
		options.Kept = func(discovery.Resource) {}
	}
	if options.Dropped == nil {
		options.Dropped = func(discovery.Resource) {}
	}
	if options.Refused == nil {
		options.Refused = func(string, error) {}
	}
	k := &Keeper{options: options, changed: make(chan struct{}, 1)}
	k.mu.types = map[schema.GroupResource]*KeptType{}
	return k, nil
}

// Run keeps what is selected among the types that there are, until ctx ends. What is kept then stays so: it
// ends with the factory. It is called once.
func (k *Keeper) Run(ctx context.Context) {
	subscription := k.options.Tracker.Subscribe(func(discovery.Event) { k.wake() })
	defer subscription.Stop()
	if k.options.Tracker.WaitForSync(ctx) != nil {
		return // the end came first
	}
	for {
		var again <-chan time.Time
		if k.reconcile() {
			again = time.After(doubtPause)
		}
		select {
		case <-k.changed:
		case <-again:
		case <-ctx.Done():
			return
		}
	}
}

// wake asks for another look at the types.
func (k *Keeper) wake() {
	select {
	case k.changed <- struct{}{}:
	default:
	}
}

// Types returns what is kept, by group and resource.
func (k *Keeper) Types() []KeptType {
	k.mu.Lock()
	defer k.mu.Unlock()
	all := make([]KeptType, 0, len(k.mu.types))
	for _, one := range k.mu.types {
		all = append(all, *one)
	}
	slices.SortFunc(all, func(a, b KeptType) int {
		return cmp.Or(cmp.Compare(a.GVR.Group, b.GVR.Group), cmp.Compare(a.GVR.Resource, b.GVR.Resource))
	})
	return all
}

// Type returns a type that is kept, in whatever version; false where it is not.
func (k *Keeper) Type(gr schema.GroupResource) (KeptType, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if one := k.mu.types[gr]; one != nil {
		return *one, true
	}
	return KeptType{}, false
}

// Problems returns the names of the selection that stand for nothing which can be kept, and names of types
// that could not be kept, with the reasons.
func (k *Keeper) Problems() map[string]error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return maps.Clone(k.mu.problems)
}

// Reconciled reports whether it is known which types there are, so that Types are those that are selected.
func (k *Keeper) Reconciled() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.mu.reconciled
}

// doubtPause is between looks at types of which discovery could not say whether they are there: that it can
// again is no change of a type, so that nobody tells of it. It is a variable for the sake of tests.
var doubtPause = 30 * time.Second

// reconcile keeps what is selected among the types that there are now, and nothing else. It reports whether
// it is not known of some whether they are there.
func (k *Keeper) reconcile() (doubtful bool) {
	wanted, problems, doubtful := k.wanted(k.options.Tracker.Snapshot().Catalog())
	for _, kept := range k.Types() {
		gr := kept.GVR.GroupResource()
		r, ok := wanted[gr]
		if ok && r.GVR == kept.GVR && r.Scope == kept.Scope {
			delete(wanted, gr)
			continue
		}
		if !ok {
			k.options.Server.Drop(gr)
		}
		kept.handle.Release()
		k.set(gr, nil)
		k.options.Dropped(kept.Resource)
	}
	for _, gr := range slices.SortedFunc(maps.Keys(wanted),
		func(a, b schema.GroupResource) int { return cmp.Compare(a.String(), b.String()) }) {
		r := wanted[gr]
		kept, err := k.acquire(r)
		if err != nil {
			k.options.Server.Drop(gr)
			problems[r.String()] = err
			continue
		}
		k.set(gr, kept)
		k.options.Kept(r)
	}
	k.mu.Lock()
	before := k.mu.problems
	k.mu.problems, k.mu.reconciled = problems, true
	k.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(problems)) {
		if known := before[name]; known == nil || known.Error() != problems[name].Error() {
			k.options.Refused(name, problems[name])
		}
	}
	return doubtful
}

// wanted are the types that are selected and can be kept, and what is selected and cannot be, by name.
// doubtful says that there are others of which discovery does not know whether they are there. That there is
// a definition is said by itself.
func (k *Keeper) wanted(catalog *discovery.Catalog) (types map[schema.GroupResource]discovery.Resource,
	problems map[string]error, doubtful bool) {
	types = map[schema.GroupResource]discovery.Resource{}
	selected, problems := k.options.Selection.Types(catalog)
	for _, s := range selected {
		gr := s.GVR.GroupResource()
		err := k.options.Exclude(s.Resource)
		if err == nil && !s.Watchable() {
			err = fmt.Errorf("%s cannot be listed and watched", s.Resource)
		}
		_, kept := k.Type(gr)
		switch {
		case err != nil && !s.Many:
			problems[s.Name] = err
		case err != nil:
		case s.Many && s.Stale && s.CRDUID == "" && !kept:
			doubtful = true
		default:
			types[gr] = s.Resource
		}
	}
	return types, problems, doubtful
}

// acquire begins to keep a type.
func (k *Keeper) acquire(r discovery.Resource) (*KeptType, error) {
	options, indexes := k.options.View(r)
	options.Indexes = indexers.CompileIndexes(indexes...)
	handle, err := k.options.Server.options.Factory.Acquire(r.GVR, options)
	if err != nil {
		return nil, err
	}
	if err := k.options.Server.Keep(handle.Informer(), indexes...); err != nil {
		handle.Release()
		return nil, err
	}
	return &KeptType{r, handle.Informer(), indexes, handle}, nil
}

func (k *Keeper) set(gr schema.GroupResource, kept *KeptType) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if kept == nil {
		delete(k.mu.types, gr)
		return
	}
	k.mu.types[gr] = kept
}
