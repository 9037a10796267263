package dynamicinformer

import (
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/health"
)

// statusOf converts a status to the public type. TestStatusIsWhole checks that it copies every field.
func statusOf(s health.Status) status.Status {
	return status.Status{
		GVR: s.GVR, View: s.View, State: s.State, Reason: s.Reason, Message: s.Message, Stale: s.Stale,
		Resuming:    s.Resuming,
		Terminating: s.Terminating, Version: s.Version, Generation: s.Generation, UID: s.UID, Since: s.Since,
		LastError: s.LastError, LastContact: s.LastContact, ListDuration: s.ListDuration,
		Relists: status.Relists(s.Relists), Shard: shardStatusOf(s.Shard),
	}
}
