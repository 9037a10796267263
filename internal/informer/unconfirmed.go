package informer

import (
	"github.com/crdcache/crdcache/internal/informer/delivery"
	"github.com/crdcache/crdcache/internal/store"
)

// unconfirmedRestore describes the restored objects that the server has not confirmed. Handlers lack them.
type unconfirmedRestore struct {
	// namespaces are the namespaces with unconfirmed objects; "" means everything.
	namespaces map[string]bool
	// state is the PersistedState that loaded the objects. It is nil after reportRestoration.
	state PersistedState
	// listed is true if a partition was listed because its restored objects could not be confirmed.
	listed bool
}

func (u *unconfirmedRestore) any() bool { return len(u.namespaces) > 0 }

func (u *unconfirmedRestore) has(item Item) bool {
	return u.any() && (u.namespaces[""] || u.namespaces[store.NamespaceOf(item)])
}

// filterChanges returns the changes of confirmed objects.
func (u *unconfirmedRestore) filterChanges(changes delivery.Changes) delivery.ChangeSlice {
	var confirmed delivery.ChangeSlice
	for n := range changes.Len() {
		c := changes.At(n)
		if c.New != nil && !u.has(c.New) || c.New == nil && !u.has(c.Old) {
			confirmed = append(confirmed, c)
		}
	}
	return confirmed
}

// confirmLocked confirms the partition's objects. It returns false if they were confirmed before.
func (p *partition) confirmLocked() bool {
	u := &p.informer.mu.unconfirmed
	if !u.namespaces[p.Namespace] {
		return false
	}
	delete(u.namespaces, p.Namespace)
	return true
}

// reportRestoration reports the result of the restoration once no objects are unconfirmed.
func (g *incarnation) reportRestoration() {
	i := g.informer
	i.mu.Lock()
	u, unsynced := i.mu.unconfirmed, g.pendingLists > 0
	done := u.state != nil && !u.any()
	if done {
		i.mu.unconfirmed = unconfirmedRestore{}
	}
	i.mu.Unlock()
	if !done {
		return
	}
	if unsynced {
		u.state.OnServingChange(false)
	}
	if !u.listed {
		u.state.OnConfirmed()
	}
}

// dropUnconfirmedLocked removes unconfirmed objects from the store. If it returns a PersistedState, the
// caller must call its OnServingChange(false) with no lock held.
func (i *Informer) dropUnconfirmedLocked() PersistedState {
	u := i.mu.unconfirmed
	i.mu.unconfirmed = unconfirmedRestore{}
	if !u.any() {
		return nil
	}
	for namespace := range u.namespaces {
		i.removeNamespaceLocked(namespace)
	}
	return u.state
}

// removeNamespaceLocked removes all objects of a namespace, or all objects if it is empty.
func (i *Informer) removeNamespaceLocked(namespace string) {
	if namespace == "" {
		i.clearLocked()
		return
	}
	i.removeLocked(prefixOf(namespace), func(string) bool { return true })
}
