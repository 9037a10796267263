package conformance_test

import (
	"testing"
	"time"

	"github.com/crdcache/crdcache/internal/informer/conformance"
	"github.com/crdcache/crdcache/test/integration/harness"
)

// outagePatience limits a stage of an outage, because servers and reflectors take long to recover.
const outagePatience = 3 * time.Minute

// outage is a scenario in which the server is disturbed and restarted.
type outage struct {
	name string
	// play plays the part before the outage. It returns the parts during the outage and after the restart.
	play func(*conformance.Stage) (meanwhile, afterwards func())
	// disturb is called once for all stages.
	disturb func(testing.TB)
}

// TestConformanceInOutages compares informers in outages of the server, which affect all its clients.
func TestConformanceInOutages(t *testing.T) {
	for _, o := range []outage{
		{name: "server killed in the middle of a watch", play: watchKilled, disturb: harness.KillAPIServer},
		{name: "server killed before the first list", play: listKilled, disturb: harness.KillAPIServer},
		// A server that is not restarted still has the compacted revisions in its cache.
		{name: "history compacted", play: historyCompacted, disturb: harness.Compact},
	} {
		t.Run(o.name, o.run)
	}
}

// run exposes all stages, over LIST and over WATCH-LIST, to one outage.
func (o outage) run(t *testing.T) {
	type part struct {
		name                  string
		stage                 *conformance.Stage
		meanwhile, afterwards func()
	}
	verbs := []string{"list", "watch-list"}
	parts := map[string][]*part{}
	for _, verb := range verbs {
		for _, subject := range conformance.WithReference(subjects()) {
			p := &part{name: subject.Name,
				stage: conformance.NewStage(t, harness.Config(t), subject.New, verb, outagePatience)}
			p.meanwhile, p.afterwards = o.play(p.stage)
			parts[verb] = append(parts[verb], p)
		}
	}
	o.disturb(t)
	for _, verb := range verbs {
		for _, p := range parts[verb] {
			p.meanwhile()
		}
	}
	harness.RestartAPIServer(t)
	for _, verb := range verbs {
		var traces []conformance.Trace
		for _, p := range parts[verb] {
			p.afterwards()
			traces = append(traces, p.stage.End(p.name))
		}
		t.Run(verb, func(t *testing.T) { conformance.Compare(t, traces) })
	}
}

// watchKilled breaks the connection during changes. Handlers receive the same events whether the watch or the
// next list delivers them.
func watchKilled(s *conformance.Stage) (meanwhile, afterwards func()) {
	s.Put("a", "1")
	s.Put("b", "1")
	r := s.Start()
	s.Put("b", "2")
	s.Put("c", "1")
	meanwhile = func() {
		_, found, err := s.Informer.GetStore().GetByKey(s.Namespace() + "/a")
		s.Note("meanwhile: synced %v, found %v, %v", s.Informer.HasSynced(), found, err)
	}
	return meanwhile, func() {
		s.Settle()
		s.Put("a", "2")
		s.Delete("b")
		s.Settle()
		s.NoteChanges(r)
		s.NoteStore()
	}
}

// listKilled kills the server before the first requests.
func listKilled(s *conformance.Stage) (meanwhile, afterwards func()) {
	s.Put("a", "1")
	s.Make(0, nil)
	r := s.Handle()
	release := s.Faults.Hold()
	s.Run()
	meanwhile = func() {
		release()
		s.Await("another try", func() bool {
			return s.Lists() > 1
		})
		s.Note("meanwhile: synced %v", s.Informer.HasSynced())
	}
	return meanwhile, func() {
		s.Settle()
		s.Put("a", "2")
		s.Settle()
		s.NoteChanges(r)
		s.NoteStore()
	}
}

// historyCompacted disconnects the informer during changes, which the server then compacts.
func historyCompacted(s *conformance.Stage) (meanwhile, afterwards func()) {
	for _, name := range []string{"stays", "changes", "goes"} {
		s.Put(name, "1")
	}
	r := s.Start()
	release := s.Hold()
	s.Faults.EndWatches()
	s.Put("changes", "2")
	s.Delete("goes")
	s.Put("comes", "1")
	lists := s.Lists()
	return func() {}, func() {
		release()
		s.Settle()
		s.NoteChanges(r)
		s.NoteStore()
		s.Note("relisted: %v", s.Lists() > lists)
	}
}
