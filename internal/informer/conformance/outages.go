package conformance

import (
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// outagePatience limits a stage of an outage, because servers and reflectors take long to recover.
const outagePatience = 3 * time.Minute

// Server controls an API server. Each function returns when it is done, or fails the test.
type Server struct {
	// Kill kills the server. It stays down until Restart.
	Kill func(testing.TB)
	// Restart restarts the server, killed or not, with its data.
	Restart func(testing.TB)
	// Compact compacts the revisions in etcd.
	Compact func(testing.TB)
}

// outage is a scenario in which the server is disturbed and restarted.
type outage struct {
	name string
	// play plays the part before the outage. It returns the parts during the outage and after the restart.
	play func(*Stage) (meanwhile, afterwards func())
	// disturb is called once for all stages.
	disturb func(Server) func(testing.TB)
}

func outages() []outage {
	kill := func(s Server) func(testing.TB) { return s.Kill }
	compact := func(s Server) func(testing.TB) { return s.Compact }
	return []outage{
		{name: "server killed in the middle of a watch", play: watchKilled, disturb: kill},
		{name: "server killed before the first list", play: listKilled, disturb: kill},
		// A server that is not restarted still has the compacted revisions in its cache.
		{name: "history compacted", play: historyCompacted, disturb: compact},
	}
}

// RunOutages is Run for outages of the server, which affect all its clients.
func RunOutages(t *testing.T, config *rest.Config, server Server, subjects ...Subject) {
	t.Helper()
	for _, o := range outages() {
		t.Run(o.name, func(t *testing.T) { o.run(t, config, server, allSubjects(subjects)) })
	}
}

// run exposes all stages, over LIST and over WATCH-LIST, to one outage.
func (o outage) run(t *testing.T, config *rest.Config, server Server, subjects []Subject) {
	type part struct {
		name                  string
		stage                 *Stage
		meanwhile, afterwards func()
	}
	verbs := []string{"list", "watch-list"}
	parts := map[string][]*part{}
	for _, verb := range verbs {
		for _, subject := range subjects {
			p := &part{name: subject.Name, stage: newStage(t, config, subject.New, verb, outagePatience)}
			p.meanwhile, p.afterwards = o.play(p.stage)
			parts[verb] = append(parts[verb], p)
		}
	}
	o.disturb(server)(t)
	for _, verb := range verbs {
		for _, p := range parts[verb] {
			p.meanwhile()
		}
	}
	server.Restart(t)
	for _, verb := range verbs {
		var traces []trace
		for _, p := range parts[verb] {
			p.afterwards()
			traces = append(traces, p.stage.end(p.name))
		}
		t.Run(verb, func(t *testing.T) { scenario{}.compare(t, traces) })
	}
}

// watchKilled breaks the connection during changes. Handlers see the same whether the watch or the next list
// delivers them.
func watchKilled(s *Stage) (meanwhile, afterwards func()) {
	s.Put("a", "1")
	s.Put("b", "1")
	r := s.Start()
	s.Put("b", "2")
	s.Put("c", "1")
	meanwhile = func() {
		_, found, err := s.Informer.GetStore().GetByKey(s.namespace + "/a")
		s.Note("meanwhile: synced %v, found %v, %v", s.Informer.HasSynced(), found, err)
	}
	return meanwhile, func() {
		s.Settle()
		s.Put("a", "2")
		s.Delete("b")
		s.Settle()
		s.noteChanges(r)
		s.NoteStore()
	}
}

// listKilled kills the server before the first requests.
func listKilled(s *Stage) (meanwhile, afterwards func()) {
	s.Put("a", "1")
	s.Make(0, nil)
	r := s.Handle()
	release := s.Faults.Hold()
	s.Run()
	meanwhile = func() {
		release()
		s.await("another try", func() bool {
			return s.lists() > 1
		})
		s.Note("meanwhile: synced %v", s.Informer.HasSynced())
	}
	return meanwhile, func() {
		s.Settle()
		s.Put("a", "2")
		s.Settle()
		s.noteChanges(r)
		s.NoteStore()
	}
}

// historyCompacted disconnects the informer during changes, which the server then compacts.
func historyCompacted(s *Stage) (meanwhile, afterwards func()) {
	for _, name := range []string{"stays", "changes", "goes"} {
		s.Put(name, "1")
	}
	r := s.Start()
	release := s.Hold()
	s.Faults.EndWatches()
	s.Put("changes", "2")
	s.Delete("goes")
	s.Put("comes", "1")
	lists := s.lists()
	return func() {}, func() {
		release()
		s.Settle()
		s.noteChanges(r)
		s.NoteStore()
		s.Note("relisted: %v", s.lists() > lists)
	}
}

// noteChanges is NoteTrace without the updates of unchanged objects by a list.
func (s *Stage) noteChanges(r *recorder) {
	for _, line := range r.trace() {
		name, events, _ := strings.Cut(line, ": ")
		var notes []string
		for event := range strings.SplitSeq(events, ", ") {
			if !strings.HasPrefix(event, "resync ") {
				notes = append(notes, event)
			}
		}
		s.Note("%s: %s", name, strings.Join(notes, ", "))
	}
}
