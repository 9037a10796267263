package dynamicinformer

import (
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/health"
)

// statusOf returns a status as users see it. TestStatusIsWhole checks that nothing is left out.
func statusOf(s health.Status) status.Status {
	return status.Status{
		GVR: s.GVR, View: s.View, State: s.State, Reason: s.Reason, Message: s.Message, Stale: s.Stale,
		Resuming:    s.Resuming,
		Terminating: s.Terminating, Version: s.Version, Generation: s.Generation, UID: s.UID, Since: s.Since,
		LastError: s.LastError, LastContact: s.LastContact, ListDuration: s.ListDuration,
		Relists: status.Relists(s.Relists), Shard: shardStatusOf(s.Shard),
	}
}
