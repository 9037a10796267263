package discovery

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crdcache/crdcache/discovery/crd"
)

var startTime = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// definition returns an established, namespaced CRD of group example.com.
func definition(plural, uid string, change ...func(*crd.Definition)) *crd.Definition {
	d := &crd.Definition{
		Name: plural + ".example.com", UID: types.UID(uid), Group: "example.com", Namespaced: true,
		Names:       crd.Names{Plural: plural, Singular: plural + "x", Kind: "K" + plural},
		Versions:    []crd.Version{{Name: "v1", Served: true, Storage: true}},
		Established: true, NamesAccepted: true,
	}
	for _, c := range change {
		c(d)
	}
	return d
}

func definitions(n int) []*crd.Definition {
	var out []*crd.Definition
	for i := range n {
		out = append(out, definition(fmt.Sprintf("r%02d", i), fmt.Sprintf("u%d", i)))
	}
	return out
}

// catalogAt returns a catalog of groups, fetched at startTime plus at.
func catalogAt(at time.Duration, groups ...group) *Catalog {
	c := newCatalog(groups)
	c.fetchedAt = startTime.Add(at)
	return c
}

func oneGroup(name string, plurals ...string) group {
	g := group{Name: name, Versions: []groupVersion{{Name: "v1"}}}
	for _, p := range plurals {
		g.Versions[0].Resources = append(g.Versions[0].Resources, documentResource{Name: p, Singular: p + "x",
			Kind: "K" + p, Namespaced: true, Verbs: customVerbs})
	}
	return g
}

func eventTexts(events []Event) []string {
	var out []string
	for _, e := range events {
		text := fmt.Sprintf("%s %s", e.Action, e.Type.GroupResource)
		if e.Type.UID != "" {
			text += " " + string(e.Type.UID)
		}
		out = append(out, text)
	}
	return out
}

// TestState runs scripts and compares the events of each step as text.
func TestState(t *testing.T) {
	type step struct {
		do   func(s *typeState) []Event
		want []string
	}
	list := func(defs ...*crd.Definition) func(s *typeState) []Event {
		return func(s *typeState) []Event {
			events, err := s.replaceCRDs(defs, nil, startTime)
			if err != nil {
				return []Event{{Action: EventAction(err.Error())}}
			}
			return events
		}
	}
	put := func(d *crd.Definition) func(s *typeState) []Event {
		return func(s *typeState) []Event { return s.putCRD(d) }
	}
	drop := func(d *crd.Definition) func(s *typeState) []Event {
		return func(s *typeState) []Event { return s.dropCRD(d.GroupResource(), startTime) }
	}
	applyCatalog := func(c *Catalog) func(s *typeState) []Event {
		return func(s *typeState) []Event {
			events, retry := s.applyCatalog(c)
			if retry {
				return []Event{{Action: "again"}}
			}
			return events
		}
	}
	forbid := func(s *typeState) []Event { return s.setCRDsForbidden(startTime) }
	unreadable := func(uid types.UID) unreadableCRD {
		return unreadableCRD{gr: schema.GroupResource{Group: "example.com", Resource: "ws"}, uid: uid,
			err: errors.New("odd")}
	}
	listUnreadable := func(uid types.UID, defs ...*crd.Definition) func(s *typeState) []Event {
		return func(s *typeState) []Event {
			events, err := s.replaceCRDs(defs, []unreadableCRD{unreadable(uid)}, startTime)
			if err != nil || s.unreadableError() == nil {
				return []Event{{Action: "unreported"}}
			}
			return events
		}
	}
	putUnreadable := func(uid types.UID) func(s *typeState) []Event {
		return func(s *typeState) []Event { return s.setCRDUnreadable(unreadable(uid), startTime) }
	}
	w := func(uid string, change ...func(*crd.Definition)) *crd.Definition {
		return definition("ws", uid, change...)
	}
	const second = time.Second
	coreGroup := oneGroup("", "pods")
	tests := map[string][]step{
		"a CRD's life": {
			{list(), nil},
			{put(w("1", func(d *crd.Definition) { d.Established = false })),
				[]string{"Added ws.example.com 1"}},
			{put(w("1")), []string{"Changed ws.example.com 1"}},
			{put(w("1")), nil},
			{put(w("1", func(d *crd.Definition) { d.ResourceVersion = "9" })), nil},
			{put(w("1", func(d *crd.Definition) { d.Generation = 9 })), []string{"Changed ws.example.com 1"}},
			{put(w("1", func(d *crd.Definition) { d.Names.ShortNames = []string{"w"} })),
				[]string{"Changed ws.example.com 1"}},
			{put(w("1", func(d *crd.Definition) { d.StoredVersions = []string{"v1"} })),
				[]string{"Changed ws.example.com 1"}},
			{drop(w("1")), []string{"Removed ws.example.com 1"}},
			{drop(w("1")), nil},
		},
		"a version is withdrawn": {
			{list(w("1", func(d *crd.Definition) {
				d.Versions = append(d.Versions, crd.Version{Name: "v1beta1", Served: true})
			})), []string{"Added ws.example.com 1"}},
			{put(w("1", func(d *crd.Definition) {
				d.Versions = append(d.Versions, crd.Version{Name: "v1beta1"})
			})), []string{"Changed ws.example.com 1"}},
			{put(w("1")), []string{"Changed ws.example.com 1"}},
		},
		"delete and create seen as one event": {
			{list(w("1")), []string{"Added ws.example.com 1"}},
			{put(w("2", func(d *crd.Definition) { d.Namespaced = false })),
				[]string{"Removed ws.example.com 1", "Added ws.example.com 2"}},
		},
		"delete and create within a relist": {
			{list(w("1")), []string{"Added ws.example.com 1"}},
			{list(w("2")), []string{"Removed ws.example.com 1", "Added ws.example.com 2"}},
		},
		"discovery waits for the CRDs, and does not repeat them": {
			{applyCatalog(catalogAt(0, coreGroup, oneGroup("example.com", "ws"))), nil},
			{list(w("1")), []string{"Added pods", "Added ws.example.com 1"}},
			{applyCatalog(catalogAt(second, coreGroup, oneGroup("example.com", "ws"))), nil},
		},
		"discovery lags behind a deleted CRD": {
			{list(w("1")), []string{"Added ws.example.com 1"}},
			{applyCatalog(catalogAt(0, coreGroup, oneGroup("example.com", "ws"))), []string{"Added pods"}},
			{drop(w("1")), []string{"Removed ws.example.com 1"}},
			{applyCatalog(catalogAt(second, coreGroup, oneGroup("example.com", "ws"))), nil},
			{applyCatalog(catalogAt(2*second, coreGroup)), nil},
			// Afterwards, another server serves the type.
			{applyCatalog(catalogAt(3*second, coreGroup, oneGroup("example.com", "ws"))),
				[]string{"Added ws.example.com"}},
		},
		"an aggregated API replaces a deleted CRD immediately": {
			{list(w("1")), []string{"Added ws.example.com 1"}},
			{applyCatalog(catalogAt(0, coreGroup)), []string{"Added pods"}},
			{drop(w("1")), []string{"Removed ws.example.com 1"}},
			{applyCatalog(catalogAt(DefaultDiscoveryLag+second, coreGroup, oneGroup("example.com", "ws"))),
				[]string{"Added ws.example.com"}},
		},
		"discovery is ahead of the CRD watch": {
			{list(), nil},
			{applyCatalog(catalogAt(0, coreGroup, oneGroup("example.com", "ws"))),
				[]string{"Added pods", "Added ws.example.com"}},
			{put(w("1")), []string{"Changed ws.example.com 1"}},
		},
		"an aggregated API comes and goes": {
			{list(), nil},
			{applyCatalog(catalogAt(0, coreGroup)), []string{"Added pods"}},
			{applyCatalog(catalogAt(second, coreGroup, oneGroup("agg.io", "as"))), []string{"Added as.agg.io"}},
			{applyCatalog(catalogAt(2*second, coreGroup, group{Name: "agg.io",
				Versions: []groupVersion{{Name: "v1", Stale: true, Failure: "stale"}}})), nil},
			{applyCatalog(catalogAt(3*second, coreGroup)), []string{"Removed as.agg.io"}},
		},
		"CRDs may not be read": {
			{forbid, nil},
			{applyCatalog(catalogAt(0, coreGroup, oneGroup("example.com", "ws"))),
				[]string{"Added pods", "Added ws.example.com"}},
			{applyCatalog(catalogAt(second, coreGroup)), []string{"Removed ws.example.com"}},
		},
		"the right to read CRDs is lost and comes back": {
			{list(w("1"), definition("zs", "z")),
				[]string{"Added ws.example.com 1", "Added zs.example.com z"}},
			{applyCatalog(catalogAt(-second, coreGroup)), []string{"Added pods"}},
			{forbid, nil}, // the catalog is older, so no type counts as removed
			{forbid, nil},
			{applyCatalog(catalogAt(second, coreGroup, oneGroup("example.com", "ws"))),
				[]string{"Changed ws.example.com 1", "Removed zs.example.com z"}},
			{list(w("2")), []string{"Removed ws.example.com 1", "Added ws.example.com 2"}},
		},
		"most CRDs are gone": {
			{list(definitions(7)[:6]...), []string{"Added r00.example.com u0", "Added r01.example.com u1",
				"Added r02.example.com u2", "Added r03.example.com u3", "Added r04.example.com u4",
				"Added r05.example.com u5"}},
			{list(), []string{errMassRemoval.Error() + " "}},
			{list(definitions(6)...), nil},
			{list(), []string{errMassRemoval.Error() + " "}},
			{list(), []string{"Removed r00.example.com u0", "Removed r01.example.com u1",
				"Removed r02.example.com u2", "Removed r03.example.com u3", "Removed r04.example.com u4",
				"Removed r05.example.com u5"}},
		},
		"an invalid definition is not a deletion": {
			{list(w("1"), definition("zs", "z")),
				[]string{"Added ws.example.com 1", "Added zs.example.com z"}},
			{putUnreadable("1"), nil},
			{listUnreadable("1", definition("zs", "z")), nil},
			{listUnreadable("", definition("zs", "z")), nil},
			{put(w("1", func(d *crd.Definition) { d.Established = false })),
				[]string{"Changed ws.example.com 1"}},
			{putUnreadable("1"), nil},
			{drop(w("1")), []string{"Removed ws.example.com 1"}},
		},
		"an unreadable CRD replaces another": {
			{list(w("1")), []string{"Added ws.example.com 1"}},
			{putUnreadable("2"), []string{"Removed ws.example.com 1"}},
			{put(w("2")), []string{"Added ws.example.com 2"}},
			{listUnreadable("3"), []string{"Removed ws.example.com 2"}},
		},
		"discovery has the type of an unreadable CRD": {
			{listUnreadable("1"), nil},
			{applyCatalog(catalogAt(0, oneGroup("example.com", "ws"))), []string{"Added ws.example.com"}},
			{put(w("1")), []string{"Changed ws.example.com 1"}},
		},
		"five of five are gone": {
			{list(definitions(2)...), []string{"Added r00.example.com u0", "Added r01.example.com u1"}},
			{list(), []string{"Removed r00.example.com u0", "Removed r01.example.com u1"}},
		},
		"most of discovery is gone": {
			{forbid, nil},
			{applyCatalog(catalogAt(0, oneGroup("", "a", "b", "c", "d", "e", "f"))),
				[]string{"Added a", "Added b", "Added c", "Added d", "Added e", "Added f"}},
			{applyCatalog(catalogAt(second)), []string{"again "}},
			{applyCatalog(catalogAt(2*second, oneGroup("", "a"))), []string{"Removed b", "Removed c", "Removed d",
				"Removed e", "Removed f"}},
		},
	}
	for name, steps := range tests {
		t.Run(name, func(t *testing.T) {
			s := newTypeState(DefaultDiscoveryLag)
			for i, step := range steps {
				if diff := cmp.Diff(step.want, eventTexts(step.do(&s))); diff != "" {
					t.Errorf("step %d (-want +got):\n%s", i, diff)
				}
			}
		})
	}
}

// TestStateAgainstModel verifies that for random inputs, applying the events reproduces the state, and a
// removed type is never changed.
func TestStateAgainstModel(t *testing.T) {
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 1))
		s := newTypeState(DefaultDiscoveryLag)
		observed := map[schema.GroupResource]Type{}
		now := startTime
		for range 100 {
			now = now.Add(time.Duration(random.IntN(20)) * time.Second)
			for _, e := range randomChange(random, &s, now) {
				gr := e.Type.GroupResource
				have, known := observed[gr]
				switch {
				case e.Action == Added && known:
					t.Fatalf("seed %d: %s added twice", seed, gr)
				case e.Action != Added && !known:
					t.Fatalf("seed %d: %s of unknown %s", seed, e.Action, gr)
				case e.Action == Changed && sameType(e.Old, e.Type):
					t.Fatalf("seed %d: a Changed event without a change", seed)
				case e.Action == Changed && have.UID != "" && e.Type.UID != "" && have.UID != e.Type.UID:
					t.Fatalf("seed %d: %s changed its UID", seed, gr)
				}
				if observed[gr] = e.Type; e.Action == Removed {
					delete(observed, gr)
				}
			}
			if diff := cmp.Diff(s.types, observed); diff != "" {
				t.Fatalf("seed %d (-state +listener):\n%s", seed, diff)
			}
		}
	}
}

func randomChange(random *rand.Rand, s *typeState, now time.Time) []Event {
	pick := func() *crd.Definition {
		return definition(fmt.Sprintf("r%02d", random.IntN(8)), fmt.Sprint(random.IntN(3)),
			func(d *crd.Definition) {
				d.Established = random.IntN(3) > 0
				d.Namespaced = random.IntN(2) > 0
			})
	}
	switch random.IntN(7) {
	case 6:
		d := pick()
		return s.setCRDUnreadable(unreadableCRD{gr: d.GroupResource(), uid: d.UID, err: errors.New("odd")}, now)
	case 0, 1:
		return s.putCRD(pick())
	case 2:
		return s.dropCRD(pick().GroupResource(), now)
	case 3:
		var list []*crd.Definition
		for range random.IntN(6) {
			list = append(list, pick())
		}
		events, err := s.replaceCRDs(list, nil, now)
		if err != nil && !errors.Is(err, errMassRemoval) {
			panic(err)
		}
		return events
	case 4:
		return s.setCRDsForbidden(now)
	}
	var plurals []string
	for i := range 8 {
		if random.IntN(2) > 0 {
			plurals = append(plurals, fmt.Sprintf("r%02d", i))
		}
	}
	g := oneGroup("example.com", plurals...)
	if random.IntN(4) == 0 {
		g.Versions[0].Failure = "failed"
	}
	c := newCatalog([]group{g})
	c.fetchedAt = now
	events, _ := s.applyCatalog(c)
	return events
}
