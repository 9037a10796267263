package report

import (
	"cmp"
	_ "embed"

	"sigs.k8s.io/yaml"

	"github.com/crdcache/crdcache/test/integration/bench/internal/experiment"
)

//go:embed promises.yaml
var promisesText []byte

func promises() []Promise {
	var all []Promise
	for _, e := range mustParse[[]promiseEntry](promisesText) {
		all = append(all, e.promise())
	}
	return all
}

// mustParse decodes an embedded file.
func mustParse[T any](text []byte) (parsed T) {
	if err := yaml.UnmarshalStrict(text, &parsed); err != nil {
		panic(err) // TestPromises and TestPage read the files
	}
	return parsed
}

// promiseEntry is a promise in promises.yaml. Less, AtMost or Growth is set.
type promiseEntry struct {
	Title, Experiment, Metric, Subject, Peer string
	// PeerMetric is the metric of the peer. Default: Metric.
	PeerMetric string
	// Less is the lower bound of the peer's figure divided by the subject's.
	Less float64
	// AtMost is the upper bound of the subject's figure divided by the peer's. Without a peer, it is the
	// upper bound of the figure itself.
	AtMost float64
	// Growth bounds the cost per object at the greatest number of objects, divided by the cost per object at
	// flatFrom objects.
	Growth float64
	// Size, Margin and Headline are as in Promise. Elapsed time and single reads vary too much on a busy
	// machine for a margin.
	Size     string
	Margin   float64
	Headline bool
	// BeyondStream subtracts the cost of the bare stream.
	BeyondStream bool
}

func (e promiseEntry) promise() Promise {
	own := Key{Experiment: e.Experiment, Metric: e.Metric, Subject: e.Subject}
	peer := Key{Experiment: e.Experiment, Metric: cmp.Or(e.PeerMetric, e.Metric), Subject: e.Peer}
	p := Promise{Title: e.Title, Subject: e.Subject, Peer: e.Peer, Over: own, Under: peer, AtMost: true,
		Target: e.AtMost, Margin: e.Margin, Size: e.Size, Headline: e.Headline}
	switch {
	case e.Less > 0:
		p.Over, p.Under, p.AtMost, p.Target = peer, own, false, e.Less
	case e.Growth > 0:
		p.Under, p.Peer, p.Flat, p.Target = own, e.Subject, true, e.Growth
	case e.Peer == "":
		p.Under, p.Absolute = Key{}, true
	}
	if e.BeyondStream {
		p.Floor = Key{Experiment: e.Experiment, Subject: experiment.Stream, Metric: e.Metric}
	}
	return p
}
