package web

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/status"
)

type stateUpdate struct {
	Time time.Time
	GVR  schema.GroupVersionResource
	// Options is Status.Options of the informer.
	Options string
	// Op is the new state in lower case, or back, stale, current, terminating or relisted.
	Op              string
	Reason, Message string
}

const opBack = "back"

// changeOp names the difference between two states of a type. It returns "" for the first state, and if only
// a reason was removed.
func changeOp(before, after status.Status) string {
	switch {
	case before.State == "":
		return ""
	case after.State != before.State && after.State == status.Synced && (before.State == status.Degraded ||
		after.Incarnation > 1):
		return opBack
	case after.State != before.State:
		return strings.ToLower(string(after.State))
	case after.Terminating && !before.Terminating:
		return "terminating"
	case after.Stale && !before.Stale:
		return "stale"
	case before.Stale && !after.Stale:
		return "current"
	case after.Reason != before.Reason && after.Reason != status.ReasonNone:
		return strings.ToLower(string(after.State))
	}
	return ""
}

// Listen adds the status changes of a factory's types to the reader.
func (r *feedReader) Listen(factory *dynamicinformer.Factory) error {
	handle, err := factory.AddListener(status.Listener{
		StateChanged: func(before, after status.Status) {
			if op := changeOp(before, after); op != "" {
				r.putState(stateUpdate{Time: time.Now(), GVR: after.GVR, Options: after.Options, Op: op,
					Reason: string(after.Reason), Message: after.Message})
			}
		},
		Relisted: func(g status.Incarnation, reason status.RelistReason) {
			r.putState(stateUpdate{Time: time.Now(), GVR: g.GVR, Options: g.Options, Op: "relisted",
				Reason: string(reason)})
		},
	})
	if err != nil {
		return err
	}
	r.listener = handle
	return nil
}

func (r *feedReader) putState(s stateUpdate) {
	r.states.put(s)
	r.wake()
}
