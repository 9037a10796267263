package informer

import (
	"slices"

	"github.com/crdcache/crdcache/internal/store"
)

// unconfirmed is what is shown of an earlier process: everything, or some namespaces. Its zero value is
// nothing.
type unconfirmed struct {
	all        bool
	namespaces map[string]bool
	past       Past // that shows it
}

func (u *unconfirmed) any() bool { return u.all || len(u.namespaces) > 0 }

// has reports whether an item is unconfirmed.
func (u *unconfirmed) has(item Item) bool {
	return u.all || len(u.namespaces) > 0 && u.namespaces[namespaceOf(item)]
}

// without returns the notifications that tell of nothing unconfirmed.
func (u *unconfirmed) without(notifications []notification) []notification {
	if u.all {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(notifications),
		func(n notification) bool { return u.has(n.item()) })
}

// changesWithout returns the changes of nothing unconfirmed.
func (u *unconfirmed) changesWithout(all changes) changeList {
	if u.all {
		return nil
	}
	var others changeList
	for n := range all.Len() {
		c := all.At(n)
		if item := c.New; item != nil && u.has(item) || item == nil && u.has(c.Old) {
			continue
		}
		others = append(others, c)
	}
	return others
}

// item is one that the notification tells of; nil: it tells of none.
func (n notification) item() Item {
	switch last := n.previous.(type) {
	case nil:
		return n.current
	case *tombstone:
		return last.last
	default:
		return last
	}
}

// dropUnconfirmedLocked empties the store of what was kept and is not confirmed. No handler knows of it. It
// returns who is to be told, with no lock held, that it is not shown any more; nil: nobody is.
func (i *Informer) dropUnconfirmedLocked() Past {
	was := i.mu.unconfirmed
	i.mu.unconfirmed = unconfirmed{}
	if !was.any() {
		return nil
	}
	if was.all {
		i.clearLocked()
	}
	for namespace := range was.namespaces {
		i.removeLocked(namespace+"/", func(string) bool { return true })
	}
	return was.past
}

// newToHandlers turns the changes of a list, where what was there before was never told to anybody.
func newToHandlers(changes []store.Change) []store.Change {
	told := changes[:0]
	for _, c := range changes {
		if c.New != nil {
			c.Old = nil
			told = append(told, c)
		}
	}
	return told
}
