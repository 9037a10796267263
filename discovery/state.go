package discovery

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/discovery/crd"
)

// errSecondLook refuses a list that would remove most of what is known, until a second one says the same.
var errSecondLook = errors.New("the list lacks most of the known CustomResourceDefinitions: looking again")

// state decides what exists, from what the CRD watch and discovery say. It does no I/O, knows no clock
// and is not safe for concurrent use. Every method that takes news returns the events that follow.
type state struct {
	types map[schema.GroupResource]Type

	// What the CRD watch says. It counts while crdsKnown and not crdsDenied.
	crds       map[schema.GroupResource]*crd.Definition
	crdsKnown  bool
	crdsDenied bool
	deniedAt   time.Time
	crdsDoubt  bool // a list was refused with errSecondLook
	// unreadable are the definitions that are there and cannot be understood, and why. What was known of them
	// before is among crds still.
	unreadable map[schema.GroupResource]error

	// What discovery says.
	listed    map[schema.GroupResource]Type // nil before the first catalog
	order     []group                       // groups and versions in the server's order
	unknown   []GroupFailure
	listedAt  time.Time
	listDoubt bool

	// buried are types whose CRD was deleted, and when: they are not believed to exist just because discovery
	// still lists them. After its lag somebody else serves the type.
	buried map[schema.GroupResource]time.Time
	lag    time.Duration
}

func newState(lag time.Duration) state {
	return state{
		lag:    lag,
		types:  map[schema.GroupResource]Type{},
		crds:   map[schema.GroupResource]*crd.Definition{},
		buried: map[schema.GroupResource]time.Time{},

		unreadable: map[schema.GroupResource]error{},
	}
}

// synced reports whether both sources have answered.
func (s *state) synced() bool { return (s.crdsKnown || s.crdsDenied) && s.listed != nil }

// trusted reports whether the CRD watch has the last word on custom resources.
func (s *state) trusted() bool { return s.crdsKnown && !s.crdsDenied }

// replaceCRDs takes a complete list: the definitions, and what cannot be understood, which is not taken to be
// absent.
func (s *state) replaceCRDs(list []*crd.Definition, rest []unreadable, now time.Time) ([]Event, error) {
	next := make(map[schema.GroupResource]*crd.Definition, len(list))
	for _, u := range rest {
		if known := s.crds[u.gr]; known != nil && u.mayBe(known) {
			next[u.gr] = known
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
	if tooMany(lost, len(s.crds)) && !s.crdsDoubt {
		s.crdsDoubt = true
		return nil, errSecondLook
	}
	s.crdsDoubt = false
	for gr := range s.crds {
		if next[gr] == nil {
			s.buried[gr] = now
		}
	}
	for gr := range next {
		delete(s.buried, gr)
	}
	s.crds, s.crdsKnown, s.crdsDenied = next, true, false
	clear(s.unreadable)
	for _, u := range rest {
		s.unreadable[u.gr] = u.err
	}
	return s.settleAll(), nil
}

// mayBe reports whether what cannot be understood is, as far as its UID tells, what was known before.
func (u unreadable) mayBe(known *crd.Definition) bool {
	return u.uid == "" || known.UID == "" || u.uid == known.UID
}

// breakCRD takes an added or changed definition that cannot be understood. What was known of it stays, unless
// it is another one of that name.
func (s *state) breakCRD(u unreadable, now time.Time) []Event {
	var events []Event
	if known := s.crds[u.gr]; known != nil && !u.mayBe(known) {
		events = s.dropCRD(u.gr, now)
	}
	s.unreadable[u.gr] = u.err
	return events
}

// unreadableError names what cannot be understood; nil if there is nothing.
func (s *state) unreadableError() error {
	var errs []error
	for _, gr := range slices.SortedFunc(maps.Keys(s.unreadable), compareGroupResource) {
		errs = append(errs, fmt.Errorf("the CustomResourceDefinition %s: %w", gr, s.unreadable[gr]))
	}
	return errors.Join(errs...)
}

// tooMany reports whether a removal is so large that it needs a second look.
func tooMany(lost, known int) bool { return lost > 5 && lost*2 > known }

// putCRD takes an added or changed definition.
func (s *state) putCRD(d *crd.Definition) []Event {
	gr := d.GroupResource()
	s.crds[gr] = d
	delete(s.buried, gr)
	delete(s.unreadable, gr)
	return s.settle(nil, gr)
}

// dropCRD takes the deletion of a definition.
func (s *state) dropCRD(gr schema.GroupResource, now time.Time) []Event {
	delete(s.unreadable, gr)
	if s.crds[gr] == nil {
		return nil
	}
	delete(s.crds, gr)
	s.buried[gr] = now
	return s.settle(nil, gr)
}

// denyCRDs notes that CRDs may not be read any more, or do not exist on this server. What is known of
// them stays until discovery has been asked.
func (s *state) denyCRDs(now time.Time) []Event {
	if s.crdsDenied {
		return nil
	}
	s.crdsDenied, s.deniedAt = true, now
	return s.settleAll()
}

// take takes a catalog. It returns again when the catalog was refused because it would remove most of
// what discovery has the last word on; the next one is then believed.
func (s *state) take(c *Catalog) (events []Event, again bool) {
	next := typesOfCatalog(c)
	known, lost := 0, 0
	for gr := range s.listed {
		if s.trusted() && s.knownCRD(gr) {
			continue // the CRD watch has the last word
		}
		known++
		if _, ok := next[gr]; !ok && !groupUnknown(c.unknown, gr.Group) {
			lost++
		}
	}
	if tooMany(lost, known) && !s.listDoubt {
		s.listDoubt = true
		return nil, true
	}
	s.listDoubt = false
	before := s.unknown
	s.listed, s.order, s.unknown, s.listedAt = next, c.order, c.Unknown(), c.fetched
	for gr, at := range s.buried {
		_, still := next[gr]
		if c.fetched.After(at) && (!still || c.fetched.Sub(at) > s.lag) {
			delete(s.buried, gr)
		}
	}
	events = s.settleAll()
	if !slices.EqualFunc(before, s.unknown, GroupFailure.equal) {
		events = append(events, Event{Kind: Unknown, Unknown: s.unknown})
	}
	return events, false
}

// exhumed is when discovery is to be asked for types whose CRD was deleted, and was believed to be late until
// then; zero when there are none.
func (s *state) exhumed() (at time.Time) {
	for _, buried := range s.buried {
		if due := buried.Add(s.lag + time.Millisecond); at.IsZero() || due.Before(at) {
			at = due
		}
	}
	return at
}

// knownCRD reports whether gr is or was a custom resource.
func (s *state) knownCRD(gr schema.GroupResource) bool {
	_, buried := s.buried[gr]
	return buried || s.crds[gr] != nil
}

func groupUnknown(failures []GroupFailure, group string) bool {
	return slices.ContainsFunc(failures, func(f GroupFailure) bool { return f.GroupVersion.Group == group })
}

// settleAll brings every type in line with what the sources say.
func (s *state) settleAll() []Event {
	all := map[schema.GroupResource]bool{}
	for gr := range s.types {
		all[gr] = true
	}
	for gr := range s.crds {
		all[gr] = true
	}
	for gr := range s.listed {
		all[gr] = true
	}
	var events []Event
	for _, gr := range slices.SortedFunc(maps.Keys(all), compareGroupResource) {
		events = s.settle(events, gr)
	}
	return events
}

func compareGroupResource(a, b schema.GroupResource) int {
	return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource))
}

// settle brings one type in line with what the sources say, and appends the events.
func (s *state) settle(events []Event, gr schema.GroupResource) []Event {
	old, existed := s.types[gr]
	now, what := s.desired(gr)
	if what == keep || what == absent && !existed {
		return events
	}
	if what == absent {
		delete(s.types, gr)
		return append(events, Event{Kind: Removed, Type: old})
	}
	s.types[gr] = now
	switch {
	case !existed:
		return append(events, Event{Kind: Added, Type: now})
	case old.UID != "" && now.UID != "" && old.UID != now.UID:
		return append(events, Event{Kind: Removed, Type: old}, Event{Kind: Added, Type: now})
	}
	if changes := compare(old, now); changes != 0 {
		return append(events, Event{Kind: Changed, Type: now, Old: old, Changes: changes})
	}
	return events
}

// verdict is what the sources say about a type.
type verdict int

const (
	absent  verdict = iota
	present         // as returned
	keep            // nothing is certain: leave it as it is
)

// desired returns what the sources say about gr.
func (s *state) desired(gr schema.GroupResource) (Type, verdict) {
	if s.trusted() {
		if d := s.crds[gr]; d != nil {
			return typeOfCRD(d), present
		}
		if _, buried := s.buried[gr]; buried {
			return Type{}, absent
		}
	}
	if !s.synced() {
		return Type{}, keep
	}
	if t, ok := s.listed[gr]; ok {
		return s.withCRD(t), present
	}
	switch {
	case groupUnknown(s.unknown, gr.Group):
		return Type{}, keep
	case s.types[gr].Source == FromCRD && !s.trusted() && !s.listedAt.After(s.deniedAt):
		// The catalog is older than the last thing the CRD watch said.
		return Type{}, keep
	}
	return Type{}, absent
}

// withCRD adds what only a CRD says to a type from discovery, while CRDs cannot be read any more. The UID
// may be that of a CRD deleted since; when CRDs can be read again, another UID makes another type.
func (s *state) withCRD(t Type) Type {
	known, ok := s.types[t.GroupResource]
	if ok && !s.trusted() && known.Scope == t.Scope && known.Kind == t.Kind {
		t.UID = known.UID
	}
	return t
}
