package shard

import (
	"slices"
	"strconv"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// Labels of the Leases.
const (
	labelGroup  = "shard.crdcache.dev/group"  // Options.Name
	labelShard  = "shard.crdcache.dev/shard"  // the number of the shard; absent from the Leases of members
	labelShards = "shard.crdcache.dev/shards" // how many shards there are
	labelLayout = "shard.crdcache.dev/layout" // Options.Layout
)

// sighting is what is known of a Lease, and since when on the own clock: times in Leases are of other clocks.
type sighting struct {
	spec            coordinationv1.LeaseSpec
	labels          map[string]string
	resourceVersion string
	changed         time.Time
	// token is the greatest that a tenure of the Lease can have had.
	token int64
	// deleted says that the Lease is gone. Its holder does not know yet, so that it counts for as long as it
	// would have.
	deleted bool
}

func (s *sighting) record() *resourcelock.LeaderElectionRecord {
	return resourcelock.LeaseSpecToLeaderElectionRecord(&s.spec)
}

// holder returns who holds the Lease; "" when nobody does, or has not renewed it for as long as it says.
func (s *sighting) holder(now time.Time) string {
	record := s.record()
	if now.After(s.expiry(record)) {
		return ""
	}
	return record.HolderIdentity
}

func (s *sighting) expiry(record *resourcelock.LeaderElectionRecord) time.Time {
	return s.changed.Add(time.Duration(record.LeaseDurationSeconds) * time.Second)
}

// sightings are all Leases of a group, by name. It is pure: every rule about who is there and who holds what
// is here.
type sightings struct {
	options Options
	leases  map[string]*sighting
}

// note records a Lease as it is now.
func (s *sightings) note(lease *coordinationv1.Lease, now time.Time) {
	if known := s.leases[lease.Name]; known != nil && !known.deleted &&
		apiequality.Semantic.DeepEqual(known.spec, lease.Spec) {
		return
	}
	next := &sighting{
		spec: lease.Spec, labels: lease.Labels, resourceVersion: lease.ResourceVersion, changed: now,
		token: greatestToken(lease),
	}
	if known := s.leases[lease.Name]; known != nil {
		next.token = max(next.token, known.token)
	}
	s.leases[lease.Name] = next
}

// noteDeleted records that there is no Lease of a name any more.
func (s *sightings) noteDeleted(name string) {
	if known := s.leases[name]; known != nil {
		known.deleted = true
	}
}

// noteAll records a list of all Leases.
func (s *sightings) noteAll(leases []coordinationv1.Lease, now time.Time) {
	present := map[string]bool{}
	for i := range leases {
		s.note(&leases[i], now)
		present[leases[i].Name] = true
	}
	for name := range s.leases {
		if !present[name] {
			s.noteDeleted(name)
		}
	}
}

// lookAlike reports whether replicas that write such labels mean the same by a shard.
func (s *sightings) lookAlike(labels map[string]string) bool {
	return labels[labelShards] == strconv.Itoa(s.options.Shards) && labels[labelLayout] == s.options.Layout
}

// situation is what a replica decides by.
type situation struct {
	self string
	// members are the replicas that are there, sorted, with self.
	members []string
	// holders has who holds each shard; "" is nobody.
	holders []string
	// foreign says that somebody is there, or holds a shard, who means something else by it.
	foreign bool
	// next is when time alone changes something; zero: never.
	next time.Time
}

// situation returns what is the case now.
func (s *sightings) situation(self string, now time.Time) situation {
	v := situation{self: self, members: []string{self}, holders: make([]string, s.options.Shards)}
	for name, lease := range s.leases {
		record := lease.record()
		holder := lease.holder(now)
		_, isShard := lease.labels[labelShard]
		if holder == "" || !isShard && lease.deleted {
			continue // a member that deletes its Lease is gone
		}
		if holder != self {
			if expiry := lease.expiry(record).Add(1); v.next.IsZero() || expiry.Before(v.next) {
				v.next = expiry
			}
			v.foreign = v.foreign || !s.lookAlike(lease.labels)
		}
		if isShard {
			if k := s.options.shardOf(name); k >= 0 {
				v.holders[k] = holder
			}
		} else if holder != self {
			v.members = append(v.members, holder)
		}
	}
	slices.Sort(v.members)
	v.members = slices.Compact(v.members)
	return v
}

// abandoned returns the names of Leases of members that have not been renewed for ten times as long as they
// say.
func (s *sightings) abandoned(now time.Time) []string {
	var names []string
	for name, lease := range s.leases {
		_, isShard := lease.labels[labelShard]
		if !isShard && !lease.deleted && now.Sub(lease.changed) > 10*s.options.LeaseDuration {
			names = append(names, name)
		}
	}
	return names
}

// forget drops what is over and will not come back: deleted Leases of members.
func (s *sightings) forget() {
	for name, lease := range s.leases {
		if _, isShard := lease.labels[labelShard]; lease.deleted && !isShard {
			delete(s.leases, name)
		}
	}
}
