package informer

import "slices"

// progress is what a part has come to.
type progress struct {
	// version is the resource version that all of the part has come to; empty: none that is known.
	version string
	// ahead is what of it has come further. That is so for a while in a part that has taken the place of
	// others.
	ahead []known
}

// known are objects that are known up to a resource version: those that each of some selections has.
type known struct {
	selections []Selection
	version    string
}

// joined returns what a part has come to that takes the place of others, which have ended: the least that one
// of them has come to, and of each what itself has come to. Where their resource versions have no order,
// everything is to be listed.
func joined(parts []*runningPart) progress {
	var p progress
	for _, from := range parts {
		if !isVersion(from.version) {
			return progress{}
		}
		if p.version == "" || older(from.version, p.version) {
			p.version = from.version
		}
		for _, k := range append(slices.Clip(from.ahead), known{version: from.version}) {
			p.ahead = append(p.ahead, known{append(slices.Clip(k.selections), from.selection), k.version})
		}
	}
	p.leaveBehind()
	return p
}

// knows reports whether an event of an object has been applied already.
func (p *progress) knows(obj any) bool {
	if len(p.ahead) == 0 {
		return false
	}
	version := resourceVersion(obj)
	return isVersion(version) && slices.ContainsFunc(p.ahead, func(k known) bool {
		return !older(k.version, version) &&
			!slices.ContainsFunc(k.selections, func(s Selection) bool { return !s.Has(obj) })
	})
}

// reach records that everything up to a resource version has been applied.
func (p *progress) reach(version string) {
	if older(p.version, version) {
		p.version = version
		p.leaveBehind()
	}
}

// leaveBehind forgets what is no more ahead. What is as far as the rest still is: several events may be of
// one version.
func (p *progress) leaveBehind() {
	p.ahead = slices.DeleteFunc(p.ahead, func(k known) bool { return older(k.version, p.version) })
}

// latest is the version that something of the part has come to; empty: none that is known.
func (p *progress) latest() string {
	latest := p.version
	for _, k := range p.ahead {
		latest = later(latest, k.version)
	}
	return latest
}

// older reports whether a resource version comes before another; where they have no order, it does not.
func older(a, b string) bool {
	order, err := compareVersions(a, b)
	return err == nil && order < 0
}

// later returns b if it comes after a, and a where it does not, or there is no order.
func later(a, b string) string {
	if older(a, b) {
		return b
	}
	return a
}
