package query

// candidateSource is a condition that can list its objects.
type candidateSource interface {
	compiledCondition
	// size is an upper bound or an estimate of the number of objects.
	size() int
	// objects calls yield for each object until it returns false. repeats reports whether it can yield an
	// object twice.
	objects(yield func(object string, item any) bool)
	repeats() bool
}

// driver lists the candidates of a query without a full scan.
type driver struct {
	parts []candidateSource
	// exact means that every candidate matches the whole query.
	exact bool
}

// count is the maximum number of candidates.
func (d driver) count() int {
	n := 0
	for _, k := range d.parts {
		n += k.size()
	}
	return n
}

// chooseDriver finds the smallest driver of a condition. It returns false if there is none.
func chooseDriver(c compiledCondition) (best driver, found bool) {
	switch c := c.(type) {
	case candidateSource:
		return driver{[]candidateSource{c}, true}, true
	case labelCondition:
		for _, k := range c.indexed() {
			if !found || k.count < best.count() {
				best, found = driver{parts: []candidateSource{k}}, true
			}
		}
	case constant:
		return driver{exact: true}, !bool(c)
	case groupCondition:
		if c.or {
			return unionDriver(c.subs)
		}
		for _, sub := range c.subs {
			d, ok := chooseDriver(sub)
			if ok && (!found || d.count() < best.count()) {
				best, found = driver{parts: d.parts}, true
			}
		}
	}
	return best, found
}

// unionDriver combines the drivers of several conditions.
func unionDriver(subs []compiledCondition) (driver, bool) {
	combined := driver{exact: true}
	for _, sub := range subs {
		d, ok := chooseDriver(sub)
		if !ok {
			return driver{}, false
		}
		combined.parts = append(combined.parts, d.parts...)
		combined.exact = combined.exact && d.exact
	}
	return combined, true
}

// objects calls yield once for each candidate, until it returns false.
func (d driver) objects(yield func(object string, item any) bool) {
	if len(d.parts) == 1 && !d.parts[0].repeats() {
		d.parts[0].objects(yield)
		return
	}
	visited := make(map[string]struct{}, d.count())
	more := true
	for _, k := range d.parts {
		k.objects(func(object string, item any) bool {
			if _, duplicate := visited[object]; duplicate {
				return true
			}
			visited[object] = struct{}{}
			more = yield(object, item)
			return more
		})
		if !more {
			return
		}
	}
}

// covers reports whether the driver lists exactly the objects of c.
func (d driver) covers(c compiledCondition) bool {
	k, ok := c.(candidateSource)
	return ok && len(d.parts) == 1 && d.parts[0] == k
}

// remaining returns the conditions that the candidates have to be tested by: cheap ones, and expensive ones
// that read bodies.
func (d driver) remaining(c compiledCondition) (cheap, expensive []compiledCondition) {
	if d.exact {
		return nil, nil
	}
	subs := []compiledCondition{c}
	if s, ok := c.(groupCondition); ok && !s.or {
		subs = s.subs
	}
	for _, sub := range subs {
		switch {
		case d.covers(sub):
		case sub.cost() == costBody:
			expensive = append(expensive, sub)
		default:
			cheap = append(cheap, sub)
		}
	}
	return cheap, expensive
}

func allHold(conds []compiledCondition, key string, item any) bool {
	for _, c := range conds {
		if !c.holds(key, item) {
			return false
		}
	}
	return true
}
