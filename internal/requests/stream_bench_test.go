package requests

import (
	"testing"

	"k8s.io/apimachinery/pkg/watch"
)

// BenchmarkInitialEvents passes on the initial events of a watch to a reader: handed over one by one, as client-go does,
// and fed, in batches of as many as come with one read.
func BenchmarkInitialEvents(b *testing.B) {
	const together = 16
	batch := small(together)
	sources := map[string]func(n int) watch.Interface{
		"one by one": func(n int) watch.Interface {
			source := watch.NewFake() // which has no buffer
			go func() {               // ended by the last event
				for range n {
					for _, event := range batch {
						source.Action(event.Type, event.Object)
					}
				}
				source.Stop()
			}()
			return source
		},
		"fed": func(n int) watch.Interface {
			return &feeding{fedFake: newFedFake(), feed: func(take func([]watch.Event) bool) {
				for range n {
					take(batch)
				}
			}}
		},
	}
	for name, open := range sources {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			read := 0
			for range NewStream(open(b.N), Hooks{Initial: true}).ResultChan() {
				read++
			}
			if read < together {
				b.Fatalf("got %d events", read)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(read), "ns/event")
		})
	}
}

// feeding is a source that feeds as soon as it is told where to, and then ends.
type feeding struct {
	*fedFake
	feed func(take func([]watch.Event) bool)
}

func (f *feeding) Deliver(take func([]watch.Event) bool) {
	go func() { // ended by the last event
		f.feed(take)
		f.Stop()
	}()
}
