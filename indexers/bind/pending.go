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

// Pending is a change of a resource that waits for the sync of a new informer. The previous target answers
// until then, forever if the server never allows the new one.
type Pending struct {
	// Resource is the new version of the resource.
	Resource *indexers.Resource
	// GVR is the type of the new informer.
	GVR schema.GroupVersionResource
	// Since is the time at which the informer was acquired.
	Since time.Time
	// Status is the status of the informer.
	Status status.Status
}

// String describes the change and its status in one line.
func (p Pending) String() string {
	return fmt.Sprintf("resource %q: the config applied at %s waits for its informer; the previous one answers: %s",
		p.Resource.Name, p.Since.Format(time.RFC3339), p.Status)
}

// Pending returns the waiting changes, ordered by resource and type. It is empty if all targets have the
// current config.
func (b *Binding) Pending() []Pending {
	b.mu.Lock()
	var waiting []*Target
	for _, s := range b.mu.slots {
		if s.replacement != nil {
			waiting = append(waiting, s.replacement)
		}
	}
	b.mu.Unlock()
	out := make([]Pending, len(waiting))
	for i, t := range waiting {
		out[i] = Pending{t.Resource, t.GVR, t.createdAt, t.Informer.Status()}
	}
	slices.SortFunc(out, func(x, y Pending) int {
		return cmp.Or(strings.Compare(x.Resource.Name, y.Resource.Name),
			strings.Compare(x.GVR.Group, y.GVR.Group), strings.Compare(x.GVR.Resource, y.GVR.Resource))
	})
	return out
}
