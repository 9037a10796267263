package discovery

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/internal/naming"
)

// errMassRemoval rejects a list that lacks most of the known types, until a second list confirms it.
var errMassRemoval = errors.New("the list lacks most of the known CustomResourceDefinitions: listing again")

// typeState decides which types exist, from the CRD watch and discovery. It does no I/O, has no clock and is
// not safe for concurrent use. Methods that change it return the resulting events.
type typeState struct {
	types map[schema.GroupResource]Type

	// The state of the CRD watch. It is used if crdsKnown and not crdsForbidden.
	crds              map[schema.GroupResource]*crd.Definition
	crdsKnown         bool
	crdsForbidden     bool
	forbiddenAt       time.Time
	crdRemovalPending bool // a list was rejected with errMassRemoval
	// unreadableCRDs maps existing definitions that cannot be decoded to their errors. Their earlier
	// definitions remain in crds.
	unreadableCRDs map[schema.GroupResource]error

	// The state of discovery.
	discoveredTypes       map[schema.GroupResource]Type // nil before the first catalog
	groupOrder            []group                       // groups and versions in the server's order
	failedGroupVersions   []GroupFailure
	discoveredAt          time.Time
	catalogRemovalPending bool

	// recentlyDeletedCRDs maps types to the time when their CRD was deleted. Until discoveryLag has passed,
	// they count as deleted even if discovery still lists them. Later, another server serves the type.
	recentlyDeletedCRDs map[schema.GroupResource]time.Time
	discoveryLag        time.Duration
}

func newTypeState(lag time.Duration) typeState {
	return typeState{
		discoveryLag:        lag,
		types:               map[schema.GroupResource]Type{},
		crds:                map[schema.GroupResource]*crd.Definition{},
		recentlyDeletedCRDs: map[schema.GroupResource]time.Time{},

		unreadableCRDs: map[schema.GroupResource]error{},
	}
}

// synced reports whether both sources have answered.
func (s *typeState) synced() bool {
	return (s.crdsKnown || s.crdsForbidden) && s.discoveredTypes != nil
}

// crdsAuthoritative reports whether the CRD watch is authoritative for custom resources.
func (s *typeState) crdsAuthoritative() bool { return s.crdsKnown && !s.crdsForbidden }

// replaceCRDs stores a complete list: the definitions, and the unreadable ones, which exist too.
func (s *typeState) replaceCRDs(list []*crd.Definition, unreadable []unreadableCRD, now time.Time) ([]Event,
	error) {
	next := make(map[schema.GroupResource]*crd.Definition, len(list))
	for _, u := range unreadable {
		if current := s.crds[u.gr]; current != nil && u.couldBeSameCRD(current.UID) {
			next[u.gr] = current
		}
	}
	for _, d := range list {
		next[d.GroupResource()] = d
	}
	lost := 0
	for gr := range s.crds {
		if next[gr] == nil {
			lost++
		}
	}
	if isMassRemoval(lost, len(s.crds)) && !s.crdRemovalPending {
		s.crdRemovalPending = true
		return nil, errMassRemoval
	}
	s.crdRemovalPending = false
	for gr, t := range s.types { // some may be assumed
		exists := next[gr] != nil || s.crds[gr] == nil && slices.ContainsFunc(unreadable,
			func(u unreadableCRD) bool { return u.gr == gr && u.couldBeSameCRD(t.UID) })
		if !exists && (s.crds[gr] != nil || t.Source == FromCRD) {
			s.recentlyDeletedCRDs[gr] = now
		}
	}
	for gr := range next {
		delete(s.recentlyDeletedCRDs, gr)
	}
	s.crds, s.crdsKnown, s.crdsForbidden = next, true, false
	clear(s.unreadableCRDs)
	for _, u := range unreadable {
		s.unreadableCRDs[u.gr] = u.err
	}
	return s.reconcileAll(), nil
}

// couldBeSameCRD reports whether the UIDs allow that an unreadable CRD is the known one.
func (u unreadableCRD) couldBeSameCRD(uid types.UID) bool {
	return u.uid == "" || uid == "" || u.uid == uid
}

// setCRDUnreadable records an added or changed definition that cannot be decoded. Its earlier definition
// remains, unless that was another CRD of the same name.
func (s *typeState) setCRDUnreadable(u unreadableCRD, now time.Time) []Event {
	var events []Event
	if current := s.crds[u.gr]; current != nil && !u.couldBeSameCRD(current.UID) {
		events = s.dropCRD(u.gr, now)
	}
	s.unreadableCRDs[u.gr] = u.err
	return events
}

// unreadableError returns an error that names the unreadable definitions, or nil.
func (s *typeState) unreadableError() error {
	unreadable := slices.SortedFunc(maps.Keys(s.unreadableCRDs), compareGroupResource)
	return errors.Join(naming.Map(unreadable, func(gr schema.GroupResource) error {
		return fmt.Errorf("the CustomResourceDefinition %s: %w", gr, s.unreadableCRDs[gr])
	})...)
}

// isMassRemoval reports whether a removal is so large that it needs confirmation.
func isMassRemoval(removed, known int) bool { return removed > 5 && removed*2 > known }

func (s *typeState) putCRD(d *crd.Definition) []Event {
	gr := d.GroupResource()
	s.crds[gr] = d
	delete(s.recentlyDeletedCRDs, gr)
	delete(s.unreadableCRDs, gr)
	return s.reconcile(nil, gr)
}

// assume adds a type that a caller has found, unless the sources have answered.
func (s *typeState) assume(mapping *meta.RESTMapping, definition *metav1.PartialObjectMetadata) []Event {
	gr, version := mapping.Resource.GroupResource(), mapping.Resource.Version
	t, exists := s.types[gr]
	switch {
	case s.synced() || s.crdsKnown && s.crds[gr] != nil:
		return nil
	case !exists:
		t = Type{GroupResource: gr, Kind: mapping.GroupVersionKind.Kind, Scope: Cluster,
			Source: FromDiscovery, Established: true}
	}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		t.Scope = Namespaced
	}
	if !slices.Contains(t.ServedVersions(), version) {
		t.Versions = append(slices.Clip(t.Versions), TypeVersion{Name: version, Served: true,
			Kind: mapping.GroupVersionKind, Verbs: customVerbs})
	}
	if definition != nil {
		t.Source, t.UID = FromCRD, definition.UID
	}
	return s.put(nil, t)
}

func (s *typeState) dropCRD(gr schema.GroupResource, now time.Time) []Event {
	delete(s.unreadableCRDs, gr)
	if s.crds[gr] == nil {
		return nil
	}
	delete(s.crds, gr)
	s.recentlyDeletedCRDs[gr] = now
	return s.reconcile(nil, gr)
}

// setCRDsForbidden records that CRDs cannot be read any more, or do not exist on this server. Known types
// remain until discovery has answered.
func (s *typeState) setCRDsForbidden(now time.Time) []Event {
	if s.crdsForbidden {
		return nil
	}
	s.crdsForbidden, s.forbiddenAt = true, now
	return s.reconcileAll()
}

// applyCatalog stores a catalog. It rejects a catalog that would remove most of the types for which
// discovery is authoritative, and returns retry. It accepts the next catalog.
func (s *typeState) applyCatalog(c *Catalog) (events []Event, retry bool) {
	next := c.types()
	knownTypes, removed := 0, 0
	for gr := range s.discoveredTypes {
		_, recentlyDeleted := s.recentlyDeletedCRDs[gr]
		if s.crdsAuthoritative() && (recentlyDeleted || s.crds[gr] != nil) {
			continue // the CRD watch is authoritative
		}
		knownTypes++
		if _, ok := next[gr]; !ok && !hasFailedGroup(c.failedGroupVersions, gr.Group) {
			removed++
		}
	}
	if isMassRemoval(removed, knownTypes) && !s.catalogRemovalPending {
		s.catalogRemovalPending = true
		return nil, true
	}
	s.catalogRemovalPending = false
	s.discoveredTypes, s.groupOrder = next, c.groupOrder
	s.failedGroupVersions, s.discoveredAt = c.FailedGroupVersions(), c.fetchedAt
	for gr, at := range s.recentlyDeletedCRDs {
		_, listed := next[gr]
		if c.fetchedAt.After(at) && (!listed || c.fetchedAt.Sub(at) > s.discoveryLag) {
			delete(s.recentlyDeletedCRDs, gr)
		}
	}
	return s.reconcileAll(), false
}

// nextDiscoveryCheck returns the time at which discovery must run again for types whose CRD was deleted,
// because its results are up to date by then. It returns zero if there are no such types.
func (s *typeState) nextDiscoveryCheck() (at time.Time) {
	for _, deletedAt := range s.recentlyDeletedCRDs {
		if due := deletedAt.Add(s.discoveryLag + time.Millisecond); at.IsZero() || due.Before(at) {
			at = due
		}
	}
	return at
}

func hasFailedGroup(failures []GroupFailure, group string) bool {
	return slices.ContainsFunc(failures, func(f GroupFailure) bool { return f.GroupVersion.Group == group })
}

func (s *typeState) reconcileAll() []Event {
	resources := sets.KeySet(s.types).Union(sets.KeySet(s.crds)).Union(sets.KeySet(s.discoveredTypes))
	var events []Event
	for _, gr := range slices.SortedFunc(maps.Keys(resources), compareGroupResource) {
		events = s.reconcile(events, gr)
	}
	return events
}

func compareGroupResource(a, b schema.GroupResource) int {
	return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource))
}

// reconcile updates one type from the sources, and appends the events.
func (s *typeState) reconcile(events []Event, gr schema.GroupResource) []Event {
	old, existed := s.types[gr]
	current, presence := s.combineSources(gr)
	if presence == leaveUnchanged || presence == absent && !existed {
		return events
	}
	if presence == absent {
		delete(s.types, gr)
		return append(events, Event{Action: Removed, Type: old,
			Deleted: (old.Source == FromCRD || old.UID != "") && s.crdsAuthoritative()})
	}
	return s.put(events, current)
}

// put stores the current state of a type, and appends the events.
func (s *typeState) put(events []Event, current Type) []Event {
	old, existed := s.types[current.GroupResource]
	s.types[current.GroupResource] = current
	switch {
	case !existed:
		return append(events, Event{Action: Added, Type: current})
	case old.UID != "" && current.UID != "" && old.UID != current.UID:
		return append(events, Event{Action: Removed, Type: old, Deleted: true},
			Event{Action: Added, Type: current})
	case !sameType(old, current):
		return append(events, Event{Action: Changed, Type: current, Old: old})
	}
	return events
}

// combinedPresence is the combined information of the sources about a type.
type combinedPresence int

const (
	absent         combinedPresence = iota
	present                         // the type exists, with the returned content
	leaveUnchanged                  // the sources do not allow a conclusion; keep the known state of the type
)

// combineSources returns the combined information of the sources about gr.
func (s *typeState) combineSources(gr schema.GroupResource) (Type, combinedPresence) {
	if s.crdsAuthoritative() {
		if d := s.crds[gr]; d != nil {
			return typeOfCRD(d), present
		}
		if _, recentlyDeleted := s.recentlyDeletedCRDs[gr]; recentlyDeleted {
			return Type{}, absent
		}
	}
	if !s.synced() {
		return Type{}, leaveUnchanged
	}
	if t, ok := s.discoveredTypes[gr]; ok {
		// While CRDs cannot be read, a type from discovery keeps the last known UID of its CRD. The UID may
		// be outdated; when CRDs can be read again, another UID means another type.
		current, known := s.types[gr]
		if known && !s.crdsAuthoritative() && current.Scope == t.Scope && current.Kind == t.Kind {
			t.UID = current.UID
		}
		return t, present
	}
	switch {
	case hasFailedGroup(s.failedGroupVersions, gr.Group),
		s.types[gr].Source == FromCRD && s.unreadableCRDs[gr] != nil:
		return Type{}, leaveUnchanged
	case s.types[gr].Source == FromCRD && !s.crdsAuthoritative() && !s.discoveredAt.After(s.forbiddenAt):
		// The catalog is older than the last event of the CRD watch.
		return Type{}, leaveUnchanged
	}
	return Type{}, absent
}
