package conformance

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
)

// reference is the name of client-go's informer.
const reference = "client-go"

// Run plays every scenario over LIST and over WATCH-LIST, with client-go's informer and with each subject,
// and fails if their traces differ.
func Run(t *testing.T, config *rest.Config, subjects ...Subject) {
	t.Helper()
	for _, sc := range scenarios() {
		able := slices.DeleteFunc(slices.Clone(subjects),
			func(s Subject) bool { return sc.needsObjects && s.WithoutObjects })
		if len(able) > 0 {
			sc.run(t, config, able)
		}
	}
}

// RunScenario works like Run for a scenario of the caller.
func RunScenario(t *testing.T, config *rest.Config, name string, play func(*Stage), subjects ...Subject) {
	t.Helper()
	scenario{name: name, play: play}.run(t, config, subjects)
}

func (sc scenario) run(t *testing.T, config *rest.Config, subjects []Subject) {
	t.Run(sc.name, func(t *testing.T) {
		t.Parallel()
		for _, verb := range []string{"list", "watch-list"} {
			t.Run(verb, func(t *testing.T) {
				traces := playAll(t, config, sc, WithReference(subjects), verb)
				if !t.Failed() {
					sc.compare(t, traces)
				}
			})
		}
	})
}

// WithReference returns client-go's informer and the subjects.
func WithReference(subjects []Subject) []Subject {
	return append([]Subject{{Name: reference, New: Reference}}, subjects...)
}

// Trace has the events of one informer in a scenario.
type Trace struct {
	subject string
	lines   []string
}

func playAll(t *testing.T, config *rest.Config, sc scenario, subjects []Subject, verb string) []Trace {
	traces := make([]Trace, len(subjects))
	t.Run("play", func(t *testing.T) {
		for k, subject := range subjects {
			t.Run(subject.Name, func(t *testing.T) {
				t.Parallel()
				s := NewStage(t, config, subject.New, verb, waitLimit)
				sc.play(s)
				traces[k] = s.End(subject.Name)
			})
		}
	})
	return traces
}

// Compare fails if the traces differ from the first one, which is client-go's.
func Compare(t *testing.T, traces []Trace) { scenario{}.compare(t, traces) }

// compare compares the traces of the subjects with that of client-go, which is the first, or with the
// expected trace of a deviation.
func (sc scenario) compare(t *testing.T, traces []Trace) {
	want := traces[0].lines
	if len(want) == 0 {
		t.Error("the scenario has an empty trace")
	}
	if sc.deviation != "" {
		if diff := cmp.Diff(sc.clientGoTrace, want); diff != "" {
			t.Errorf("client-go no longer behaves as the deviation assumes (-expected +client-go):\n%s", diff)
		}
		want = sc.subjectTrace
	}
	for _, subject := range traces[1:] {
		if diff := cmp.Diff(want, subject.lines); diff != "" {
			t.Errorf("the trace of %s differs (-want +got) %s\n%s", subject.subject, sc.deviation, diff)
		}
	}
	t.Log(want)
}
