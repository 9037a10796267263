package conformance

// scenario is a short history of objects and connections. play records the trace.
type scenario struct {
	name string
	play func(*Stage)
	// needsObjects is true for scenarios that Subject.WithoutObjects omits.
	needsObjects bool
	// deviation is the reason if subjects differ from client-go by intention. It requires the two expected
	// traces.
	deviation string
	// clientGoTrace and subjectTrace are the expected traces of client-go and of the subjects.
	clientGoTrace, subjectTrace []string
}

func scenarios() []scenario {
	return []scenario{
		{name: "initial list", play: initialList},
		{name: "late handler", play: lateHandler},
		{name: "removed handler", play: removedHandler},
		{name: "removed from inside", play: removedFromInside},
		{name: "changes for two handlers", play: twoHandlers},
		{name: "relist after 410", play: relistAfterGone},
		{name: "watch ended", play: watchEnded},
		{name: "watch broken", play: watchBroken},
		{name: "watch ended by its own timeout", play: watchTimeout},
		{name: "bookmark", play: bookmark},
		{name: "first requests fail", play: firstRequestsFail},
		{name: "label selector", play: selector},
		{name: "field selector", play: fieldSelector},
		{name: "one namespace", play: otherNamespaces},
		{name: "all namespaces", play: allNamespaces},
		{name: "transform", play: transform},
		{name: "indexers", play: indexers, needsObjects: true},
		{name: "resync", play: resync, needsObjects: true},
		{name: "resync periods", play: resyncPeriods, needsObjects: true},
		{name: "refusals", play: refusals},
		{name: "store writes", play: storeWrites, needsObjects: true},
		{
			name: "re-created while away", play: recreatedWhileAway,
			deviation:     "another object under the same key is not an update of the first",
			clientGoTrace: []string{"a: initial 1, other object 1→2", "store: a=2"},
			subjectTrace:  []string{"a: initial 1, lost 1, add 2", "store: a=2"},
		},
	}
}
