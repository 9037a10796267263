package informer

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/internal/store"
)

// errNoParts is for a generation that is to run without any part.
var errNoParts = errors.New("there are no parts to run")

// Part is one of the sources of a generation, with a reflector of its own.
type Part struct {
	// Namespace is where the objects of the part are. A part with an empty one brings everything, and is
	// alone, unless a Selection says which objects of everything it brings.
	Namespace string
	// Selection tells which objects of the namespace are of the part; nil: all.
	Selection Selection
	// Listed is called, with no lock held, whenever the part has listed; nil: nobody is told. ordered says
	// that it may be joined with others from then on: its resource versions have an order.
	Listed func(ordered bool)
	// Joins are the selections of parts of the namespace that run and that this one takes the place of: it
	// selects what they do, and goes on from what they have come to.
	Joins []Selection
	// ListerWatcher lists and watches the part.
	ListerWatcher cache.ListerWatcher
	// Past is what an earlier process kept, of all parts without a Selection, which have the same one; nil:
	// nothing.
	Past Past
}

// Selection tells which objects are of a part, by what never changes of an object. It may come to select
// fewer of them, but only while Informer.Depart says so, and never more. Implementations are pointers: parts
// are told apart by them.
type Selection interface{ Has(object any) bool }

// prefix is what the keys of the part begin with.
func (p Part) prefix() string {
	if p.Namespace == "" {
		return ""
	}
	return p.Namespace + "/"
}

// RunParts runs a reflector for each of the parts until the context ends. They feed one cache, and must be of
// different namespaces. Handlers, indexers and content stay as they are: another generation may follow and
// takes up from there (Forget in between to begin empty). The caller ends the informer with Stop. RunParts
// fails with ErrRunning or ErrStopped.
//
// A relist of one part leaves the objects of the others alone. The informer has synced when each has listed.
// listed (nil: nobody) is called once, with no lock held, when each has listed in this generation, which for
// one that takes over from another is later than that.
//
// Several streams are not merged into one for a single reflector, because that knows only one resource
// version: it would resume each namespace where any of them had come to and miss events, and one namespace
// that expired or was forbidden would end the others.
//
// To readers a relist of one of several parts shows object by object, as the events would that it makes up
// for. Resyncs are of all parts, whichever of them can be listed.
func (i *Informer) RunParts(ctx context.Context, listed func(), parts ...Part) error {
	if len(parts) == 0 {
		return errNoParts
	}
	if slices.ContainsFunc(parts, func(p Part) bool { return p.ListerWatcher == nil }) {
		return errNoListerWatcher
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	g, err := i.begin(ctx, cancel, StateFresh, StateIdle)
	if err != nil {
		return err
	}
	defer i.end(g)
	g.unlisted, g.listed = len(parts), listed
	if len(parts) == 1 && parts[0].Namespace == "" {
		g.past = parts[0].Past
		version := i.resume(ctx, g, parts[0])
		i.reflect(ctx, g, source{target: g, lw: parts[0].ListerWatcher, version: version}, g.check)
		return nil
	}
	i.reflectParts(ctx, g, parts)
	return nil
}

// reflectParts is reflect for each of some parts. It is not a piece of RunParts, whose frame would be larger
// for the many types that have one part: see docs/design/types.md.
func (i *Informer) reflectParts(ctx context.Context, g *generation, parts []Part) {
	var running sync.WaitGroup
	running.Go(func() { g.resyncs(ctx) }) // ended by ctx, as all of these
	all := make([]*part, len(parts))
	for k, p := range parts {
		all[k] = g.part(p)
	}
	i.mu.Lock()
	if i.mu.current == g {
		i.mu.parts = all
	}
	i.mu.Unlock()
	g.recall(ctx, all)
	for _, p := range all {
		running.Go(func() { i.reflectPart(ctx, p) })
	}
	running.Wait()
}

// reflectPart is reflect for one of several parts, which may have come to a version already.
func (i *Informer) reflectPart(ctx context.Context, p *part) {
	from := source{target: p, lw: p.lw, version: p.version, latest: p.latest()}
	if version := i.resumePart(ctx, p); version != "" {
		from.version = version
	}
	i.reflect(ctx, p.generation, from, 0)
}

// part returns the store of one of several parts.
func (g *generation) part(p Part) *part {
	made := &part{generation: g, prefix: p.prefix(), selection: p.Selection, listed: p.Listed,
		lw: p.ListerWatcher}
	if p.Selection == nil && p.Namespace != "" {
		made.past = p.Past
	}
	return made
}

// RunEmpty is RunParts for what is known to have no objects: nothing is listed or watched, and the informer
// has synced at once. What an earlier generation left is removed, and handlers told. It returns when ctx has
// ended.
func (i *Informer) RunEmpty(ctx context.Context, listed func()) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	g, err := i.begin(ctx, cancel, StateFresh, StateIdle)
	if err != nil {
		return err
	}
	defer i.end(g)
	i.reflector.Store(nil)
	g.listed = listed
	if err := g.Replace(nil, ""); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// part is the store that the reflector of one of several parts writes to.
type part struct {
	*generation
	prefix    string     // of its keys
	selection Selection  // of the objects with these keys; nil: all
	listed    func(bool) // called when it has listed; may be nil
	progress
	lw   cache.ListerWatcher
	past Past // nil: it is not kept
	// at is the resource version that one stream has brought all objects of the part up to; empty where they
	// are anything else. It is guarded by Informer.mu.
	at      string
	resumes *resumedParts // nil: nothing is shown of an earlier process
	// hasListed says that the generation does not wait for the part to list, relisting that the next list is
	// not its first. Both are guarded by Informer.mu.
	hasListed, relisting bool
}

// Replace implements cache.ReflectorStore for the objects of the part.
func (p *part) Replace(list []any, resourceVersion string) error {
	keyed, err := p.keyedList(list)
	if err != nil {
		return err
	}
	for _, k := range keyed {
		p.informer.mutations.AddObject(k.Item)
	}
	for {
		done, err := p.replace(keyed, resourceVersion)
		if err != nil {
			return err
		}
		if done {
			p.settle()
			p.announce()
			p.progress = progress{version: resourceVersion}
			if p.listed != nil {
				p.listed(isVersion(resourceVersion))
			}
			return nil
		}
	}
}

// replace stores a list of the part. It returns false when that has to be tried again.
func (p *part) replace(keyed []store.Keyed, resourceVersion string) (bool, error) {
	if p.isWhole() {
		selected := p.selected(keyed)
		return p.commitWhole(selected, p.informer.store.PrepareAll(selected), resourceVersion)
	}
	prepared := make([]store.Prepared, len(keyed))
	for k := range keyed {
		prepared[k] = p.informer.store.Prepare(keyed[k])
	}
	return p.commitPart(prepared, resourceVersion)
}

// commitPart stores a prepared list of the part. It returns false when indexers were added meanwhile and the
// list has to be prepared again; what has been stored by then has been told.
func (p *part) commitPart(prepared []store.Prepared, resourceVersion string) (bool, error) {
	i := p.informer
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.mu.current != p.generation {
		return false, ErrGenerationOver
	}
	i.mu.wholeOf, p.at = nil, ""
	changes := p.removeMissingLocked(prepared)
	done := true
	for _, next := range prepared {
		if !p.admitsLocked(next) {
			continue
		}
		old, ok := i.store.Put(next)
		if !ok {
			done = false
			break
		}
		changes = append(changes, store.Change{Key: next.Key, Old: old, New: next.Item})
	}
	i.mu.log.reset(resourceVersion)
	if done {
		i.store.SetResourceVersion(resourceVersion)
		p.beginLocked(resourceVersion)
	}
	if done && p.confirmLocked() {
		p.resumes.listed = true
		changes = newToHandlers(changes)
	}
	p.recordPartLocked(changes, done)
	return done, nil
}

// recordPartLocked records the changes that a list of the part has made, whether or not it is done.
func (p *part) recordPartLocked(changes []store.Change, done bool) {
	if done && p.relisting {
		p.informer.events.relists.Add(1)
	}
	p.relisting = p.relisting || done
	p.recordListLocked(changes, done && !p.hasListed)
	p.hasListed = p.hasListed || done
}

// removeMissingLocked removes the objects of the part that are not in the list.
func (p *part) removeMissingLocked(list []store.Prepared) []store.Change {
	present := make(map[string]bool, len(list))
	for _, next := range list {
		present[next.Key] = true
	}
	return p.informer.removeLocked(p.prefix, func(key string) bool {
		return !present[key] &&
			p.ownsLocked(key)
	})
}

// removeLocked removes the objects with keys of a prefix, a namespace and a slash, that are to go.
func (i *Informer) removeLocked(prefix string, goes func(key string) bool) []store.Change {
	var changes []store.Change
	for _, key := range keysOf(i.store.Snapshot(), prefix) {
		if goes(key) {
			changes = append(changes, store.Change{Key: key, Old: i.store.Remove(key, "")})
		}
	}
	i.mu.log.reset(i.store.Snapshot().ResourceVersion())
	return changes
}

// content tells which keys there are. A *store.Snapshot is one.
type content interface {
	Keys() []string
	KeysByIndex(name, value string) ([]string, error)
}

// keysOf returns the keys of a prefix, a namespace and a slash. With an index by namespace, which client-go's
// informers and ours have unless they are told otherwise, it does not look at what is in other namespaces:
// those may be many, and each lists on its own.
func keysOf(now content, prefix string) []string {
	if prefix == "" {
		return now.Keys()
	}
	keys, err := now.KeysByIndex(cache.NamespaceIndex, strings.TrimSuffix(prefix, "/"))
	if err != nil {
		keys = now.Keys()
	}
	return slices.DeleteFunc(keys, func(key string) bool { return !strings.HasPrefix(key, prefix) })
}
