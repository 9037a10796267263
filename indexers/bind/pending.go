package bind

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/indexers"
)

// Pending is a change of a resource that waits until its informer has synced. The target that there was
// answers until then, as the config before said: for ever, where the server never gives what the new one asks
// for.
type Pending struct {
	// Resource is what the config says now.
	Resource *indexers.Resource
	// GVR is the type that was asked for.
	GVR schema.GroupVersionResource
	// Since is when the informer was asked for.
	Since time.Time
	// Status is how far it is, and why not further.
	Status status.Status
}

// String says what waits, from when, and for what.
func (p Pending) String() string {
	return fmt.Sprintf("resource %q: what was applied at %s waits for its informer, and the one before answers: %s",
		p.Resource.Name, p.Since.Format(time.RFC3339), p.Status)
}

// Pending gives the changes that wait, in the order of the names of resources, and of the types for one of
// them. It is empty when all targets answer as Config says.
func (b *Binding) Pending() []Pending {
	b.mu.Lock()
	var waiting []*Target
	for _, s := range b.mu.slots {
		if s.next != nil {
			waiting = append(waiting, s.next)
		}
	}
	b.mu.Unlock()
	out := make([]Pending, len(waiting))
	for i, t := range waiting {
		out[i] = Pending{t.Resource, t.GVR, t.since, t.Informer.Status()}
	}
	slices.SortFunc(out, func(x, y Pending) int {
		return cmp.Or(strings.Compare(x.Resource.Name, y.Resource.Name),
			strings.Compare(x.GVR.Group, y.GVR.Group), strings.Compare(x.GVR.Resource, y.GVR.Resource))
	})
	return out
}
