package query

// starter is a condition that knows its objects.
type starter interface {
	cond
	// size is how many objects there are, at most, or about.
	size() int
	// objects calls yield for each object until it returns false; repeats reports whether one may come twice.
	objects(yield func(object string, item any) bool)
	repeats() bool
}

// driver gives the objects that a query may hold for, without looking at all of them.
type driver struct {
	parts []starter
	// sure is set when every object that the driver gives fulfils the condition that it was made for.
	sure bool
}

// count is how many objects the driver gives, at most.
func (d driver) count() int {
	n := 0
	for _, k := range d.parts {
		n += k.size()
	}
	return n
}

// drivers finds the smallest driver of a condition. It is false when there is none.
func drivers(c cond) (best driver, found bool) {
	switch c := c.(type) {
	case starter:
		return driver{[]starter{c}, true}, true
	case labelled:
		for _, k := range c.starts() {
			if !found || k.count < best.count() {
				best, found = driver{parts: []starter{k}}, true
			}
		}
	case constant:
		return driver{sure: true}, !bool(c)
	case several:
		if c.any {
			return union(c.subs)
		}
		for _, sub := range c.subs {
			d, ok := drivers(sub)
			if ok && (!found || d.count() < best.count()) {
				best, found = driver{parts: d.parts}, true
			}
		}
	}
	return best, found
}

// union drives all of several conditions.
func union(subs []cond) (driver, bool) {
	all := driver{sure: true}
	for _, sub := range subs {
		d, ok := drivers(sub)
		if !ok {
			return driver{}, false
		}
		all.parts = append(all.parts, d.parts...)
		all.sure = all.sure && d.sure
	}
	return all, true
}

// objects calls yield for each object once, until it returns false.
func (d driver) objects(yield func(object string, item any) bool) {
	if len(d.parts) == 1 && !d.parts[0].repeats() {
		d.parts[0].objects(yield)
		return
	}
	seen := make(map[string]struct{}, d.count())
	more := true
	for _, k := range d.parts {
		k.objects(func(object string, item any) bool {
			if _, again := seen[object]; again {
				return true
			}
			seen[object] = struct{}{}
			more = yield(object, item)
			return more
		})
		if !more {
			return
		}
	}
}

// drives reports whether k is what the driver is made of, so that it need not be tested again.
func (d driver) drives(c cond) bool {
	k, ok := c.(starter)
	return ok && len(d.parts) == 1 && d.parts[0] == k
}

// rest is what is left to test of objects that the driver gives: first what is cheap, then what looks into
// bodies.
func (d driver) rest(c cond) (cheap, dear []cond) {
	if d.sure {
		return nil, nil
	}
	subs := []cond{c}
	if s, ok := c.(several); ok && !s.any {
		subs = s.subs
	}
	for _, sub := range subs {
		switch {
		case d.drives(sub):
		case sub.cost() == costBody:
			dear = append(dear, sub)
		default:
			cheap = append(cheap, sub)
		}
	}
	return cheap, dear
}

func holdAll(conds []cond, key string, item any) bool {
	for _, c := range conds {
		if !c.holds(key, item) {
			return false
		}
	}
	return true
}
