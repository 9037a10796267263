package shard

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"
)

// Labels of the Leases.
const (
	labelGroup  = "shard.crdcache.dev/group"  // Options.Name
	labelShard  = "shard.crdcache.dev/shard"  // the number of the shard; not on member Leases
	labelShards = "shard.crdcache.dev/shards" // the number of shards
	labelLayout = "shard.crdcache.dev/layout" // Options.Layout
)

// observedLease is the observed state of a Lease. Its times are of the local clock, because the times in
// Leases come from other clocks.
type observedLease struct {
	spec            coordinationv1.LeaseSpec
	labels          map[string]string
	resourceVersion string
	observedAt      time.Time
	// token is the greatest possible token of all ownerships so far.
	token int64
	// deleted is true if the Lease was deleted. The shard stays held until the Lease would have expired,
	// because the holder may not know of the deletion.
	deleted bool
}

// holder returns the holder of the Lease; "" if it has none or has expired.
func (o *observedLease) holder(now time.Time) string {
	if now.After(o.expiry()) {
		return ""
	}
	return holderOf(o.spec)
}

func (o *observedLease) expiry() time.Time {
	return o.observedAt.Add(time.Duration(ptr.Deref(o.spec.LeaseDurationSeconds, 0)) * time.Second)
}

// observedLeases are the observed Leases of a group, by name. It has all rules about members and holders, and
// does no I/O.
type observedLeases struct {
	options Options
	leases  map[string]*observedLease
}

func (o *observedLeases) record(lease *coordinationv1.Lease, now time.Time) {
	observed := cmp.Or(o.leases[lease.Name], &observedLease{deleted: true})
	if !observed.deleted && apiequality.Semantic.DeepEqual(observed.spec, lease.Spec) {
		return
	}
	o.leases[lease.Name] = &observedLease{
		spec: lease.Spec, labels: lease.Labels, resourceVersion: lease.ResourceVersion, observedAt: now,
		token: max(greatestToken(lease), observed.token),
	}
}

func (o *observedLeases) recordDeleted(name string) {
	if observed := o.leases[name]; observed != nil {
		observed.deleted = true
	}
}

func (o *observedLeases) recordAll(leases []coordinationv1.Lease, now time.Time) {
	present := map[string]bool{}
	for i := range leases {
		o.record(&leases[i], now)
		present[leases[i].Name] = true
	}
	for name := range o.leases {
		if !present[name] {
			o.recordDeleted(name)
		}
	}
}

type planState struct {
	identity string
	// members are the sorted running replicas, including self.
	members []string
	// holders has the holder of each shard; "" if it has none.
	holders []string
	// otherLayout is true if a replica with other shards or another layout is a member or holds a shard.
	otherLayout bool
	// nextExpiry is the next time at which a Lease expires; zero if none does.
	nextExpiry time.Time
}

func (o *observedLeases) planInput(self string, now time.Time) planState {
	state := planState{identity: self, members: []string{self}, holders: make([]string, o.options.Shards)}
	for name, lease := range o.leases {
		holder := lease.holder(now)
		_, isShard := lease.labels[labelShard]
		if holder == "" || !isShard && lease.deleted {
			continue // a member that deletes its Lease has ended
		}
		if holder != self {
			expiry := lease.expiry().Add(1)
			if state.nextExpiry.IsZero() || expiry.Before(state.nextExpiry) {
				state.nextExpiry = expiry
			}
			state.otherLayout = state.otherLayout || lease.labels[labelLayout] != o.options.Layout ||
				lease.labels[labelShards] != strconv.Itoa(o.options.Shards)
		}
		if isShard {
			if k := o.options.shardOf(name); k >= 0 {
				state.holders[k] = holder
			}
		} else if holder != self {
			state.members = append(state.members, holder)
		}
	}
	slices.Sort(state.members)
	state.members = slices.Compact(state.members)
	return state
}

// expiredMembers returns the member Leases that were not renewed for ten times their duration: their resource
// versions by name.
func (o *observedLeases) expiredMembers(now time.Time) map[string]string {
	expired := map[string]string{}
	for name, lease := range o.leases {
		_, isShard := lease.labels[labelShard]
		if !isShard && !lease.deleted && now.Sub(lease.observedAt) > 10*o.options.LeaseDuration {
			expired[name] = lease.resourceVersion
		}
	}
	return expired
}

func (o *observedLeases) forget() {
	for name, lease := range o.leases {
		if _, isShard := lease.labels[labelShard]; lease.deleted && !isShard {
			delete(o.leases, name)
		}
	}
}
