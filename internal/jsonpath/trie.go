package jsonpath

// trie selects the parts of a document that a set of paths can read, so that a scan records only these. A
// value is recorded if the trie has a node for it. A nil node selects no values. A trie can select more
// values than the paths read, but never fewer.
type trie struct {
	selectsAll        bool             // selects all descendants
	selectsAllMembers bool             // selects all descendants if the value is an object
	fields            []trieField      // selected members
	byName            map[string]*trie // fields as a map, if there are many
	elements          *trie            // selection within each element, if the value is a list
}

type trieField struct {
	name string
	next *trie
}

var selectAll = &trie{selectsAll: true}

const (
	manyFields = 8    // number of fields from which a map is faster
	trieBudget = 4096 // steps of one path to follow; unions multiply them
)

// forObject returns the node for the members of an object, or nil.
func (t *trie) forObject() *trie {
	switch {
	case t == nil:
		return nil
	case t.selectsAll || t.selectsAllMembers:
		return selectAll
	case t.fields == nil:
		return nil
	}
	return t
}

// forElements returns the node for the elements of a list, or nil.
func (t *trie) forElements() *trie {
	if t == nil || t.selectsAll {
		return t
	}
	return t.elements
}

// member returns the node for a member, or nil. Call it on a result of forObject.
func (t *trie) member(key []byte, encoded bool) *trie {
	if t.selectsAll {
		return selectAll
	}
	if encoded {
		key = unescape(key)
	}
	if t.byName != nil {
		return t.byName[string(key)]
	}
	for i := range t.fields {
		if t.fields[i].name == string(key) {
			return t.fields[i].next
		}
	}
	return nil
}

// add selects the values that a path can read.
func (t *trie) add(steps []Step) {
	budget := trieBudget
	t.addWithBudget(steps, &budget)
}

func (t *trie) addWithBudget(steps []Step, budget *int) {
	for ; len(steps) > 0 && !t.selectsAll; steps = steps[1:] {
		if *budget--; *budget < 0 || steps[0].Recursive {
			t.selectsAll = true
			return
		}
		s := steps[0].singularSelector()
		switch {
		case s == nil:
			for i := range steps[0].Selectors {
				t.addSelector(&steps[0].Selectors[i], steps[1:], budget)
			}
			return
		case s.Kind == SelectName:
			t = t.ensureField(s.Name)
		default:
			t = t.ensureElement()
		}
	}
}

// addSelector adds the fields that a selector, followed by rest, can read.
func (t *trie) addSelector(s *Selector, rest []Step, budget *int) {
	switch s.Kind {
	case SelectName:
		t.ensureField(s.Name).addWithBudget(rest, budget)
		return
	case SelectMembers, SelectFilter:
		t.selectsAllMembers = true
	}
	t.ensureElement().addWithBudget(rest, budget)
	if c := s.condition(); c != nil {
		t.ensureElement().addCondition(c, budget)
	}
}

func (t *trie) addCondition(c *condition, budget *int) {
	for _, o := range c.operands(nil) {
		t.addWithBudget(o.steps, budget)
	}
}

func (t *trie) ensureField(name string) *trie {
	if next := t.member([]byte(name), false); next != nil {
		return next
	}
	next := &trie{}
	t.fields = append(t.fields, trieField{name, next})
	switch {
	case t.byName != nil:
		t.byName[name] = next
	case len(t.fields) > manyFields:
		t.byName = make(map[string]*trie)
		for _, f := range t.fields {
			t.byName[f.name] = f.next
		}
	}
	return next
}

func (t *trie) ensureElement() *trie {
	if t.elements == nil {
		t.elements = &trie{}
	}
	return t.elements
}
