package dynamicinformer

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/health"
	"github.com/crdcache/crdcache/internal/requests"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
	"github.com/crdcache/crdcache/test/testcluster"
)

// TestQuietTypesRecover verifies that after an outage of any length, the status of a type without events and
// bookmarks is healthy as soon as its watch has been open for the minimum time.
func TestQuietTypesRecover(t *testing.T) {
	closes := testcluster.Close("")
	for name, tt := range map[string]struct {
		reason status.Reason
		broken []apitest.Fault
	}{
		"failing":   {status.ReasonRequestFailed, []apitest.Fault{{Status: 503}}},
		"throttled": {status.ReasonThrottled, []apitest.Fault{{Status: 429}}},
		"not found": {status.ReasonNotFound, []apitest.Fault{{Status: 404}}},
		"forbidden": {status.ReasonForbidden, []apitest.Fault{{Status: 403}}},
		"only watches failing": {status.ReasonRequestFailed, []apitest.Fault{{Verb: "watch", Status: 500},
			{Verb: "watch-list", Status: 500}}},
		"closed at once": {status.ReasonWatchClosed, []apitest.Fault{{Verb: "watch", Effect: closes},
			{Verb: "watch-list", Effect: closes}}},
	} {
		for _, outage := range []time.Duration{2 * health.ContactTimeout, 10 * time.Minute} {
			onFakeClock(t, func(t *testing.T, server *apitest.Server) {
				server.Create(t, widgets, widget("web", "a"))
				f := newVirtualFactory(t, server, Options{})
				i := mustInformer(t, f, widgets)
				start(t, f)
				time.Sleep(time.Minute) // a watch that ends early would be another failure
				for _, f := range tt.broken {
					f.Path = widgetsPath
					server.AddFaults(f)
				}
				server.CloseClientConnections()
				observe(t, i, name+", for "+outage.String(), outage, briefStatus{status.Degraded, tt.reason, true})
				before := len(server.Requests())
				server.Repair()
				watched := func() bool {
					return slices.ContainsFunc(server.Requests()[before:],
						func(r string) bool { return strings.HasPrefix(r, "watch "+widgetsPath+"?") })
				}
				for repaired := time.Now(); !watched() &&
					time.Since(repaired) < 10*time.Minute; synctest.Wait() {
					time.Sleep(100 * time.Millisecond)
				}
				observe(t, i, name+", watched again", requests.ShortWatch, briefStatus{State: status.Synced})
			})
		}
	}
}
