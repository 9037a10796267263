package informer

import (
	"slices"

	"github.com/crdcache/crdcache/internal/naming"
)

// progress describes how far the stream of a partition has been applied. It is guarded by Informer.mu.
type progress struct {
	// version is the resource version up to which one stream has delivered all objects of the partition. It
	// is empty if there is none, for example after a user has written to the cache.
	version string
	// observed is the version that the stream has reached. Unlike version, it is not cleared when a user
	// writes to the cache. It is empty before the first list, and "0" after a list without a version.
	observed string
	// aheadRanges are the objects to which events after version have been applied. A partition that has
	// replaced others has some until its watch has caught up.
	aheadRanges []appliedRange
}

// appliedRange is a selection of objects whose events have been applied up to a resource version.
type appliedRange struct {
	selects func(obj any) bool
	version string
}

// joinProgress returns the progress of a partition that replaces ended ones: their smallest version, and an
// appliedRange for each one that is ahead of it. If their resource versions are not ordered, it returns the
// zero value, which makes the partition list its objects.
func joinProgress(replaced []*partition) progress {
	var p progress
	for _, from := range replaced {
		if !naming.IsVersion(from.version) {
			return progress{}
		}
		if p.version == "" || naming.IsOlder(from.version, p.version) {
			p.version = from.version
		}
		selects := from.Selection.Has
		p.aheadRanges = append(p.aheadRanges, appliedRange{selects, from.version})
		for _, a := range from.aheadRanges {
			p.aheadRanges = append(p.aheadRanges,
				appliedRange{func(obj any) bool { return selects(obj) && a.selects(obj) }, a.version})
		}
	}
	p.prune()
	p.observed = p.version
	return p
}

// hasApplied reports whether an event of an object has been applied already. It takes no lock, and must only
// be called by the partition's reflector.
func (p *progress) hasApplied(obj any) bool {
	if len(p.aheadRanges) == 0 {
		return false
	}
	version := resourceVersion(obj)
	return naming.IsVersion(version) && slices.ContainsFunc(p.aheadRanges, func(a appliedRange) bool {
		return !naming.IsOlder(a.version, version) && a.selects(obj)
	})
}

// advanceLocked records that the stream has been applied up to a resource version.
func (p *partition) advanceLocked(version string) {
	if p.version != "" && version != "" {
		p.version = version
		p.prune()
	}
	p.observed = laterVersion(p.observed, version)
	p.informer.releaseWaitsLocked()
}

// prune removes the ranges that are no longer ahead. A range at the partition's version stays, because
// several events can have the same version.
func (p *progress) prune() {
	p.aheadRanges = slices.DeleteFunc(p.aheadRanges,
		func(a appliedRange) bool { return naming.IsOlder(a.version, p.version) })
}

// latest returns the latest version of any object of the partition; empty if none is known.
func (p *progress) latest() string {
	latest := p.version
	for _, a := range p.aheadRanges {
		latest = laterVersion(latest, a.version)
	}
	return latest
}

// laterVersion returns the later version, or a if they are not ordered.
func laterVersion(a, b string) string {
	if naming.IsOlder(a, b) {
		return b
	}
	return a
}
