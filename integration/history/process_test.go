package history_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/internal/informer/conformance"
	"github.com/crdcache/crdcache/storage/disk"
)

// saveInterval is how often a process saves: some times in the life of each.
const saveInterval = 200 * time.Millisecond

// process is a factory that keeps what it holds on disk. It ends and begins again on the same folder, with handlers
// that know nothing of those before.
type process struct {
	dir  string
	link *conformance.Faults
	// factory is nil while there is no process.
	factory *dynamicinformer.Factory
	kept    *severable
	// shown is the latest version of each object that the caches have shown.
	shown map[types.UID]uint64
	// begun counts the processes, and resumed the informers that went on from what an earlier one kept.
	begun, resumed int
}

func newProcess(w *world) *process {
	p := &process{dir: w.TempDir(), link: conformance.NewFaults(nil)}
	w.Cleanup(func() { w.end(p, false) })
	return p
}

// begin begins a process, unless there is one.
func (w *world) begin(p *process) {
	w.Helper()
	if p.factory != nil {
		return
	}
	p.begun++
	p.shown = map[types.UID]uint64{}
	p.kept = &severable{Store: disk.New(p.dir, disk.Options{})}
	p.factory = w.follow("process "+strconv.Itoa(p.begun), p.link, dynamicinformer.Options{
		Types: w.types, Resources: w.storages(2), Persistence: p.kept, PersistenceInterval: saveInterval,
	})
}

// end ends a process, if there is one. One that is killed saves nothing more.
func (w *world) end(p *process, killed bool) {
	w.Helper()
	if p.factory == nil {
		return
	}
	p.kept.cut.Store(killed)
	w.look(p)
	of := func(f *follower) bool { return f.link == p.link }
	subscribers := slices.DeleteFunc(slices.Clone(w.subscribers), func(s *subscriber) bool { return !of(s.follower) })
	for _, s := range subscribers {
		s.GoOn()
	}
	if err := p.factory.Shutdown(w.ctx); err != nil {
		w.Error(err)
	}
	if err := p.kept.Close(); err != nil {
		w.Error(err)
	}
	for _, s := range subscribers {
		w.dismiss(s)
	}
	for _, f := range w.followers {
		if !of(f) {
			continue
		}
		if f.Persistence().Resumed {
			p.resumed++
		}
		f.generations.report(w)
	}
	w.generations = slices.DeleteFunc(w.generations, func(g *generations) bool {
		return slices.ContainsFunc(w.followers, func(f *follower) bool { return of(f) && f.generations == g })
	})
	w.followers = slices.DeleteFunc(w.followers, of)
	p.factory = nil
}

// look fails the test where a cache shows an object older than before, also while it is not confirmed yet.
func (w *world) look(p *process) {
	w.Helper()
	for _, f := range w.followers {
		if f.link != p.link {
			continue
		}
		for _, obj := range f.GetStore().List() {
			o := obj.(*unstructured.Unstructured)
			version, err := strconv.ParseUint(o.GetResourceVersion(), 10, 64)
			if before := p.shown[o.GetUID()]; err != nil || version < before {
				w.Errorf("%s shows %s/%s at %q after %d", f.name, o.GetNamespace(), o.GetName(), o.GetResourceVersion(), before)
			}
			p.shown[o.GetUID()] = version
		}
	}
}

// restarts has a process end and begin again a few times in a round, at steps that at picks.
func (w *world) restarts(r *rand.Rand, at func(from, steps int, happen func()) int) {
	w.Helper()
	for range 2 {
		killed := r.IntN(2) == 0
		ended := at(0, stepsPerRound*3/4, func() { w.end(w.process, killed) })
		at(ended, stepsPerRound/4, func() { w.begin(w.process) })
	}
}

var errKilled = errors.New("the process is killed")

// severable is a Store that can be cut off from the process, as when that is killed: what has been saved stays, and what
// is being saved has no effect.
type severable struct {
	*disk.Store
	cut atomic.Bool
}

// View implements dynamicinformer.Persistence.
func (s *severable) View(key string) (dynamicinformer.PersistedView, error) {
	view, err := s.Store.View(key)
	if err != nil {
		return nil, err
	}
	return severableView{view.(dynamicinformer.PersistedBlocks), &s.cut}, nil
}

type severableView struct {
	dynamicinformer.PersistedBlocks
	cut *atomic.Bool
}

// SaveBlocks implements dynamicinformer.PersistedBlocks.
func (v severableView) SaveBlocks(at dynamicinformer.Checkpoint, whole bool, write func(dynamicinformer.BlockWriter) error) error {
	return v.PersistedBlocks.SaveBlocks(at, whole, func(w dynamicinformer.BlockWriter) error {
		if err := write(w); err != nil {
			return err
		}
		if v.cut.Load() {
			return errKilled
		}
		return nil
	})
}
