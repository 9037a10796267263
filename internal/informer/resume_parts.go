package informer

import (
	"context"
	"strings"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"

	"github.com/crdcache/crdcache/internal/store"
)

// Where namespaces are read one by one, each has a resource version of its own, from which it is gone on by
// itself. What was kept of all of them is shown at once, before the first of them is read; then each is
// confirmed, or listed, when its server says so.

// namespace is that of the part.
func (p *part) namespace() string { return strings.TrimSuffix(p.prefix, "/") }

// beginLocked records that a list has brought all objects of the part.
func (p *part) beginLocked(version string) {
	if !unordered(version) {
		p.at = version
	}
}

// reachLocked records how far the part's stream has come; p may be nil.
func (p *part) reachLocked(version string) {
	if p != nil && p.at != "" && version != "" {
		p.at = version
	}
}

// confirmLocked has handlers be told of the part from now on. It returns false if they are already.
func (p *part) confirmLocked() bool {
	u := &p.informer.mu.unconfirmed
	if !u.namespaces[p.namespace()] {
		return false
	}
	delete(u.namespaces, p.namespace())
	return true
}

// resumedParts is what becomes of what was kept of several parts.
type resumedParts struct {
	past Past
	// listed says that one of them had to be listed. It is guarded by Informer.mu.
	listed bool
}

// recall shows what an earlier process kept of the first parts of a generation, before they are read.
func (g *generation) recall(ctx context.Context, parts []*part) {
	var past Past
	for _, p := range parts {
		if _, asks := p.lw.(VersionAsker); asks && p.past != nil {
			past = p.past
		}
	}
	if past == nil || g.informer.tellsOfObjects() {
		return
	}
	// A panic of an index function has the parts listed.
	defer utilruntime.HandleCrashWithContext(ctx)
	kept := past.Recall(ctx, false)
	if kept == nil { // it may be of the same cluster, at another address
		kept = past.Recall(ctx, true)
	}
	if kept == nil {
		return
	}
	if err := g.showParts(kept, past, parts); err != nil {
		klog.FromContext(ctx).Info("Listing what was kept by an earlier process", "reflector",
			g.informer.reflectorName(), "why", err)
	}
}

// showParts has the store hold what was kept of some parts.
func (g *generation) showParts(kept *Kept, past Past, parts []*part) error {
	i := g.informer
	versions := map[string]string{}
	for _, p := range parts {
		version, found := kept.Namespaces[p.namespace()]
		if kept.Namespaces == nil {
			version, found = kept.ResourceVersion, kept.ResourceVersion != ""
		}
		if _, asks := p.lw.(VersionAsker); found && asks && p.past != nil {
			versions[p.namespace()] = version
		}
	}
	var shown []store.Keyed
	for _, item := range kept.Items {
		if versions[namespaceOf(item)] == "" {
			continue
		}
		key, err := i.keyOf(item)
		if err != nil {
			return err
		}
		shown = append(shown, store.Keyed{Key: key, Item: item})
	}
	if len(versions) == 0 {
		return nil
	}
	for {
		batch := i.store.PrepareAll(shown)
		done, err := g.commitKeptParts(batch, versions, past, parts)
		if err != nil {
			return err
		}
		if done {
			past.Shows(true)
			return nil
		}
	}
}

func (g *generation) commitKeptParts(batch *store.Batch, versions map[string]string, past Past,
	parts []*part) (bool, error) {
	i := g.informer
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.mu.current != g {
		return false, ErrGenerationOver
	}
	if !i.store.Restore(batch, "") {
		return false, nil
	}
	i.mu.unconfirmed = unconfirmed{namespaces: map[string]bool{}, past: past}
	resumes := &resumedParts{past: past}
	for _, p := range parts {
		if version := versions[p.namespace()]; version != "" {
			p.at, p.resumes = version, resumes
			i.mu.unconfirmed.namespaces[p.namespace()] = true
		}
	}
	g.settled = func() { resumes.settled(i) }
	i.mu.log.reset("")
	return true, nil
}

// settled tells what has become of all of them.
func (r *resumedParts) settled(i *Informer) {
	r.past.Shows(false)
	i.mu.Lock()
	listed := r.listed
	i.mu.Unlock()
	if !listed {
		r.past.Confirmed()
	}
}

// settle has that be told, once, when nothing is unconfirmed any more.
func (g *generation) settle() {
	i := g.informer
	i.mu.Lock()
	settled := g.settled
	if i.mu.unconfirmed.any() {
		settled = nil
	} else {
		g.settled = nil
	}
	i.mu.Unlock()
	if settled != nil {
		settled()
	}
}

// resumePart returns the resource version that a part has come to, by what was kept of it. It is empty where
// it is to be listed.
func (i *Informer) resumePart(ctx context.Context, p *part) (version string) {
	if p.resumes == nil {
		return ""
	}
	defer utilruntime.HandleCrashWithContext(ctx)
	i.mu.Lock()
	from := p.at
	i.mu.Unlock()
	if from == "" { // somebody has written to the cache
		return ""
	}
	r := &resumption{generation: p.generation, target: p, part: p, lw: p.lw.(VersionAsker), past: p.past,
		shows: true, version: from}
	return r.resume(ctx)
}

// hidePart removes what was kept of a part, which nobody was told of.
func (p *part) hide() {
	i := p.informer
	i.mu.Lock()
	if i.mu.current == p.generation && p.confirmLocked() {
		p.resumes.listed, p.at = true, ""
		i.removeLocked(p.prefix, func(string) bool { return true })
	}
	i.mu.Unlock()
	p.settle()
}

// confirm records that what is shown of the part is current.
func (p *part) confirm() error {
	if err := p.confirmShown(); err != nil {
		return err
	}
	p.settle()
	p.announce()
	return nil
}

func (p *part) confirmShown() error {
	i := p.informer
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.mu.current != p.generation {
		return ErrGenerationOver
	}
	p.confirmLocked()
	now := i.store.Snapshot()
	var changes []store.Change
	for _, key := range keysOf(now, p.prefix) {
		item, _ := now.Get(key)
		changes = append(changes, store.Change{Key: key, New: item})
	}
	p.relisting = true
	p.recordListLocked(changes, !p.hasListed)
	p.hasListed = true
	return nil
}
