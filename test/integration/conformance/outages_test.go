package conformance_test

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/internal/informer"
	"github.com/crdcache/crdcache/internal/informer/conformance"
	"github.com/crdcache/crdcache/internal/testkit"
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
	s.Make(0)
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

// subjects returns the informers that are compared with client-go's: the internal informer, and those of a
// factory with its own client and with client-go's. The unit tests of internal/informer run the scenarios in
// the other storage modes, which do not depend on the server.
func subjects() []conformance.Subject {
	return []conformance.Subject{
		{Name: "informer", New: newWithClient(conformance.DefaultClient)},
		{Name: "packed", New: newPacked},
		{Name: "packed on client-go's client",
			New: newWithFactory(func(o *dynamicinformer.Options, setup conformance.Setup) (err error) {
				o.Client, err = dynamic.NewForConfig(setup.Config)
				return err
			})},
	}
}

// newPacked is a factory with its own client and the default storage mode.
var newPacked = newWithFactory(func(o *dynamicinformer.Options, setup conformance.Setup) error {
	o.Config = setup.Config
	return nil
})

// newNotStored is packed without stored objects.
var newNotStored = newWithFactory(func(o *dynamicinformer.Options, setup conformance.Setup) error {
	o.Config, o.Defaults.Storage.Mode = setup.Config, dynamicinformer.StorageNone
	return nil
})

func TestConformance(t *testing.T) {
	conformance.Run(t, harness.Config(t), append(subjects(),
		conformance.Subject{Name: "none", WithoutObjects: true, New: conformance.WithMirror(newNotStored)})...)
}

// TestConformanceBehindProxy runs the scenarios through a proxy for HTTP/1.1 that compresses responses.
func TestConformanceBehindProxy(t *testing.T) {
	config := harness.ConfigThroughProxy(t, testkit.Compress(false))
	conformance.Run(t, config, conformance.Subject{Name: "packed", New: newPacked})
}

func newWithClient(newClient conformance.NewClientFunc) conformance.NewInformerFunc {
	return func(t testing.TB, setup conformance.Setup) cache.SharedIndexInformer {
		return informer.New(informer.InlineWatcherOf(setup.ListWatch(t, newClient)), informer.Options{
			ResyncPeriod: setup.Resync, Indexers: setup.Indexers,
		})
	}
}

// newWithFactory returns informers that each have a factory. adjust completes its options.
func newWithFactory(
	adjust func(*dynamicinformer.Options, conformance.Setup) error) conformance.NewInformerFunc {
	return func(t testing.TB, setup conformance.Setup) cache.SharedIndexInformer {
		t.Helper()
		options := dynamicinformer.Options{Defaults: resourceOptions(t, setup)}
		if err := adjust(&options, setup); err != nil {
			t.Fatal(err)
		}
		factory, err := dynamicinformer.New(options)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := factory.Shutdown(context.Background()); err != nil {
				t.Error(err)
			}
		})
		i, err := factory.ForResource(setup.GVR)
		if err != nil {
			t.Fatal(err)
		}
		return i
	}
}

// resourceOptions returns the options of a setup. There is always an index by namespace.
func resourceOptions(t testing.TB, setup conformance.Setup) dynamicinformer.ResourceOptions {
	t.Helper()
	options := dynamicinformer.ResourceOptions{Resync: &setup.Resync, Indexers: cache.Indexers{}}
	if setup.Namespace != "" {
		options.Namespaces = dynamicinformer.InNamespaces(setup.Namespace)
	}
	var err error
	if options.LabelSelector, err = labels.Parse(setup.LabelSelector); err != nil {
		t.Fatal(err)
	}
	if options.FieldSelector, err = fields.ParseSelector(setup.FieldSelector); err != nil {
		t.Fatal(err)
	}
	for name, f := range setup.Indexers {
		if name != cache.NamespaceIndex {
			options.Indexers[name] = f
		}
	}
	return options
}
